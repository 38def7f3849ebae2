//! Tables, fits and figures of result files, as one page.

#![warn(clippy::print_stdout, clippy::print_stderr)]

#[path = "common/mod.rs"]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use dps::analysis::{Options, Report};
use dps::arguments::ReportArguments;
use dps::journal::{self, Lock};
use dps::readable::{LINE, shell, shell_path, some, wrapped};
use dps::settings::each_once;
use dps::{Error, analysis, exit, results, storage, streams};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Time between two looks at the files of a study that runs.
const POLL: Duration = Duration::from_secs(1);

/// Seconds after which a browser loads the page of a study that runs again.
const REFRESH: u32 = 10;

fn main() -> ExitCode {
    common::prepare("dps-report");
    streams::exit_code(run())
}

/// Does what the command line says; the exit code.
fn run() -> u8 {
    let arguments = match ReportArguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(answer) => return streams::usage(&answer),
    };
    let code = |warnings| if warnings > 0 && arguments.strict { exit::WARNINGS } else { exit::DONE };
    common::finish("dps-report", report(&arguments).map(code))
}

/// The number of warnings.
fn report(arguments: &ReportArguments) -> dps::Result<usize> {
    if let Some(page) = &arguments.claims {
        if arguments.results.iter().any(|result| journal::overwrites(result, page)) {
            let problem = "expected --claims to be another file than the results, found one that is written over them; name a .md file";
            return Err(Error::Results { path: page.clone(), problem: problem.to_owned() });
        }
        analysis::refuse_foreign_claims(page, &arguments.output)?;
    }
    let report = if arguments.live { live(arguments)? } else { made(arguments, false)? };
    for warning in &report.warnings {
        streams::err(&wrapped(&format!("Warning: {warning}"), LINE).join("\n"));
    }
    for (study, answer) in report.studies.iter().zip(&report.answers) {
        streams::out(&format!("{}\n", analysis::table(&study.results, study.apart.as_deref())));
        let next = answer.next.as_ref().map(|command| (command, with_path(command, &arguments.results)));
        for sentence in &answer.sentences {
            // A sentence may have the command that is printed below.
            let sentence = next.as_ref().map_or(sentence.clone(), |(command, here)| sentence.replace(*command, here));
            streams::out(&format!("{}\n", wrapped(&sentence, LINE).join("\n")));
        }
        streams::out(&next.map_or("\n".to_owned(), |(_, here)| format!("Next: {here}\n\n")));
    }
    if let Some(page) = &arguments.claims {
        results::publish(page, analysis::claims_page(&report.summary).as_bytes())?;
        streams::out(&format!("Claims: {}\n", page.display()));
    }
    if let Some(folder) = &arguments.shallue {
        let cells = analysis::shallue(&report.studies, folder)?;
        streams::out(&format!("Export: {} ({})\n", folder.display(), some(cells, "cell")));
    }
    streams::out(&format!("Report: {}\n", report.page.display()));
    Ok(report.warnings.len())
}

/// A command whose files are named as the command line names them.
fn with_path(command: &str, results: &[PathBuf]) -> String {
    let path = |word: &String| results.iter().find(|path| shown_name(path, results) == *word);
    let Some(words) = shlex::split(command) else { return command.to_owned() };
    // "&&" stands between two commands, and "key=value" needs no quotes.
    let is_plain = |word: &str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || "&=.,-_/".contains(letter));
    let quoted = |word: String| match path(&word) {
        Some(path) => shell_path(path),
        None if is_plain(&word) => word,
        None => shell(&[word]),
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The name by which a report knows a result file: the page may be given away, so that it names files, not folders, unless two files have one name.
fn shown_name(path: &Path, results: &[PathBuf]) -> String {
    let is_alone = results.iter().filter(|other| other.file_name() == path.file_name()).count() == 1;
    let name = if is_alone { path.file_name().unwrap_or_default() } else { path.as_os_str() };
    name.to_string_lossy().into_owned()
}

/// Writes the report again whenever a file changes, until all studies are complete and no program works on them, or a signal asks for the end; the
/// last report. Studies that are complete from the beginning, and that nobody works on, may grow.
///
/// # Errors
/// [`Error::Results`] where the end is asked for before there is a report. Those of a report.
fn live(arguments: &ReportArguments) -> dps::Result<Report> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A signal that cannot be waited for ends the program at once, as signals do.
        let _ = signal_hook::flag::register(signal, asked.clone());
    }
    let asked = || asked.load(Ordering::Relaxed);
    for path in &arguments.results {
        if !path.exists() {
            streams::err(&waiting(path));
        }
        while !path.exists() {
            if asked() {
                let problem = "expected a result file, found none until the end was asked for; give the path of a study".to_owned();
                return Err(Error::Results { path: path.clone(), problem });
            }
            thread::sleep(POLL);
        }
    }
    // Confirmations may be under way in a study whose trials are complete.
    let is_worked_on = || arguments.results.iter().any(|path| Lock::holder(&journal::lock_path(path)).is_some());
    let mut was_incomplete = false;
    loop {
        let before = changed(&arguments.results);
        let under_way = is_worked_on();
        let report = made(arguments, under_way)?;
        let is_complete = !under_way && report.studies.iter().all(|study| study.results.complete);
        if is_complete && was_incomplete {
            return Ok(report);
        }
        was_incomplete |= !is_complete;
        let cells = report.studies.iter().map(|study| study.results.cells.len()).sum();
        let state = if is_complete { ", complete: waiting for a study to grow, Ctrl-C ends" } else { " so far" };
        streams::out(&format!("Report: {} ({}{state})\n", report.page.display(), some(cells, "cell")));
        while changed(&arguments.results) == before && is_worked_on() == under_way {
            if asked() {
                return Ok(report);
            }
            thread::sleep(POLL);
        }
    }
}

/// Sentence on a result file that is not there yet: a study writes it when it begins. Without a journal no study has begun to.
fn waiting(path: &Path) -> String {
    if journal::journal_path(path).exists() {
        return format!("{}: waiting for the study to write it", path.display());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let others: BTreeSet<String> = names.filter(|name| name.ends_with(".h5")).collect();
    let advice = match others.first() {
        None => "check the path".to_owned(),
        Some(first) if others.len() == 1 => format!("did you mean {}?", folder.join(first).display()),
        Some(_) => format!("check the path, {} has {}", folder.display(), some(others.len(), "result file")),
    };
    format!("{}: no such file, and no study that has begun to write it; {advice}; waiting for it, Ctrl-C ends", path.display())
}

/// When each of the files was changed last; none for one that is not there.
fn changed(results: &[PathBuf]) -> Vec<Option<SystemTime>> {
    results.iter().map(|path| fs::metadata(path).and_then(|file| file.modified()).ok()).collect()
}

/// Reads the results and writes the report.
fn made(arguments: &ReportArguments, under_way: bool) -> dps::Result<Report> {
    let mut files = Vec::new();
    let mut digests = BTreeMap::new();
    let mut known = BTreeSet::new();
    for path in &arguments.results {
        // A file that is named twice is one file.
        if path.canonicalize().is_ok_and(|place| !known.insert(place)) {
            continue;
        }
        let name = shown_name(path, &arguments.results);
        if path.is_dir() {
            // The layout has no goal; this is the one to get below.
            files.extend(analysis::read_layout(path, arguments.goals.first().copied())?.into_iter().map(|study| (name.clone(), study)));
        } else if path.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("csv")) {
            files.extend(analysis::read_table(path)?.into_iter().map(|study| (name.clone(), study)));
        } else {
            files.push((name.clone(), results::read(path)?));
            digests.extend(storage::digest(path).ok().map(|digest| (name, digest)));
        }
    }
    let ReportArguments { results: kept, style, goals, claims, .. } = arguments.clone();
    let refresh = arguments.live.then_some(REFRESH);
    let goals = each_once(goals);
    analysis::report(files, &arguments.output, &Options { style, goals, refresh, under_way, kept, claims, digests })
}
