//! The programs that fetch: curl for web addresses, and package clients.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::checked::Reason;
use crate::child::{Output, end_within};
use crate::reader::Problem;

/// Longest run of a package client, and how often it is said that it still runs.
pub(super) const LIMITS: (Duration, Duration) = (Duration::from_secs(180), Duration::from_secs(30));

/// The body at a web address, which may take until the `deadline`. curl fetches it: it knows the proxies and certificates of its machine, and gives
/// up a connection after 5 seconds and a server that says nothing after 20.
pub(super) fn download(address: &str, deadline: Duration) -> Result<impl Read + use<>, String> {
    let seconds = format!("{:.1}", deadline.as_secs_f64());
    let options =
        ["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "5", "--speed-limit", "1", "--speed-time", "20"];
    let (curl, mut words) = start("curl", &[&options[..], &["--max-time", &seconds, address]].concat(), Path::new("."), Stdio::piped())?;
    let ended = move |curl: &mut Child| {
        let status = curl.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(Problem(format!("curl failed ({status}): {}", said(&mut words)))))
    };
    // Where nothing comes, the reason is curl's and not the file's.
    Output::begun(curl, ended).map_err(|error| error.to_string())
}

/// Starts a program in `folder`; what it says as errors goes to a file, since a pipe that nobody reads would stop a talkative one.
fn start(program: &str, arguments: &[&str], folder: &Path, output: Stdio) -> Result<(Child, File), String> {
    let words = tempfile::tempfile().map_err(|error| error.to_string())?;
    let errors = words.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(output).stderr(errors);
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the command {program} is not installed"),
        _ => format!("the command {program} cannot be run: {error}"),
    })?;
    Ok((child, words))
}

/// The first lines of what a program said.
fn said(words: &mut File) -> String {
    let mut said = Vec::new();
    let read = words.rewind().and_then(|()| words.take(1 << 16).read_to_end(&mut said));
    let said = read.map_or_else(|error| error.to_string(), |_| String::from_utf8_lossy(&said).into_owned());
    said.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join("; ")
}

/// Runs a package client in `folder`, no longer than the first of two times, and says after each of the second ones that it still runs; what it says
/// on failure is the reason.
pub(super) fn run(
    (limit, word): (Duration, Duration),
    program: &str,
    arguments: &[&str],
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Reason {
    let (mut child, mut words) = start(program, arguments, folder, Stdio::null())?;
    let mut told = Duration::ZERO;
    let ended = end_within(&mut child, limit, |long| {
        if long >= told + word {
            told += word;
            progress(&format!("{program} has run for {} s; it is ended after {} s", told.as_secs_f64(), limit.as_secs_f64()));
        }
    });
    let status = ended
        .map_err(|error| format!("{program} is lost: {error}"))?
        .ok_or_else(|| format!("{program} took more than {} s", limit.as_secs_f64()))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status}): {}", said(&mut words))) }
}

/// The one file in `folder` with this extension, which a package client has just put there.
pub(super) fn with_extension(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).ok_or_else(|| format!("no .{extension} file came"))
}
