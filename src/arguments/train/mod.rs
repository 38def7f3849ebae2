//! What the command line of `dps-train` means: one variant of [`Train`] for each command. `options` declares what can be typed, and `reading`
//! makes the one of the other. A word that belongs to the configuration goes on as text, for the configuration's rules to check.

mod options;
mod reading;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::{DatasetName, Override};
use crate::init::Given;
use crate::pilot::Asked;
use crate::progress::ProgressForm;

/// What `dps-train` is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Train {
    /// Measure a study, or plan it.
    Study(StudyArguments),
    /// Propose goal, steps, interval and ranges of a study.
    Pilot(PilotArguments),
    /// List a study's cells.
    Cells(StudyArguments),
    /// Put the results of parts of a study together.
    Merge {
        /// The parts' result files.
        parts: Vec<PathBuf>,
        /// The result file of the whole.
        output: PathBuf,
        /// Whether a file that is there may be replaced.
        force: bool,
    },
    /// Say how far studies are.
    Status {
        /// The studies' result files.
        results: Vec<PathBuf>,
        /// Text for people, or JSON.
        form: StatusForm,
    },
    /// Train one recorded trial again.
    Replay(ReplayArguments),
    /// Say what this machine has for a study.
    Doctor {
        /// The folder of all data sets.
        data: PathBuf,
        /// Whether it must have a GPU.
        gpu: bool,
    },
    /// Fetch a data set into a folder.
    FetchData {
        /// Which.
        dataset: DatasetName,
        /// The folder of all data sets.
        data: PathBuf,
    },
    /// Write a new configuration.
    Init {
        /// File of the new configuration.
        path: PathBuf,
        /// What it is of; the rest is asked.
        given: Given,
        /// The folder of all data sets.
        data: PathBuf,
    },
    /// Run a command that measures a study until it is done.
    Supervise {
        /// The command.
        command: Vec<OsString>,
        /// The study's result file.
        output: PathBuf,
        /// The hosts that it may use: a list or a file.
        hosts: Option<String>,
        /// What runs a command on a host.
        reach: String,
        /// Starts in a row without progress after which it gives up.
        tries: u32,
    },
    /// Note how the last start of a study ended.
    Ended {
        /// The study's result file.
        output: PathBuf,
        /// Exit code of that start.
        code: u8,
    },
    /// List the configurations that come with the program, or print one.
    Configs {
        /// Which one to print.
        name: Option<String>,
    },
    /// Print a text.
    Print {
        /// The whole of it.
        text: String,
    },
    /// Write the manual pages into a folder.
    Man {
        /// The folder.
        folder: PathBuf,
        /// Each page's file name, and the page.
        pages: Vec<(String, String)>,
    },
    /// Say what the data of a study are.
    CheckData {
        /// The configuration file.
        config: PathBuf,
        /// What the command line changes in it.
        overrides: Vec<Override>,
        /// The folder of all data sets.
        data: PathBuf,
    },
    /// List the data sets that can be fetched.
    ListData {
        /// The folder of all data sets.
        data: PathBuf,
    },
}

/// A study to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyArguments {
    /// The configuration file; or where the study is that of a result file, that file.
    pub config: PathBuf,
    /// Whether it is a result file, whose cells are confirmed.
    pub confirms: bool,
    /// What the command line changes in it: `--set` in order, then the options that have a name of their own.
    pub overrides: Vec<Override>,
    /// The folder of all data sets.
    pub data: PathBuf,
    /// The result file; by default `results/<stem of the configuration>.h5`.
    pub output: PathBuf,
    /// Print what the study would cost and end.
    pub plan: bool,
    /// Start over, with the files of an earlier run moved aside.
    pub fresh: bool,
    /// Say nothing but errors.
    pub quiet: bool,
    /// Say what is decided and done along the way.
    pub verbose: bool,
    /// How progress is shown; [`ProgressForm::None`] where quiet.
    pub progress: ProgressForm,
}

/// A pilot of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct PilotArguments {
    /// How the curves are trained: `output` is the proposal, a TOML file.
    pub study: StudyArguments,
    /// Of its changes to the configuration, how many the proposal keeps: those behind them say where to train.
    pub kept: usize,
    /// How many curves there are, and of how many steps.
    pub asked: Asked,
}

/// A recorded trial to train again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayArguments {
    /// The result file.
    pub results: PathBuf,
    /// The cell's batch size.
    pub batch_size: u32,
    /// The cell's sparsity.
    pub sparsity: f64,
    /// The trial's number; none: the cell's best.
    pub trial: Option<u32>,
    /// The number of a confirmation of that trial's point, in place of the trial.
    pub confirmation: Option<u32>,
    /// What the command line changes in the configuration: where to train.
    pub overrides: Vec<Override>,
    /// The folder of all data sets.
    pub data: PathBuf,
    /// Where the curve goes as comma-separated values.
    pub csv: Option<PathBuf>,
}

/// How [`Train::Status`] is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusForm {
    /// Lines for a person.
    Text,
    /// A JSON object a line.
    Json,
    /// A line that changes only when the study advances.
    Progress,
}
