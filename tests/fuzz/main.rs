//! Damaged and made-up inputs for every reader of dps, for as long as one wants: `make fuzz SECONDS=60`.
//!
//! Each execution makes an input from a seed (`mutate`, and `checksums`, which puts the input's checksums right), gives it to a reader (`formats`),
//! and demands a value or an error: no panic, no abort, no more memory or time than [`MOST_BYTES`] and [`MOST_SECONDS`]. HDF5 files are read by a
//! process of its own, as the programs do it. A second process executes, so that this one can tell of its end and go on.
//!
//! `make fuzz FORMAT=npz SEED=123` executes one input again, and leaves it in target/fuzz.

mod checksums;
mod formats;
mod memory;
mod mutate;
#[path = "../journal/sample.rs"]
#[allow(dead_code)]
mod sample;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use dps::{data, reader, results};

use formats::{FORMATS, Format};
use memory::Measured;

#[global_allocator]
static ALLOCATOR: Measured = Measured;

/// Bytes that one execution may take in this process.
const MOST_BYTES: usize = 400 << 20;
/// Seconds that one execution may take.
const MOST_SECONDS: u64 = 20;
/// Time for executions of one format in a row; of those that start a process each, more.
const TURN: Duration = Duration::from_millis(100);
const LONG_TURN: Duration = Duration::from_millis(1_000);

fn main() {
    if let Some(code) = reader::begin(&[results::READING, data::READING]) {
        // SAFETY: _exit takes any number and does nothing but end the process.
        unsafe { libc::_exit(code.into()) }
    }
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let number = |name: &str| variable(name).map(|value| value.parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number: {value}")));
    let folder = tempfile::Builder::new().prefix("dps-fuzz").tempdir().expect("a folder for inputs");
    let chosen: Vec<&Format> = FORMATS.iter().filter(|format| variable("FORMAT").is_none_or(|name| name == format.name)).collect();
    assert!(!chosen.is_empty(), "FORMAT may be one of {}", FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", "));
    if let Some(first) = number("DPS_FUZZ_FROM") {
        return execute(&chosen, first, Path::new(&variable("DPS_FUZZ_FOLDER").expect("a folder")));
    }
    if let Some(seed) = number("SEED") {
        assert!(chosen.len() == 1, "SEED needs a FORMAT");
        let kept = Path::new("target/fuzz");
        fs::create_dir_all(kept).expect("target/fuzz can be made");
        let input = (chosen[0].make)(seed);
        fs::write(kept.join(format!("{}-{seed}", chosen[0].name)), &input).expect("the input can be kept");
        println!("{} {seed}: {} bytes, kept in target/fuzz", chosen[0].name, input.len());
        let answer = (chosen[0].read)(&input, folder.path());
        println!("{}", answer.map_or_else(|said| said, |()| "accepted".to_owned()));
        return;
    }
    let seconds = number("DPS_FUZZ_SECONDS").unwrap_or(60);
    let first = number("FROM").unwrap_or(0);
    let faults = run(&chosen, Duration::from_secs(seconds), first, folder.path());
    std::process::exit(i32::from(faults > 0));
}

/// Counts of a format.
#[derive(Default)]
struct Count {
    accepted: u64,
    refused: u64,
    faults: Vec<String>,
}

/// Has other processes execute until the time is over; prints what they counted. Returns the number of faults.
fn run(chosen: &[&Format], limit: Duration, first: u64, folder: &Path) -> usize {
    let begun = Instant::now();
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut next = first;
    while begun.elapsed() < limit {
        let mut command = Command::new(env::current_exe().expect("this program has a path"));
        command.env("DPS_FUZZ_FROM", next.to_string()).env("DPS_FUZZ_FOLDER", folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("this program starts again");
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut now: Option<(&str, u64)> = None;
        let end = loop {
            let left = limit.saturating_sub(begun.elapsed());
            match lines.recv_timeout(left.min(Duration::from_secs(MOST_SECONDS))) {
                Ok(line) => {
                    let words: Vec<&str> = line.splitn(4, ' ').collect();
                    let name = chosen.iter().find(|format| words[1..].first() == Some(&format.name)).map_or("", |format| format.name);
                    let count = counts.entry(name).or_default();
                    let seed = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0);
                    match words[0] {
                        "now" => {
                            now = Some((name, seed));
                            next = next.max(seed + 1);
                        }
                        "counted" => {
                            let [accepted, refused] = [2, 3].map(|place| words[place].parse::<u64>().unwrap_or(0));
                            count.accepted += accepted;
                            count.refused += refused;
                        }
                        _ => fault(count, name, seed, words.get(3).copied().unwrap_or_default()),
                    }
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() >= limit => break None,
                Err(RecvTimeoutError::Timeout) => break Some(format!("took longer than {MOST_SECONDS} s")),
                Err(RecvTimeoutError::Disconnected) => break Some("ended the process".to_owned()),
            }
        };
        let _ = child.kill();
        let status = child.wait().expect("it was started here");
        if let (Some(what), Some((name, seed))) = (end, now) {
            // The seeds of a turn follow each other: the last one begun is in this file.
            let seed = last(folder).unwrap_or(seed);
            fault(counts.entry(name).or_default(), name, seed, &format!("{what} ({status})"));
            next = next.max(seed + 1);
        }
    }
    println!("{:<16} {:>12} {:>12} {:>12} {:>8}", "format", "executions", "accepted", "refused", "faults");
    let row = |name: &str, accepted: u64, refused: u64, faults: usize| {
        println!("{name:<16} {:>12} {accepted:>12} {refused:>12} {faults:>8}", accepted + refused + faults as u64);
    };
    counts.iter().for_each(|(name, count)| row(name, count.accepted, count.refused, count.faults.len()));
    let faults = counts.values().map(|count| count.faults.len()).sum();
    row("all", counts.values().map(|count| count.accepted).sum(), counts.values().map(|count| count.refused).sum(), faults);
    println!("seeds {first} to {}; {:.0} s", last(folder).unwrap_or(next), begun.elapsed().as_secs_f64());
    for (name, count) in &counts {
        count.faults.iter().for_each(|fault| println!("fault: make fuzz FORMAT={name} SEED={fault}"));
    }
    faults
}

/// The last seed that was begun.
fn last(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join("seed")).ok()?.trim().parse().ok()
}

fn fault(count: &mut Count, name: &str, seed: u64, what: &str) {
    println!("fault: {name} {seed}: {what}");
    count.faults.push(format!("{seed} # {what}"));
}

/// Executes from a seed on, for ever, one format after the other, and says what happens on standard output.
fn execute(chosen: &[&Format], first: u64, folder: &Path) {
    std::panic::set_hook(Box::new(|_| ()));
    let note = fs::File::create(folder.join("seed")).expect("a file in the folder");
    let mut seed = first;
    loop {
        for format in chosen {
            println!("now {} {seed}", format.name);
            let (begun, mut accepted, mut refused) = (Instant::now(), 0_u64, 0_u64);
            let turn = if ["hdf5", "results"].contains(&format.name) { LONG_TURN } else { TURN };
            while begun.elapsed() < turn {
                std::os::unix::fs::FileExt::write_all_at(&note, format!("{seed:20}").as_bytes(), 0).expect("the folder has space");
                Measured::reset();
                let answer = catch_unwind(AssertUnwindSafe(|| (format.read)(&(format.make)(seed), folder)));
                let megabytes = Measured::most() >> 20;
                let problem = match &answer {
                    Err(panic) => {
                        let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
                        Some(format!("panic: {}", words.unwrap_or("without words")))
                    }
                    Ok(_) if Measured::most() > MOST_BYTES => Some(format!("took {megabytes} MB")),
                    Ok(Err(said)) => offence(said),
                    Ok(Ok(())) => None,
                };
                match (problem, answer) {
                    (Some(problem), _) => println!("fault {} {seed} {}", format.name, problem.replace('\n', " ")),
                    (None, Ok(Ok(()))) => accepted += 1,
                    (None, _) => refused += 1,
                }
                seed += 1;
            }
            println!("counted {} {accepted} {refused}", format.name);
        }
    }
}

/// Fault of a refusal's words, if they have one.
fn offence(said: &str) -> Option<String> {
    let most = 12 * 520;
    if said.contains("unexpected failure") || said.contains("without a word") {
        return Some(said.to_owned());
    }
    if said.trim().is_empty() || said.chars().count() > most {
        return Some(format!("an error of {} letters", said.chars().count()));
    }
    None
}

/// Writes an input.
pub fn put(path: &Path, bytes: &[u8]) {
    fs::File::create(path).and_then(|mut file| file.write_all(bytes)).expect("the folder has space");
}
