//! A study as data: what a configuration file says, after validation.
//!
//! The types are written out by serde, but read by hand, so that no study exists that was not validated.

use serde::Serialize;

use super::confirm::{self, Confirm};
use super::execution::{self, Execution};
use super::grid::{self, Grid};
use super::smoothness::{self, Smoothness};
use super::workload::{self, Workload};
use crate::config::key::SectionHelp;
use crate::config::reader::{Problems, Section};
use crate::config::tree::Table;
use crate::data::DataSplit;
use crate::data::section as data;
use crate::pruning::Pruning;
use crate::pruning::section as pruning;
use crate::search::Search;
use crate::search::section as search;

/// A whole configuration file. Source: protocol of Lee et al., ICLR 2021, section 3 and appendix B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// Data set, network, optimizer and goal.
    pub workload: Workload,
    /// The cells, and how many trials each has.
    pub grid: Grid,
    /// How connections are removed before training.
    pub pruning: Pruning,
    /// Where the trials' metaparameters come from.
    pub search: Search,
    /// How the data set is split.
    pub data: DataSplit,
    /// Measurements of the loss surface along training; absent where there are none. They change no step that is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<Smoothness>,
    /// How the best points of each cell are trained again; absent where none is. It changes no trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// How the work is run. Only what changes rounding (device, convolutions, products, tf32, reduction) can change a cell's steps-to-result.
    pub execution: Execution,
}

impl Study {
    /// The numbers of the study's trials.
    pub fn trials(&self) -> std::ops::Range<u32> {
        let first = self.search.first_trial;
        first..first.saturating_add(self.grid.trials)
    }

    /// Takes in what another run of the study has measured or asked for beyond this one: cells, trials and confirmations. Both must be of one study.
    pub fn join(&mut self, other: &Study) {
        let (mine, theirs) = (self.trials(), other.trials());
        self.grid.join(&other.grid);
        self.search.first_trial = mine.start.min(theirs.start);
        self.grid.trials = mine.end.max(theirs.end) - self.search.first_trial;
        self.join_confirmations(other);
    }

    /// Takes in what another run of the study has asked for of confirmations, which must be of one kind.
    pub fn join_confirmations(&mut self, other: &Study) {
        match (&mut self.confirm, &other.confirm) {
            (Some(mine), Some(theirs)) => mine.join(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
    }
}

/// All that is said of the sections and their keys.
pub(super) fn sections() -> Vec<SectionHelp> {
    vec![
        workload::help(false),
        grid::help(false),
        pruning::help(false),
        search::help(),
        data::help(false),
        smoothness::help(true),
        confirm::help(true),
        execution::help(false),
    ]
}

/// The study that `table` describes, or every sentence about why it is none.
pub(super) fn read(table: &Table) -> Result<Study, Vec<String>> {
    let mut problems = Problems::default();
    let study = {
        let mut root = Section::root(table, &mut problems);
        let workload = workload::read(root.section("workload", required(workload::help(false))));
        let grid = grid::read(root.section("grid", required(grid::help(false))));
        let pruning = pruning::read(root.section("pruning", None));
        let search = search::read(root.section("search", None), workload.optimizer, workload.schedule);
        let data = data::read(root.section("data", None), workload.dataset.as_ref());
        let smoothness = smoothness::read(root.section("smoothness", None));
        let confirm = confirm::read(root.section("confirm", None));
        let execution = execution::Draft::read(&mut root.section("execution", None)).complete();
        (|| {
            Some(Study {
                workload: workload.complete()?,
                grid: grid?,
                pruning: pruning?,
                search: search?,
                data: data?,
                smoothness: smoothness?,
                confirm: confirm?,
                execution: execution?,
            })
        })()
    };
    let sentences = problems.sentences();
    match study {
        Some(study) if sentences.is_empty() => Ok(study),
        _ => Err(sentences),
    }
}

/// The keys that a section must have, as a sentence names them.
fn required(section: SectionHelp) -> Option<String> {
    let names: Vec<&str> = section.keys.iter().filter(|key| key.is_required()).map(|key| key.name).collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) })
}
