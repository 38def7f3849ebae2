//! The MPI launcher that started this process, recognised by the environment variables that launchers set.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use crate::child::end_within;
use crate::readable::shell;
use crate::{Error, Result};

/// Variables with a process's number among those that its launcher started: Open MPI's, MPICH's and Intel's, and PMIx's (srun, prterun).
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];

/// How launchers' variables begin: those of mpirun, srun and sbatch, PALS, ALPS, Flux and MVAPICH. Some of these launchers give no number.
/// Settings of Open MPI, such as OMPI_MCA_…, are not among them: they may be there without a launcher.
const PREFIXES: [&str; 9] = ["OMPI_COMM_WORLD_", "PMI_", "PMIX_", "PRTE_", "SLURM_PROCID", "PALS_", "ALPS_", "FLUX_", "MV2_"];

/// Variables with the number of processes that a launcher started, and the launcher. Where mpirun starts its own daemons through srun, ranks have
/// both: mpirun's come first.
const SIZES: [(&str, &str); 4] = [
    (OPEN_MPI_SIZE, "Open MPI's mpirun"),
    ("MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"),
    ("PMI_SIZE", "MPICH's mpirun or srun --mpi=pmi2"),
    (SRUN_SIZE, "srun"),
];

/// Open MPI's variable with the number of processes.
const OPEN_MPI_SIZE: &str = "OMPI_COMM_WORLD_SIZE";

/// Srun's variable with the number of processes.
const SRUN_SIZE: &str = "SLURM_STEP_NUM_TASKS";

/// Numbers that a launcher gave to the process that it started. MPI changes these variables when it starts, so they are read before.
#[derive(Debug, Clone, PartialEq)]
pub struct Launched {
    /// This process's number.
    pub rank: usize,
    /// How many processes were started, by which launcher, and the variable that says so.
    started: Option<(usize, &'static str, &'static str)>,
    /// Whether the launcher speaks PMIx, by which Open MPI's ranks find each other.
    speaks_pmix: bool,
}

impl Launched {
    /// The launcher that the environment names now.
    pub fn now() -> Launched {
        let started =
            |&(variable, launcher): &(&'static str, &'static str)| Some((env::var(variable).ok()?.parse().ok()?, launcher, variable));
        Launched { rank: rank(), started: SIZES.iter().find_map(started), speaks_pmix: env::var_os("PMIX_RANK").is_some() }
    }

    /// The launcher in words, for a person, and whether it is of the same MPI as `library`; none where no launcher says how many it started.
    pub fn words(&self, library: &str) -> Option<String> {
        let (started, launcher, variable) = self.started?;
        let fits = match family(launcher) {
            Some(other) if family(library) == Some(other) => "",
            Some(_) => ": does not fit the program's MPI",
            None => ": whether it fits the program's MPI is seen when ranks start",
        };
        Some(format!("{launcher} ({variable} = {started}){fits}"))
    }

    /// Checks, before MPI is started, that its start will not end the process with a message of its own: MPICH's does under Open MPI's mpirun, whose
    /// PMIx it does not know; Open MPI's does under an srun that speaks no protocol (`--mpi=none`). `library` is the name of the program's MPI.
    ///
    /// # Errors
    /// As of [`check`](Launched::check).
    pub fn check_before_start(&self, library: &str) -> Result<()> {
        let Some((.., variable)) = self.started else { return Ok(()) };
        let is_foreign = match family(library) {
            Some("MPICH") => variable == OPEN_MPI_SIZE,
            // Under srun --mpi=pmi2 the number of processes comes from PMI_SIZE, so that `variable` is not SRUN_SIZE.
            Some("Open MPI") => variable == SRUN_SIZE && !self.speaks_pmix,
            _ => false,
        };
        if is_foreign { self.check(1, Some(library)) } else { Ok(()) }
    }

    /// Checks that the processes have found each other: a launcher of another MPI starts each as a world of its own, and all but one would find the
    /// study's files locked. `ranks` is the number of ranks of this process's world, and `library` the name of its MPI, if it has one.
    ///
    /// # Errors
    /// [`Error::Communication`], with the command that works.
    pub fn check(&self, ranks: usize, library: Option<&str>) -> Result<()> {
        let Some((started, launcher, variable)) = self.started.filter(|(started, ..)| ranks == 1 && *started > 1) else { return Ok(()) };
        // A version is enough of what a library says of itself.
        let library = library.map(|library| library.split(',').next().unwrap_or(library));
        let why = match (library, variable) {
            (None, _) => "this program is built without MPI; build it with its default features".to_owned(),
            (Some(library), SRUN_SIZE) => {
                format!("srun and {library} have no common protocol; use srun --mpi=pmix if srun --mpi=list has it")
            }
            (Some(library), _) => format!("this program is built with {library}; use the mpirun of that MPI"),
        };
        Err(Error::Communication {
            rank: self.rank,
            problem: format!(
                "expected {started} ranks of one study, as {launcher} started {started} processes ({variable}), found that each is alone: {why}; or unset \
                 {variable} where each is meant to be alone{}",
                // A line of its own, which is not shortened with the sentence.
                library.map_or(String::new(), |_| format!("; or run\n{}", command(started)))
            ),
        })
    }
}

/// How long other processes give the first one to speak.
const FIRST_SPEAKS: Duration = Duration::from_secs(1);

/// Waits, in any process but the first, before it ends with an error that the first one says: a launcher ends all processes as soon as one has ended
/// so.
pub fn let_the_first_speak(rank: usize) {
    if rank > 0 {
        thread::sleep(FIRST_SPEAKS);
    }
}

/// This process's command, started on so many ranks by the mpirun that belongs to the program's MPI.
fn command(ranks: usize) -> String {
    // Where no mpirun lies beside the library, the mpirun in the PATH may still belong to the program's MPI.
    let mpirun = own_mpirun().map_or_else(|| "mpirun".to_owned(), |path| path.to_string_lossy().into_owned());
    format!("{mpirun} -n {ranks} {}", command_line())
}

/// The words of this process's command line as a shell would take them.
pub fn command_line() -> String {
    let words: Vec<String> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    shell(&words)
}

/// The mpirun beside the MPI library that this process has loaded.
fn own_mpirun() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let library = files.into_iter().find(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libmpi.so")))?;
    // PREFIX/lib/libmpi.so, or deeper as in Debian's PREFIX/lib/x86_64-linux-gnu/openmpi/lib.
    library.ancestors().skip(2).map(|folder| folder.join("bin/mpirun")).find(|path| path.is_file())
}

/// How long `mpirun --version` may take. It may wait for a file system that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Version of `mpirun` in the PATH by its own words, and whether it is of the same MPI as `library`; none where there is no mpirun.
pub fn mpirun(library: &str) -> Option<(String, bool)> {
    let mut command = Command::new("mpirun");
    let mut asked = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    if end_within(&mut asked, PATIENCE, |_| ()).ok()?.is_none() {
        return Some((format!("did not say its version within {} s", PATIENCE.as_secs()), false));
    }
    let mut said = Vec::new();
    // A pipe holds more than any version.
    asked.stdout.take()?.take(1 << 12).read_to_end(&mut said).ok()?;
    let text = String::from_utf8_lossy(&said).into_owned();
    // MPICH's first line is a heading, and its second one the version.
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let version = if first.ends_with(':') { format!("{first} {}", lines.next().unwrap_or_default()) } else { first.to_owned() };
    let words = version.split_whitespace().collect::<Vec<_>>().join(" ");
    Some((
        words.chars().filter(|letter| !letter.is_control()).take(100).collect(),
        family(&text).is_some_and(|launcher| family(library) == Some(launcher)),
    ))
}

/// Which MPI a text is of: those whose launchers start each other's programs count as one.
fn family(text: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["Open MPI", "OpenRTE", "PRRTE"]) {
        Some("Open MPI")
    } else if has(&["MPICH", "HYDRA", "Hydra", "Intel(R) MPI", "MVAPICH"]) {
        Some("MPICH")
    } else {
        None
    }
}

/// This process's number as its launcher says, before MPI is started; 0 where none does.
pub fn rank() -> usize {
    let mut names = RANKS.iter().chain(&["SLURM_PROCID"]);
    names.find_map(|name| env::var(name).ok()?.parse().ok()).unwrap_or(0)
}

/// Whether an MPI launcher started this process.
pub fn is_certain() -> bool {
    RANKS.iter().any(|name| env::var_os(name).is_some())
}

/// Whether a launcher may have started this process. A process on its own does not start MPI: Open MPI would start a helper program for it, and
/// end the process with a message of its own where the helper is not installed.
pub fn is_possible() -> bool {
    env::vars_os().any(|(name, _)| PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpich_is_not_started_by_the_mpirun_of_open_mpi() {
        let launched = |started| Launched { rank: 0, started, speaks_pmix: false };
        let by_open_mpi = launched(Some((3, "Open MPI's mpirun", OPEN_MPI_SIZE)));
        let said = by_open_mpi.check_before_start("MPICH Version: 5.0.2").unwrap_err().to_string();
        assert!(said.contains("expected 3 ranks of one study, as Open MPI's mpirun started 3 processes"), "{said}");
        assert!(said.contains("built with MPICH Version: 5.0.2; use the mpirun of that MPI"), "{said}");
        by_open_mpi.check_before_start("Open MPI v5.0.11").unwrap();
        launched(Some((3, "MPICH's mpirun", "PMI_SIZE"))).check_before_start("MPICH Version: 5.0.2").unwrap();
        launched(Some((1, "Open MPI's mpirun", OPEN_MPI_SIZE))).check_before_start("MPICH Version: 5.0.2").unwrap();
        launched(None).check_before_start("MPICH Version: 5.0.2").unwrap();
    }

    #[test]
    fn open_mpi_is_not_started_by_an_srun_without_pmix() {
        let by_srun = |speaks_pmix| Launched { rank: 0, started: Some((3, "srun", SRUN_SIZE)), speaks_pmix };
        let said = by_srun(false).check_before_start("Open MPI v4.1.4").unwrap_err().to_string();
        assert!(said.contains("srun and Open MPI v4.1.4 have no common protocol; use srun --mpi=pmix"), "{said}");
        by_srun(true).check_before_start("Open MPI v4.1.4").unwrap();
        by_srun(false).check_before_start("MPICH Version: 5.0.2").unwrap();
    }
}
