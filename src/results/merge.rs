//! Parts of one study put together, as a job array leaves them.

use std::path::{Path, PathBuf};

use super::Results;
use super::attributes::Attributes;
use crate::records::{Cell, Confirmation, Trial, all_finished, keep_wanted};
use crate::search::Search;
use crate::settings::{self, DeviceName, MOST_TRIALS, Study, contradictions};
use crate::{Error, Result};

/// The results of one study from parts of it that measured different cells, or different trials of them, each with its file's name: the cells of all
/// by batch size, then sparsity; the configuration of the first with the batch sizes, sparsities and trials of all; the environments' distinct texts
/// beside each other. A race is one race of all trials of a cell, as in a run that measures them all. Parts may have been run on other devices,
/// threads and ranks: the merged configuration's device is `auto` where theirs differ. The order of the parts decides only whose threads, lanes and
/// times of `[execution]` it has.
///
/// # Errors
/// [`Error::Results`] naming the part that does not fit: it is of another configuration (the differing keys are named) or of other data,
/// or it has a cell with other records than a part before it; the numbers of the trials are too far apart; or there is no part.
pub fn merge(parts: Vec<(PathBuf, Results)>) -> Result<Results> {
    let refuse = |path: &Path, problem: String| Error::Results { path: path.to_owned(), problem };
    let mut parts = parts.into_iter();
    let Some((first, mut merged)) = parts.next() else {
        return Err(refuse(Path::new("merge"), "expected result files to merge, found none; name those of one study".into()));
    };
    let mut study = configuration(&first, &merged)?;
    for (path, part) in parts {
        let theirs = configuration(&path, &part)?;
        let mut different = different(&merged, &study, &part, &theirs);
        if !different.is_empty() {
            let more = different.len().saturating_sub(SHOWN);
            different.truncate(SHOWN);
            if more > 0 {
                different.push(format!("and {more} more"));
            }
            let [first, different] = [first.display().to_string(), different.join("; ")];
            return Err(refuse(
                &path,
                format!("expected a part of the study in {first}, found another ({different}); merge parts of one study"),
            ));
        }
        study.join(&theirs);
        if theirs.execution.device != study.execution.device {
            study.execution.device = DeviceName::Auto;
        }
        if study.grid.trials > MOST_TRIALS {
            let (trials, mine) = (study.trials(), theirs.trials());
            let problem = format!(
                "expected trials whose numbers are at most {MOST_TRIALS} apart, found trials from {} to {}, of which this file has those from {} on; \
                 merge files whose trials follow each other",
                trials.start,
                trials.end - 1,
                mine.start
            );
            return Err(refuse(&path, problem));
        }
        let (environment, starts) = (&mut merged.environment, part.environment.starts.clone());
        environment.join(&part.environment);
        // In order of time; those of a part that was merged before are there already.
        environment.starts.extend(starts);
        environment.starts.sort();
        environment.starts.dedup();
        for cell in part.cells {
            add(&mut merged.cells, cell, &study).map_err(|problem| refuse(&path, problem))?;
        }
    }
    // Joining the study with itself sorts its batch sizes and sparsities, which a single part may have in another order.
    study.join(&study.clone());
    merged.cells.sort_by(|a, b| a.key.order(&b.key));
    keep_wanted(&mut merged.cells, &study);
    merged.complete = all_finished(&merged.cells, &study);
    merged.configuration = settings::canonical(&study)?;
    Ok(merged)
}

fn configuration(path: &Path, results: &Results) -> Result<Study> {
    let name = path.display().to_string();
    settings::recorded(&name, &results.configuration, &[]).map(|loaded| loaded.study).map_err(|error| {
        let error = error.to_string();
        let reason = error.strip_prefix(&format!("{name}: ")).unwrap_or(&error).split_whitespace().collect::<Vec<_>>().join(" ");
        let problem = format!("its configuration is none that this program knows ({reason}); merge with the program that wrote the file");
        Error::Results { path: path.to_owned(), problem }
    })
}

/// Differences of two studies that a sentence names.
const SHOWN: usize = 3;

/// Why two results are not parts of one study: a phrase for each difference.
fn different(merged: &Results, study: &Study, part: &Results, theirs: &Study) -> Vec<String> {
    let mut found: Vec<String> = contradictions(
        study,
        &Study { search: Search { first_trial: study.search.first_trial, ..theirs.search.clone() }, ..theirs.clone() },
    )
    .iter()
    .map(|difference| difference.between("that study", "this file"))
    .collect();
    let (digest, other) = (&merged.environment.data_digest, &part.environment.data_digest);
    if digest != other {
        found.push(format!("data: that study has {digest}, this file has {other}"));
    }
    let releases = merged.environment.releases(study.execution.convolutions);
    let other = part.environment.releases(theirs.execution.convolutions);
    if releases != other {
        found.push(format!(
            "program: that study is by dps {releases}, this file by dps {other}, whose records may differ (CHANGELOG.md says how)"
        ));
    }
    // Equal data and configurations make equal workloads, but files can be changed.
    if found.is_empty() && merged.workload != part.workload {
        found.push("the group /workload says otherwise".into());
    }
    found
}

/// Adds a cell, or its trials to those of the cell that is there already: then trials that both have must have equal records, up to the end of the
/// race of both.
fn add(cells: &mut Vec<Cell>, mut cell: Cell, study: &Study) -> std::result::Result<(), String> {
    let Some(known) = cells.iter_mut().find(|known| known.key == cell.key) else {
        cells.push(cell);
        return Ok(());
    };
    let rank = |cell: &Cell| cell.best().map_or((u32::MAX, u32::MAX), |best| (best.steps.unwrap_or(u32::MAX), best.index));
    let (mine, theirs) = (rank(known), rank(&cell));
    let best = known.steps_to_result().into_iter().chain(cell.steps_to_result()).min();
    for cell in [&mut *known, &mut cell] {
        cell.end_race(&study.workload, study.execution.race, best);
    }

    let agrees = |trial: &Trial| known.trials.iter().find(|known| known.index == trial.index).map(|known| known.agrees(trial));
    let shared: Vec<bool> = cell.trials.iter().filter_map(agrees).collect();
    let same = |known: &Confirmation| cell.confirmations.iter().find(|other| other.training == known.training);
    // With a higher limit a training is longer.
    let confirms = |known: &Confirmation| same(known).is_none_or(|other| other.run.steps_run != known.run.steps_run || other.agrees(known));
    let is_tested_alike = mine != theirs || known.test_errors == cell.test_errors;
    if shared.contains(&false) || !is_tested_alike || !known.confirmations.iter().all(confirms) {
        return Err(format!(
            "its records of {} differ from those of a part before it; the same study gives the same results, so two programs or processors had a \
             part in it: leave out one of the files",
            cell.key
        ));
    }
    if theirs < mine {
        known.test_errors = cell.test_errors;
    }
    let is_fresh = |trial: &Trial| known.trials.iter().all(|known| known.index != trial.index);
    let fresh: Vec<Trial> = cell.trials.into_iter().filter(is_fresh).collect();
    known.seconds += if shared.is_empty() { cell.seconds } else { fresh.iter().map(|trial| trial.seconds).sum() };
    known.trials.extend(fresh);
    known.trials.sort_by_key(|trial| trial.index);
    known.confirmations.extend(cell.confirmations);
    Ok(())
}
