//! The commands that look at studies, or prepare or supervise them, without training. A command gives the text that it prints, or its exit code.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};

use dps::arguments::StudyArguments;
use dps::config::Override;
use dps::init::{self, Given};
use dps::readable::{shell_path, some};
use dps::records::{Cell, CellKey};
use dps::results::Results;
use dps::storage::Disk;
use dps::streams::{err, prompt};
use dps::supervise::{self, Hosts};
use dps::{Error, Result, data, journal, records, results, settings, study};

use crate::{common, listen};

/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 1_000;

/// The cells of a study, numbered as they are measured, and the trials of each.
pub fn list(arguments: &StudyArguments) -> Result<String> {
    let study = settings::load(&arguments.config, &arguments.overrides())?.study;
    let lines = records::cells(&study.grid).into_iter().enumerate();
    Ok(lines.map(|(index, key)| format!("{index} {} {} {}\n", key.batch_size, key.sparsity, study.grid.trials)).collect())
}

/// Says what the data of a study are.
pub fn check_data(path: &Path, overrides: &[Override], data: &Path) -> Result<String> {
    let study = settings::load(path, overrides)?.study;
    data::check(&study.workload.dataset, data, &study.data)
}

/// Writes a new configuration, asking at the terminal for what is not given.
pub fn new_configuration(path: &Path, given: &Given, data: &Path) -> Result<String> {
    let mut ask = |question: &str| {
        prompt(question);
        let mut answer = String::new();
        // Reading stops after `LONGEST_ANSWER` bytes, so that input without an end of line cannot fill the memory.
        let read = std::io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer).ok()?;
        (read > 0).then_some(answer)
    };
    let terminal = std::io::stdin().is_terminal();
    let classes =
        |dataset: &data::DatasetChoice| data::Facts::of(dataset, data, &data::DataSplit::default()).map(|facts| facts.classes as u32);
    let written = init::init(path, given, if terminal { Some(&mut ask) } else { None }, &classes)?;
    // The configuration is right; the data may be missing, or be none that the network can read.
    let facts = data::Facts::of(&written.study.workload.dataset, data, &written.study.data);
    let problem = facts.and_then(|facts| study::check(&written, &facts)).err();
    let problem = problem.map_or(String::new(), |problem| format!("It cannot be measured as it is: {problem}\n"));
    let (file, data) = (shell_path(path), data::folder_option(data));
    Ok(format!(
        "{} is written. Goal, steps and ranges for it: dps-train pilot {file}{data}; what it costs at most: dps-train {file} --plan{data}\n{problem}",
        path.display()
    ))
}

/// Writes manual pages into a folder.
pub fn write_pages(folder: &Path, pages: &[(String, String)]) -> Result<String> {
    pages.iter().try_for_each(|(name, page)| results::publish(&folder.join(name), page.as_bytes()))?;
    Ok(format!("{}: {}\n", folder.display(), some(pages.len(), "manual page")))
}

/// Writes one result file from parts of a study.
pub fn merge(parts: Vec<PathBuf>, output: &Path, force: bool) -> Result<String> {
    let refuse = |problem: String| Err(Error::Results { path: output.to_owned(), problem });
    if let Some(problem) = journal::refused_name(output) {
        return refuse(problem.to_owned());
    }
    let journal = journal::journal_path(output);
    if journal.exists() {
        // The study's next run would write the file anew, without what was merged.
        return refuse(format!("it is the result of the study whose journal is {}; choose another --output", journal.display()));
    }
    if !force && output.exists() {
        return refuse("expected no such file, found one; choose another --output, or --force to replace it".into());
    }
    let parts = parts.into_iter().map(|path| results::read(&path).map(|part| (path, part))).collect::<Result<Vec<_>>>()?;
    let (count, confirmed) = (parts.len(), confirmations(parts.iter().flat_map(|(_, part)| &part.cells)));
    let merged = results::merge(parts)?;
    let left_out = confirmed - confirmations(&merged.cells);
    let is_file = fs::symlink_metadata(output).is_ok_and(|found| found.is_file());
    let moves = match is_file && !results::read(output).is_ok_and(|old| has_all_of(&merged, old)) {
        true => journal::set_result_aside(output, &Disk).map_err(|error| match error {
            Error::Journal { path, problem } => Error::Results { path, problem },
            other => other,
        })?,
        false => Vec::new(),
    };
    results::write(output, &merged).inspect_err(|_| {
        // The name has what it had before; where that fails too, the old file is beside it.
        moves.iter().for_each(|(name, old)| drop(fs::rename(old, name)));
    })?;
    let state = if merged.complete { "complete" } else { "incomplete" };
    let moved: String = moves.iter().map(|(_, old)| format!("; what was there is {}", old.display())).collect();
    let left_out = match left_out {
        0 => String::new(),
        some_left => format!(
            "; without {}, of points that the whole study does not confirm, or evaluated less often than others of their cell",
            some(some_left, "confirmation")
        ),
    };
    Ok(format!("{}: {} from {}, {state}{left_out}{moved}\n", output.display(), some(merged.cells.len(), "cell"), some(count, "file")))
}

/// How many confirmations there are in cells, of which several may have the same.
fn confirmations<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> usize {
    let of_cell = |cell: &'c Cell| {
        let CellKey { batch_size, sparsity } = cell.key;
        cell.confirmations.iter().map(move |one| (batch_size, sparsity.to_bits(), one.training))
    };
    cells.into_iter().flat_map(of_cell).collect::<HashSet<_>>().len()
}

/// Whether results have every cell and every start of an older file.
fn has_all_of(merged: &Results, old: Results) -> bool {
    let part = |results| (PathBuf::new(), results);
    results::merge(vec![part(merged.clone()), part(old)]).is_ok_and(|both| {
        let agree = both.cells.iter().zip(&merged.cells).all(|(one, other)| one.agrees(other));
        agree && both.cells.len() == merged.cells.len() && both.environment.starts == merged.environment.starts
    })
}

/// How far the study of the result file at `path` is: for people, as JSON, or as the line that changes with the study's progress.
pub fn status(path: &Path, json: bool, progress: bool) -> Result<String> {
    let report = study::status(path)?;
    Ok(match () {
        () if json => format!("{}\n", report.json()),
        () if progress => format!("{}\n", report.progress()),
        () => report.to_string(),
    })
}

/// The exit code of a command that is started again until it is done.
pub fn supervised(command: &[OsString], hosts: Option<&Hosts>, output: &Path, tries: u32) -> u8 {
    if let Err(cause) = listen(false) {
        err(&format!("dps-train: signals cannot be caught ({cause}): they end this process, and the command goes on"));
    }
    common::finish("dps-train", supervise::supervise(command, hosts, output, tries))
}
