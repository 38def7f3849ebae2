//! The hosts of a supervised command: those that answer get its ranks, on a list that Open MPI's mpirun reads.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::output::say;
use crate::storage::read_regular;
use crate::{Error, Result, journal, results, signals};

/// How long a host may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// How often it is looked at whether hosts have answered.
const LOOK: Duration = Duration::from_millis(20);

/// The hosts that a command may use, and how they are asked whether they are there.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosts {
    /// Each with its number of ranks at most.
    pub all: Vec<(String, usize)>,
    /// The words of a command that runs what follows a host's name on that host.
    pub reach: Vec<String>,
    /// The file that they were read from, if it was one.
    pub file: Option<PathBuf>,
    /// How often they are asked while a command runs on them; zero: only before a start.
    pub every: Duration,
}

/// Bytes that a file of hosts may have.
const MOST_BYTES: u64 = 1 << 20;

impl Hosts {
    /// The hosts of a list such as "node1:4,node2:4", or of a file with a line `node1 slots=4` for each, as Open MPI's mpirun reads it. Without a
    /// number a host has one rank. `reach` has words with spaces between; `every` is how often hosts are asked while a command runs on them.
    ///
    /// # Errors
    /// [`Error::Configuration`]: the list is none, or `reach` is empty.
    pub fn read(list: &str, reach: &str, every: Duration) -> Result<Hosts> {
        let file = Path::new(list);
        let items: Vec<String> = if file.is_file() {
            let bytes = fs::canonicalize(file).and_then(|file| read_regular(&file, MOST_BYTES));
            let text = bytes
                .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
                .map_err(|cause| refused(format!("expected a list of hosts, found a file that cannot be read ({cause})")))?;
            text.lines().map(|line| line.split('#').next().unwrap_or_default().trim().to_owned()).filter(|line| !line.is_empty()).collect()
        } else {
            list.split(',').map(|item| item.trim().to_owned()).collect()
        };
        let all = items.iter().map(|item| host(item)).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty());
        let all = all.ok_or_else(|| {
            refused(format!("expected hosts such as node1:4,node2:4, or a file with a line \"node1 slots=4\" for each, found {list:?}"))
        })?;
        let reach: Vec<String> = reach.split_whitespace().map(str::to_owned).collect();
        if reach.is_empty() {
            return Err(refused("expected --reach with a command that reaches a host, such as ssh, found none".into()));
        }
        Ok(Hosts { all, reach, file: file.is_file().then(|| file.to_owned()), every })
    }

    /// The command for the hosts that answer, and these hosts. The list of these hosts is written beside the result file at `output`;
    /// the command names the list and asks for no more ranks than the hosts have room for. `None` where no host answers.
    ///
    /// # Errors
    /// [`Error::Configuration`]: the command is no mpirun, the one that reaches hosts cannot be run, or the list would be written over the file of
    /// hosts. [`Error::Results`]: the list cannot be written.
    pub fn command(&self, command: &[OsString], output: &Path) -> Result<Option<(Vec<OsString>, Hosts)>> {
        let (launcher, words) = mpirun(command)?;
        let path = journal::hosts_path(output);
        if let Some(file) = self.file.as_ref().filter(|file| journal::overwrites(output, file)) {
            let (path, file) = (path.display(), file.display());
            return Err(refused(format!(
                "expected a file other than those of the study, such as {path}, to which the hosts that answer are written, found {file}; rename it"
            )));
        }
        let answers = self.answering()?;
        let (left, lost): (Vec<_>, Vec<_>) = self.all.iter().zip(answers).partition(|(_, answers)| *answers);
        let left = Hosts { all: left.into_iter().map(|(host, _)| host.clone()).collect(), ..self.clone() };
        let slots: usize = left.all.iter().map(|(_, slots)| slots).sum();
        if slots == 0 {
            return Ok(None);
        }
        let (asked, words) = ranks(words, slots);
        if !lost.is_empty() {
            let names: Vec<&str> = lost.iter().map(|((name, _), _)| name.as_str()).collect();
            say(&format!("no answer from {}: goes on with {} of {asked} ranks on the other hosts", names.join(", "), asked.min(slots)));
        } else if asked > slots {
            say(&format!("the hosts have room for {slots} of {asked} ranks: goes on with {slots}"));
        }
        let lines: String = left.all.iter().map(|(name, slots)| format!("{name} slots={slots}\n")).collect();
        results::publish(&path, lines.as_bytes())?;
        Ok(Some(([launcher, &["--hostfile".into(), path.into_os_string()], &words].concat(), left)))
    }

    /// Whether each host answers. All are asked at once.
    fn answering(&self) -> Result<Vec<bool>> {
        let (program, words) = self.reach.split_first().ok_or_else(|| refused("expected --reach with a command, found none".into()))?;
        let ask = |(name, _): &(String, usize)| {
            let mut asked = Command::new(program);
            asked.args(words).arg(name).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            asked.spawn().map_err(|cause| refused(format!("expected --reach with a command that can be run, found {program} ({cause})")))
        };
        let mut asked: Vec<Child> = self.all.iter().map(ask).collect::<Result<_>>()?;
        let mut answers = vec![None; asked.len()];
        let begun = Instant::now();
        while begun.elapsed() < ANSWER && !signals::stop() && answers.contains(&None) {
            for (answer, asked) in answers.iter_mut().zip(&mut asked) {
                match asked.try_wait() {
                    Ok(None) => {}
                    Ok(Some(status)) => *answer = Some(status.success()),
                    Err(_) => *answer = Some(false),
                }
            }
            thread::sleep(LOOK);
        }
        for late in &mut asked {
            let _ = late.kill();
            let _ = late.wait();
        }
        Ok(answers.into_iter().map(|answer| answer == Some(true)).collect())
    }
}

/// Asks hosts again while a command runs on them. A host that loses its power or its network sends nothing, so that mpirun and the ranks elsewhere
/// wait for it until their connections give up, many minutes later.
pub(super) struct Watch {
    hosts: Hosts,
    /// When the last answers came, or the command began.
    asked: Instant,
    asking: Option<JoinHandle<Result<Vec<bool>>>>,
    /// The hosts that did not answer the last time.
    silent: Vec<String>,
}

/// Result of a round of answers.
#[derive(Debug, PartialEq)]
pub(super) enum Answers {
    /// All hosts answer; or none does, which says more of the way to them.
    All,
    /// Hosts that have not answered, for the first time.
    Silent(Vec<String>),
    /// Hosts that have not answered twice in a row.
    Lost(Vec<String>),
}

impl Watch {
    pub(super) fn new(hosts: Hosts) -> Watch {
        Watch { hosts, asked: Instant::now(), asking: None, silent: Vec::new() }
    }

    /// The answers of a round that has ended since the last look. Begins a round when it is time for one; waits for none.
    pub(super) fn look(&mut self) -> Option<Answers> {
        match self.asking.take_if(|asking| asking.is_finished()) {
            Some(asking) => {
                self.asked = Instant::now();
                // Where the hosts cannot be asked, nothing is known of them.
                Some(self.judge(&asking.join().ok()?.ok()?))
            }
            None => {
                if self.asking.is_none() && !self.hosts.every.is_zero() && self.asked.elapsed() >= self.hosts.every {
                    let hosts = self.hosts.clone();
                    self.asking = Some(thread::spawn(move || hosts.answering()));
                }
                None
            }
        }
    }

    fn judge(&mut self, answers: &[bool]) -> Answers {
        let silent: Vec<String> =
            self.hosts.all.iter().zip(answers).filter(|(_, answers)| !**answers).map(|((name, _), _)| name.clone()).collect();
        let silent = if silent.len() == self.hosts.all.len() { Vec::new() } else { silent };
        let before = std::mem::replace(&mut self.silent, silent.clone());
        let lost: Vec<String> = silent.iter().filter(|name| before.contains(name)).cloned().collect();
        match (silent.is_empty(), lost.is_empty()) {
            (true, _) => Answers::All,
            (false, true) => Answers::Silent(silent),
            (false, false) => Answers::Lost(lost),
        }
    }
}

fn refused(problem: String) -> Error {
    Error::Configuration { path: "supervise --hosts".to_owned(), problems: vec![problem] }
}

/// A host and its number of ranks, from "node1", "node1:4" or "node1 slots=4".
fn host(item: &str) -> Option<(String, usize)> {
    let mut words = item.split_whitespace();
    let (name, slots) = match words.next()?.split_once(':') {
        Some((name, slots)) => (name, Some(slots)),
        None => (item.split_whitespace().next()?, words.find_map(|word| word.strip_prefix("slots="))),
    };
    // `slots = 4` would be read as a host with one rank.
    if item.split_whitespace().skip(1).any(|word| word.split_once('=').is_none_or(|(key, value)| key.is_empty() || value.is_empty())) {
        return None;
    }
    let slots = slots.map_or(Some(1), |slots| slots.parse().ok().filter(|slots| (1..=100_000).contains(slots)))?;
    // Names that begin with a hyphen would be options of ssh.
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (!name.is_empty() && !name.starts_with('-') && name.chars().all(is_name)).then(|| (name.to_owned(), slots))
}

/// mpirun's own word, and those behind it.
fn mpirun(command: &[OsString]) -> Result<(&[OsString], &[OsString])> {
    let found = command.split_at_checked(1).filter(|(launcher, _)| {
        let name = launcher.first().and_then(|word| Path::new(word).file_name());
        name.is_some_and(|name| ["mpirun", "mpiexec", "orterun", "prterun"].iter().any(|known| name == *known))
    });
    let found = found.ok_or_else(|| {
        refused(format!(
            "expected a command that begins with Open MPI's mpirun, found {}; leave out --hosts for another",
            command.first().map_or("none".into(), |word| word.to_string_lossy())
        ))
    })?;
    let own = ["-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile"];
    match found.1.iter().find(|word| own.iter().any(|option| word == option)) {
        Some(word) => Err(refused(format!("expected no hosts among mpirun's options, found {}; leave it out", word.display()))),
        None => Ok(found),
    }
}

/// The ranks that mpirun's words ask for, and the words with `most` at most. Where they ask for no number, there is one rank a slot.
fn ranks(words: &[OsString], most: usize) -> (usize, Vec<OsString>) {
    let mut words = words.to_vec();
    // The first such word is taken for mpirun's: without one, a word of the program is taken, as in `nice -n`.
    let at = words.iter().position(|word| ["-n", "-np", "--n", "--np", "-c"].iter().any(|option| word == *option)).map(|at| at + 1);
    let asked = at.and_then(|at| words.get(at)?.to_str()?.parse().ok());
    match (at, asked) {
        (Some(at), Some(asked)) => {
            words[at] = most.min(asked).to_string().into();
            (asked, words)
        }
        _ => (most, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(60);

    #[test]
    fn a_host_is_lost_that_does_not_answer_twice_in_a_row_while_another_does() {
        let mut watch = Watch::new(Hosts::read("a,b,c", "ssh", EVERY).unwrap());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let rounds: [(&[bool], Answers); 7] = [
            (&[true, true, true], Answers::All),
            (&[true, false, true], Answers::Silent(names(&["b"]))),
            (&[true, true, false], Answers::Silent(names(&["c"]))),
            // The way to all of them is broken: nothing is known of c.
            (&[false, false, false], Answers::All),
            (&[true, true, false], Answers::Silent(names(&["c"]))),
            (&[true, false, false], Answers::Lost(names(&["c"]))),
            (&[true, false, true], Answers::Lost(names(&["b"]))),
        ];
        for (round, (answers, expected)) in rounds.into_iter().enumerate() {
            assert_eq!(watch.judge(answers), expected, "round {round}");
        }
    }

    #[test]
    fn hosts_are_read_from_a_list_and_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        fs::write(&path, "# two\nnode1 slots=4\n\nnode2   slots=2 max_slots=3 # a small one\nnode3\n").unwrap();
        let expected = [("node1".to_owned(), 4), ("node2".to_owned(), 2), ("node3".to_owned(), 1)];
        for (list, file) in [("node1:4, node2:2,node3", None), (path.to_str().unwrap(), Some(path.clone()))] {
            let hosts = Hosts::read(list, "ssh -o BatchMode=yes", EVERY).unwrap();
            let reach = vec!["ssh".into(), "-o".into(), "BatchMode=yes".into()];
            assert_eq!(hosts, Hosts { all: expected.to_vec(), reach, file, every: EVERY });
        }
        for list in ["", "node1:0", "node1:x", "-oProxyCommand=x:1", "a b:c,", "node1 slots = 4", "/nowhere/hosts"] {
            assert!(Hosts::read(list, "ssh", EVERY).unwrap_err().to_string().contains("expected hosts such as node1:4"), "{list}");
        }
        assert!(Hosts::read("node1", " ", EVERY).is_err());
    }

    #[test]
    fn a_command_gets_the_hosts_that_answer_and_no_more_ranks_than_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("x.h5");
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let path = folder.path().join("x.hosts");
        // `sh -c SCRIPT HOST true` has the host as $0.
        let script = folder.path().join("reach");
        fs::write(&script, "case $1 in up*) exit 0;; esac; exit 255\n").unwrap();
        let hosts = |list: &str| Hosts::read(list, &format!("sh {}", script.display()), EVERY).unwrap();
        let command = |list: &str, text: &str| hosts(list).command(&words(text), &output).map(|found| found.map(|(words, _)| words));
        let said = command("up1:2,down:4,up2:1", "mpirun -n 8 dps-train x.toml").unwrap().unwrap();
        assert_eq!(said, words(&format!("mpirun --hostfile {} -n 3 dps-train x.toml", path.display())));
        assert_eq!(fs::read_to_string(&path).unwrap(), "up1 slots=2\nup2 slots=1\n");
        assert_eq!(command("up1:9", "mpirun -np 8 dps-train").unwrap().unwrap()[4], "8");
        assert_eq!(command("up1:9", "mpirun dps-train").unwrap().unwrap().len(), 4);
        assert_eq!(command("down:9", "mpirun -n 8 dps-train").unwrap(), None);
        // The file of hosts is never written over, by whatever name.
        fs::write(&path, "up1 slots=1\ndown slots=4 # comes back\n").unwrap();
        let other = folder.path().join(".").join("x.hosts");
        let refused = command(other.to_str().unwrap(), "mpirun -n 8 dps-train").unwrap_err().to_string();
        assert!(refused.contains("expected a file other than"), "{refused}");
        assert!(fs::read_to_string(&path).unwrap().contains("comes back"));
        let refused = command("up1:9", "mpirun -H up1 -n 8 dps-train").unwrap_err().to_string();
        assert!(refused.contains("expected no hosts among mpirun's options, found -H"), "{refused}");
        let refused = command("up1:9", "srun -n 8 dps-train").unwrap_err().to_string();
        assert!(refused.contains("expected a command that begins with Open MPI's mpirun, found srun"), "{refused}");
    }
}
