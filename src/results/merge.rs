//! Parts of one study put together, as a job array leaves them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Environment, LONGEST_COMMAND, Results};
use crate::config::{self, GRID_KEYS, IGNORED_KEYS, Study, differences};
use crate::error::short;
use crate::records::{Cell, all_finished};
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
        study.grid.join(&theirs.grid);
        merged.environment.join(&part.environment);
        for cell in part.cells {
            add(&mut merged.cells, cell).map_err(|problem| refuse(&path, problem))?;
        }
    }
    // In ascending order, however the one configuration of a single part has them.
    study.grid.join(&study.grid.clone());
    let order = |a: &Cell, b: &Cell| a.key.batch_size.cmp(&b.key.batch_size).then(a.key.sparsity.total_cmp(&b.key.sparsity));
    merged.cells.sort_by(order);
    merged.complete = all_finished(&merged.cells, &study.grid);
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
    let ignored = [&IGNORED_KEYS[..], &GRID_KEYS[..]].concat();
    let mut found: Vec<String> =
        differences(study, theirs, &ignored).iter().map(|difference| difference.between(first.display(), "this file")).collect();
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
    match cells.iter().find(|known| known.key == cell.key) {
        None => cells.push(cell),
        Some(known) if known.agrees(&cell) => {}
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

impl Environment {
    /// The releases, as "major.minor", of the programs that wrote the records. Programs of one release give the same records.
    pub fn releases(&self) -> String {
        let release = |version: &str| version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        let releases: BTreeSet<String> = self.program_version.split("; ").map(release).collect();
        releases.into_iter().collect::<Vec<_>>().join(" and ")
    }

    /// Takes in another part's: distinct texts in one, the most ranks and threads, all starts, the earliest start and the latest end.
    fn join(&mut self, other: &Environment) {
        for (mine, theirs) in [
            (&mut self.program_version, &other.program_version),
            (&mut self.commit, &other.commit),
            (&mut self.source_tree, &other.source_tree),
            (&mut self.compiler, &other.compiler),
            (&mut self.command_line, &other.command_line),
            (&mut self.processor, &other.processor),
            (&mut self.mpi_library, &other.mpi_library),
            (&mut self.host, &other.host),
            (&mut self.device, &other.device),
        ] {
            let texts: BTreeSet<&str> = mine.split("; ").chain(theirs.split("; ")).filter(|text| !text.is_empty()).collect();
            *mine = texts.into_iter().collect::<Vec<_>>().join("; ");
        }
        self.command_line = short(&self.command_line, LONGEST_COMMAND);
        self.ranks = self.ranks.max(other.ranks);
        self.threads = self.threads.max(other.threads);
        // In order of time; those of a part that was merged before are there already.
        self.starts.extend(other.starts.iter().cloned());
        self.starts.sort();
        self.starts.dedup();
        if other.started < self.started {
            self.started.clone_from(&other.started);
        }
        if other.finished > self.finished {
            self.finished.clone_from(&other.finished);
        }
    }
}
