//! The process that reads: how it is started, its limits, and what its end means.

use std::any::Any;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use super::end::{PROBLEM, STOPPED, STOPS, judged};
use crate::child::Output;
use crate::error::short;
use crate::exit;

/// One way to read a file.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// The task's name on the reading process's command line.
    pub(crate) name: &'static str,
    /// Reads the file, and an item of it where the task has items, and writes what it finds; or says what is wrong, in words that follow the file's
    /// name.
    pub(crate) act: fn(&Path, &str, &mut dyn Write) -> Result<(), String>,
}

/// The first word of a reading process's command line.
const WORD: &str = "read-for-parent";

/// Bytes that the reading process writes at a time, and of the pipe to it where the system allows that.
const BLOCK: usize = 1 << 18;

/// Letters of a problem that the reading process says, at most: any pipe has room for them while nobody reads.
const LONGEST_PROBLEM: usize = 1_000;

/// Whether [`begin`] found that this process is no reading one.
static STARTS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Makes this program one that reads HDF5 files in processes of their own; called before anything else. In such a process, which its command line
/// says, it does the task named there and returns the exit code to end with, at once: destructors of HDF5 may fail on a damaged file.
pub fn begin(tasks: &[Task]) -> Option<u8> {
    let mut words = env::args_os().skip(1);
    if words.next().as_deref() != Some(OsStr::new(WORD)) {
        STARTS_OTHERS.store(true, Ordering::Relaxed);
        return None;
    }
    let (name, path, item) = (words.next()?, PathBuf::from(words.next()?), words.next()?);
    let task = tasks.iter().find(|task| name == task.name)?;
    let Ok(output) = io::stdout().as_fd().try_clone_to_owned() else { return Some(exit::UNEXPECTED) };
    limit(fs::metadata(&path).map_or(0, |found| found.len()));
    std::panic::set_hook(Box::new(|_| ()));
    let mut output = BufWriter::with_capacity(BLOCK, File::from(output));
    let done = catch_unwind(AssertUnwindSafe(|| (task.act)(&path, &item.to_string_lossy(), &mut output)));
    let done = done.unwrap_or_else(|panic| Err(format!("unexpected failure, please report it: {}", words_of(&*panic))));
    Some(match done {
        Ok(()) if output.flush().is_ok() => exit::DONE,
        Err(problem) if write!(io::stderr(), "\0{}", short(&problem, LONGEST_PROBLEM)).is_ok() => PROBLEM,
        _ => exit::UNEXPECTED,
    })
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

/// Bytes of memory that reading a file of so many bytes may take, beside the program itself: compressed values may take a thousand times their
/// stored bytes, and large files are not all compressed so well.
pub(super) fn most_memory(length: u64) -> u64 {
    let (compressed, large) = (length.saturating_mul(256), length.saturating_mul(4).saturating_add(4 << 30));
    (192_u64 << 20).saturating_add(compressed.min(large))
}

/// Seconds of processor time for a file of so many bytes; reading takes a hundredth of them.
fn most_seconds(length: u64) -> u64 {
    20 + (length >> 20)
}

/// Limits this process: its memory, its processor time, its whole time, and that it leaves no core file. Signals to a whole group of processes, by
/// which a person or a scheduler stops a study, are its parent's to answer.
fn limit(length: u64) {
    let lower = |resource, most: u64| {
        let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls only read or write the struct, which lives longer than they take.
        unsafe {
            if libc::getrlimit(resource, &raw mut limits) == 0 {
                limits.rlim_cur = limits.rlim_cur.min(most as libc::rlim_t);
                libc::setrlimit(resource, &raw const limits);
            }
        }
    };
    lower(libc::RLIMIT_DATA, most_memory(length));
    lower(libc::RLIMIT_CPU, most_seconds(length));
    lower(libc::RLIMIT_CORE, 0);
    // SAFETY: no handler runs code of ours. The alarm ends this process also where it waits for a disk.
    unsafe {
        for signal in STOPS {
            libc::signal(signal, libc::SIG_IGN);
        }
        for signal in [libc::SIGALRM, libc::SIGXCPU] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::alarm((300 + 10 * (length >> 20)).min(1 << 20) as libc::c_uint);
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Has `task` read the file at `path`, or `item` of it. What it finds comes as a stream, in a process of its own where the program has called
/// [`begin`]; otherwise all of it is read before this returns.
///
/// # Errors
/// A problem, in words that follow the file's name. Reading the answer gives such words, too, as a [`Problem`](super::Problem) in the error.
pub(crate) fn ask(task: &Task, path: &Path, item: &str) -> Result<Box<dyn Read>, String> {
    if !STARTS_OTHERS.load(Ordering::Relaxed) {
        let mut found = Vec::new();
        (task.act)(path, item, &mut found)?;
        return Ok(Box::new(Cursor::new(found)));
    }
    // This very program, even where another one has taken its file's name since it was started.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() { running.to_owned() } else { env::current_exe().map_err(unstarted)? };
    let mut command = Command::new(program);
    command.arg(WORD).arg(task.name).arg(path).arg(item).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    answered(&mut command)
}

/// How often a reading process is started at most.
const TRIES: usize = 3;

/// The answer of a reading process, which is started again where a signal has ended it before the process could ignore the signal: such a signal is
/// for the program that stops, not for what it reads.
fn answered(command: &mut Command) -> Result<Box<dyn Read>, String> {
    let mut tries = 1;
    loop {
        match command.spawn().map_err(unstarted).map(answer)? {
            Err(error) if error.kind() == STOPPED && tries < TRIES => tries += 1,
            found => return found.map_err(|error| error.to_string()),
        }
    }
}

fn unstarted(error: io::Error) -> String {
    format!("the process that reads it cannot be started ({error}); allow one process more (ulimit -u)")
}

/// The answer of a reading process.
fn answer(child: Child) -> io::Result<Box<dyn Read>> {
    #[cfg(target_os = "linux")]
    if let Some(output) = &child.stdout {
        use std::os::fd::AsRawFd;
        // SAFETY: the call changes nothing but the size of the pipe, which this process owns; refused, it stays as it is.
        unsafe { libc::fcntl(output.as_raw_fd(), libc::F_SETPIPE_SZ, BLOCK as libc::c_int) };
    }
    Ok(Box::new(Output::begun(child, judged)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_limited_by_the_files_length() {
        assert!(most_memory(34_000) < 300 << 20);
        assert!(most_memory(200 << 20) < 5 << 30);
        assert!(most_memory(u64::MAX) >= 4 << 30);
    }

    #[test]
    fn a_program_that_has_not_begun_reads_in_its_own_process() {
        let task =
            Task { name: "length", act: |path, item, output| write!(output, "{}{item}", path.display()).map_err(|_| "no".to_owned()) };
        assert_eq!(std::io::read_to_string(ask(&task, Path::new("x"), "y").unwrap()).unwrap(), "xy");
        let failing = Task { name: "failing", act: |_, _, _| Err("damaged".to_owned()) };
        assert_eq!(ask(&failing, Path::new("x"), "").err().unwrap(), "damaged");
    }

    /// All that comes from a process that says `bytes`, then `words` as its standard error has them, and ends with `code`.
    fn said(bytes: &[u8], words: &str, code: u8) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("said");
        fs::write(&file, bytes).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("cat \"$0\"; printf '{words}' >&2; exit {code}")).arg(&file);
        let mut found = Vec::new();
        let read = answered(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?.read_to_end(&mut found);
        read.map(|_| found).map_err(|error| super::super::Problem::of(&error).unwrap().to_owned())
    }

    #[test]
    fn what_a_signal_ended_is_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("starts");
        let read = |most: usize| {
            fs::write(&file, "").unwrap();
            let mut command = Command::new("sh");
            let script = format!("echo >> \"$0\"; if [ $(wc -l < \"$0\") -lt {most} ]; then kill -TERM $$; fi; printf whole");
            command.arg("-c").arg(script).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
            answered(&mut command).map(|answer| io::read_to_string(answer).unwrap())
        };
        assert_eq!(read(TRIES).unwrap(), "whole");
        assert!(read(TRIES + 1).unwrap_err().contains("run the same command again"));
    }

    #[test]
    fn what_is_said_arrives() {
        for length in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7] {
            let values: Vec<u8> = (0..length).map(|place| place as u8).collect();
            assert!(said(&values, "words of a library", exit::DONE).unwrap() == values, "{length}");
        }
    }

    #[test]
    fn a_problem_and_an_early_end_are_errors() {
        for length in [0, 1, BLOCK, 3 * BLOCK + 7] {
            let values = vec![7; length];
            assert_eq!(said(&values, "noise\\0damaged", PROBLEM).unwrap_err(), "damaged", "{length}");
            assert!(said(&values, "dps: no memory", exit::DEVICE).unwrap_err().contains("more memory"), "{length}");
            assert!(said(&values, "", exit::UNEXPECTED).unwrap_err().contains("without a word"), "{length}");
        }
    }
}
