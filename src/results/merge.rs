//! Parts of one study put together, as a job array leaves them.

use std::path::{Path, PathBuf};

use super::Results;
use super::attributes::Attributes;
use crate::config::{self, Study, contradictions};
use crate::records::{Cell, Confirmation, Wanted, all_finished};
use crate::{Error, Result};

/// The results of one study from parts of it that measured different cells, each with its file's name: the cells of all by batch size,
/// then sparsity; the configuration of the first with the batch sizes and sparsities of all and the most trials; the environments' distinct texts
/// beside each other.
/// Parts may have been run on other devices, threads and ranks. The order of the parts makes no difference but to those settings.
///
/// # Errors
/// [`Error::Results`] naming the part that does not fit: it is of another configuration (the differing keys are named) or of other data,
/// or it has a cell with other records than a part before it; or there is no part.
pub fn merge(parts: Vec<(PathBuf, Results)>) -> Result<Results> {
    let refuse = |path: &Path, problem: String| Error::Results { path: path.to_owned(), problem };
    let mut parts = parts.into_iter();
    let Some((first, mut merged)) = parts.next() else {
        return Err(refuse(Path::new("merge"), "expected result files to merge, found none; name those of one study".into()));
    };
    let mut study = configuration(&first, &merged)?;
    for (path, part) in parts {
        let theirs = configuration(&path, &part)?;
        let different = different(&first, &merged, &study, &part, &theirs);
        if !different.is_empty() {
            let problem = format!(
                "expected a part of the study in {}, found another ({}); merge parts of one study",
                first.display(),
                different.join("; ")
            );
            return Err(refuse(&path, problem));
        }
        study.join(&theirs);
        let (environment, starts) = (&mut merged.environment, part.environment.starts.clone());
        environment.join(&part.environment);
        // In order of time; those of a part that was merged before are there already.
        environment.starts.extend(starts);
        environment.starts.sort();
        environment.starts.dedup();
        for cell in part.cells {
            add(&mut merged.cells, cell).map_err(|problem| refuse(&path, problem))?;
        }
    }
    // In ascending order, however the one configuration of a single part has them.
    study.join(&study.clone());
    let order = |a: &Cell, b: &Cell| a.key.batch_size.cmp(&b.key.batch_size).then(a.key.sparsity.total_cmp(&b.key.sparsity));
    merged.cells.sort_by(order);
    for cell in &mut merged.cells {
        if let Some(wanted) = Wanted::of(cell, &study) {
            cell.confirmations = wanted.among(&cell.confirmations);
        }
    }
    merged.complete = all_finished(&merged.cells, &study);
    merged.configuration = config::canonical(&study).map_err(|problem| refuse(&first, problem))?;
    Ok(merged)
}

fn configuration(path: &Path, results: &Results) -> Result<Study> {
    let name = path.display().to_string();
    config::parse(&name, &results.configuration, &[]).map(|loaded| loaded.study).map_err(|error| {
        let error = error.to_string();
        let reason = error.strip_prefix(&format!("{name}: ")).unwrap_or(&error).split_whitespace().collect::<Vec<_>>().join(" ");
        let problem = format!("its configuration is none that this program knows ({reason}); merge with the program that wrote the file");
        Error::Results { path: path.to_owned(), problem }
    })
}

/// Why two results are not parts of one study: a phrase for each difference.
fn different(first: &Path, merged: &Results, study: &Study, part: &Results, theirs: &Study) -> Vec<String> {
    let mut found: Vec<String> =
        contradictions(study, theirs).iter().map(|difference| difference.between(first.display(), "this file")).collect();
    let (digest, other) = (&merged.environment.data_digest, &part.environment.data_digest);
    if digest != other {
        found.push(format!("data: {} has {digest}, this file has {other}", first.display()));
    }
    let (releases, other) = (merged.environment.releases(), part.environment.releases());
    if releases != other {
        found.push(format!(
            "program: {} is by dps {releases}, this file by dps {other}, whose records may differ (CHANGELOG.md says how)",
            first.display()
        ));
    }
    // The same data and configuration make the same workload, but files can be changed.
    if found.is_empty() && merged.workload != part.workload {
        found.push("the group /workload says otherwise".into());
    }
    found
}

/// Adds a cell. One that is there already must have equal records.
fn add(cells: &mut Vec<Cell>, cell: Cell) -> std::result::Result<(), String> {
    let known = cells.iter_mut().find(|known| known.key == cell.key);
    let bare = |cell: &Cell| Cell { confirmations: Vec::new(), ..cell.clone() };
    let theirs = |known: &Confirmation| cell.confirmations.iter().find(|other| other.training == known.training);
    // With a higher limit a training is longer.
    let agrees = |known: &Confirmation| theirs(known).is_none_or(|other| other.run.steps_run != known.run.steps_run || other.agrees(known));
    match known {
        None => cells.push(cell),
        // One part may have confirmations that the other lacks.
        Some(known) if bare(known).agrees(&bare(&cell)) && known.confirmations.iter().all(agrees) => {
            known.confirmations.extend(cell.confirmations);
        }
        Some(_) => {
            return Err(format!(
                "its records of batch size {} at sparsity {} differ from those of a part before it; the same study gives the same results, \
                 so two programs or processors had a part in it: leave out one of the files",
                cell.key.batch_size, cell.key.sparsity
            ));
        }
    }
    Ok(())
}
