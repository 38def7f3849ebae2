//! Where a run begins: the files of rank 0, what they say of earlier runs, and where a cell goes on.

use std::path::Path;
use std::time::SystemTime;

use super::files::{Beginning, Files, Restored, now};
use super::place::Place;
use crate::comm::{host_name, processor_model, together};
use crate::data::Dataset;
use crate::error::short;
use crate::journal::{Checkpoint, Partial};
use crate::network::Network;
use crate::progress::{Event, Observer};
use crate::records::{Cell, CellKey, Start, Trial, best};
use crate::results::{Environment, LONGEST_COMMAND, Results, WorkloadSummary};
use crate::settings::{Configuration, each_once};
use crate::training::CellState;
use crate::version::{COMMIT, COMPILER, SOURCE_TREE, VERSION, VERSION_AND_COMMIT};
use crate::{Error, Result};

/// Where a run keeps what it measures.
pub(super) struct RunFiles<'a> {
    pub output: &'a Path,
    pub beginning: Beginning<'a>,
    /// On rank 0, once they are open.
    pub files: Option<Files>,
}

/// Opens rank 0's files; what they say, on every rank.
pub(super) fn open(
    configuration: &Configuration,
    dataset: &Dataset,
    network: &Network,
    place: &Place,
    files: &mut RunFiles,
    observer: &mut dyn Observer,
) -> Result<Restored> {
    let (world, start) = (place.world, this_start(place));
    let opened = if world.rank() == 0 {
        let mut tell = |event: Event| observer.event(&event);
        let opened = Files::open(configuration, dataset, network, files.output, place, files.beginning, &mut tell);
        opened.and_then(|(mut opened, mut restored)| {
            opened.start(start, &mut restored.contents.starts)?;
            Ok(Some((opened, restored)))
        })
    } else {
        Ok(None)
    };
    let bytes = match together(world, opened)? {
        Some((opened, restored)) => {
            files.files = Some(opened);
            postcard::to_stdvec(&restored).unwrap_or_default()
        }
        None => Vec::new(),
    };
    postcard::from_bytes(&world.broadcast(bytes)).map_err(|cause| Error::Communication {
        rank: world.rank(),
        problem: format!("expected what rank 0 read from the journal, found something else ({cause}); run the same program on all ranks"),
    })
}

/// Bytes that names of hosts may have; names beyond them are left out.
const NAMES_BYTES: usize = 240;

/// The record of this start, but for its number and the end of the one before; the hosts are known on rank 0. Every rank must call it.
fn this_start(place: &Place) -> Start {
    let names_of_ranks = place.world.gather(host_name().as_bytes());
    let hosts = each_once(names_of_ranks.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Start {
        began: now.map_or(0, |now| now.as_micros() as u64),
        ranks: place.world.size() as u32,
        threads: place.threads as u32,
        hosts: hosts.len() as u32,
        host_names: names(&hosts),
        program: VERSION_AND_COMMIT.into(),
        ..Start::default()
    }
}

/// The names with commas between, those that fit.
fn names(hosts: &[String]) -> String {
    let mut text = String::new();
    for name in hosts {
        if text.len() + name.len() > NAMES_BYTES {
            return text + ", …";
        }
        text += if text.is_empty() { "" } else { ", " };
        text += name;
    }
    text
}

/// Where a cell goes on.
pub(super) struct Begun {
    pub state: CellState,
    /// Whether the cell was finished with fewer trials, and whether this run is the first to know that the cell gets more.
    pub extended: bool,
    pub is_new_extension: bool,
    /// The cell's trials that the journal has.
    pub journaled: Vec<Trial>,
}

/// Where a cell goes on: at its checkpoint, without the trials whose end is journaled. The best of those trains again where the checkpoint lacks its
/// test errors, which are measured on its weights. A cell that was finished with fewer trials begins with all of them and its test errors.
pub(super) fn begin_from(key: CellKey, results: &Results, partial: &[Partial], left: Option<&Checkpoint>) -> Begun {
    if let Some(cell) = results.cells.iter().find(|cell| cell.key == key) {
        let Cell { trials, test_errors, seconds, .. } = cell.clone();
        let state = CellState { ended: trials.clone(), test_errors, seconds, ..CellState::default() };
        return Begun { state, extended: true, is_new_extension: true, journaled: trials };
    }
    let left = left.filter(|left| left.key == key && left.confirming.is_none());
    let mut state = left.map(|left| left.state.clone()).unwrap_or_default();
    let partial = partial.iter().find(|partial| partial.cell.key == key);
    let extended = partial.filter(|partial| partial.extended);
    let journaled: &[Trial] = partial.map_or(&[], |partial| &partial.cell.trials);
    let number = |trial: Option<&Trial>| trial.map(|trial| trial.index);
    let best_of_all = number(best(journaled.iter().chain(&state.ended)));
    if best_of_all != number(best(&state.ended)) {
        // The checkpoint's test errors are of a trial that is no longer the best.
        state.test_errors = None;
    }
    if let (Some(Partial { cell, .. }), None) = (extended, state.test_errors) {
        state.test_errors = cell.test_errors;
        state.seconds = state.seconds.max(cell.seconds);
    }
    for trial in journaled {
        let again = state.test_errors.is_none() && best_of_all == Some(trial.index);
        if !again && state.ended.iter().all(|ended| ended.index != trial.index) {
            state.ended.push(trial.clone());
            state.lanes.retain(|lane| lane.trial.index != trial.index);
        }
    }
    if state.lanes.is_empty() {
        // The trials that the checkpoint was of have ended since, and others begin.
        state.step = 0;
    }
    Begun { state, extended: extended.is_some(), is_new_extension: false, journaled: journaled.to_vec() }
}

/// The results of a study with no cell measured yet.
pub(super) fn no_cells(
    configuration: &Configuration,
    dataset: &Dataset,
    place: &Place,
    device: String,
    threshold: u32,
    parameters: usize,
) -> Results {
    let workload = &configuration.study.workload;
    Results {
        configuration: configuration.text.clone(),
        environment: Environment {
            program_version: VERSION.into(),
            commit: COMMIT.into(),
            source_tree: SOURCE_TREE.into(),
            compiler: COMPILER.into(),
            command_line: short(&place.command_line, LONGEST_COMMAND),
            processor: processor_model(),
            mpi_library: place.mpi_library.clone(),
            ranks: place.world.size() as u32,
            threads: place.threads as u32,
            host: host_name(),
            device,
            data_digest: dataset.digest.clone(),
            started: String::new(),
            finished: now(),
            starts: Vec::new(),
        },
        workload: WorkloadSummary {
            dataset: workload.dataset.to_string(),
            network: workload.network.to_string(),
            optimizer: workload.optimizer.to_string(),
            schedule: workload.schedule.to_string(),
            goal_error: workload.goal_error,
            goal_threshold: threshold,
            validation_examples: dataset.validation.len() as u32,
            training_examples: dataset.particulars.has_own_validation.then_some(dataset.training.len() as u32),
            test_examples: dataset.test.len() as u32,
            max_steps: workload.budget(),
            evaluate_every: workload.evaluate_every,
            parameters: parameters as u32,
        },
        cells: Vec::new(),
        complete: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_cut_between_two() {
        let hosts: Vec<String> = (0..100).map(|number| format!("node{number}")).collect();
        let text = names(&hosts);
        assert!(text.starts_with("node0, node1, ") && text.ends_with(", …") && text.len() < 255, "{text}");
        assert_eq!(names(&hosts[..2]), "node0, node1");
    }
}
