//! Command line of `dps-train`, declared for clap: parser, help, completions and manual pages are made of it, and the programs read its fields. A
//! word that belongs to the configuration goes on as text, for the configuration's rules to check.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::arguments::WIDTH;
use crate::config::Override;
use crate::data::DatasetName;
use crate::exit;
use crate::init::Given;
use crate::pilot::Asked;
use crate::progress::ProgressForm;
use crate::version::VERSION_AND_COMMIT;

/// dps (data parallelism and sparsity): how many steps to a goal, cell by cell.
#[derive(Debug, Parser)]
#[command(
    name = "dps-train",
    bin_name = "dps-train",
    version = VERSION_AND_COMMIT,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    max_term_width = WIDTH,
    subcommand_help_heading = "Commands, in the order of use",
    after_help = AFTER_HELP
)]
pub(super) struct Line {
    #[command(subcommand)]
    pub(super) command: Option<Train>,
    /// The study's TOML file, or its result file.
    #[arg(required = true, hide = true)]
    pub(super) config: Option<PathBuf>,
    /// Further files, which `Train::read` refuses.
    #[arg(hide = true)]
    pub(super) more: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) study: StudyArguments,
}

/// A study to measure, plan or list.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct StudyArguments {
    /// The file that the study's settings come from.
    #[arg(skip)]
    pub config: PathBuf,
    /// The kind of that file.
    #[arg(skip)]
    pub source: Source,
    /// Set a key; an empty value removes it; repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
    pub set: Vec<Override>,
    /// Global batch sizes, in place of grid.batch_sizes.
    #[arg(long, value_name = "B,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub batch_size: Vec<String>,
    /// Sparsities, in place of grid.sparsities.
    #[arg(long, value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub sparsity: Vec<String>,
    /// Trials a cell, in place of grid.trials.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub trials: Option<String>,
    /// Where to train.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Where the data are.
    #[command(flatten)]
    pub data: DataFolder,
    /// The result file [default: results/NAME.h5; of RESULT.h5 itself]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print what the study would cost, and end.
    #[arg(long)]
    pub plan: bool,
    /// Print the number, batch size, sparsity and trials of each cell, a line each, and end.
    #[arg(long, hide = true, conflicts_with_all = ["plan", "fresh"])]
    pub cells: bool,
    /// Start over; an earlier run's files are moved aside.
    #[arg(long, conflicts_with = "plan")]
    pub fresh: bool,
    /// How much is said.
    #[command(flatten)]
    pub shown: ShownArguments,
}

/// The kind of file that a study's settings come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// A configuration file.
    #[default]
    Configuration,
    /// A result file, which has the settings it was measured with.
    Results,
    /// A result file whose cells are confirmed.
    Confirmed,
}

/// How much is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
pub struct ShownArguments {
    /// Say nothing but errors.
    #[arg(short, long, conflicts_with = "progress")]
    pub quiet: bool,
    /// Say more: configuration, evaluations, checkpoints.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Progress: auto, bar, json or none.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub progress: ProgressForm,
}

/// Where to train.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct ExecutionArguments {
    /// Where to train: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Threads a rank; 0: a share of the host's processors.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<String>,
}

/// Where the data are.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct DataFolder {
    /// Folder of the data sets [default: $DPS_DATA, or data]
    #[arg(long = "data", id = "data_folder", value_name = "DIR", default_value_os_t = crate::data::default_folder(), hide_default_value = true)]
    pub folder: PathBuf,
}

/// Cells to confirm.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConfirmArguments {
    /// The result file, which gets the confirmations.
    #[arg(value_name = "RESULT.h5")]
    pub results: PathBuf,
    /// Set a key of the configuration, for example confirm.points=2. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
    pub set: Vec<Override>,
    /// Where to train.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Where the data are.
    #[command(flatten)]
    pub data: DataFolder,
    /// Write a result file of its own, and leave the other one as it is.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How much is said.
    #[command(flatten)]
    pub shown: ShownArguments,
}

/// A pilot of a study.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct PilotArguments {
    /// The study's TOML file.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    /// Set a key of the configuration, for the proposal too. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
    pub set: Vec<Override>,
    /// How large the pilot is.
    #[command(flatten)]
    pub asked: Asked,
    /// Where to train.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Where the data are.
    #[command(flatten)]
    pub data: DataFolder,
    /// The proposal; its figure lies beside it [default: NAME-pilot.toml beside NAME.toml]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Train all curves anew; the journals of an earlier pilot are moved aside.
    #[arg(long)]
    pub fresh: bool,
    /// How much is said.
    #[command(flatten)]
    pub shown: ShownArguments,
}

/// A recorded trial to train again.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ReplayArguments {
    /// The result file.
    #[arg(value_name = "RESULT.h5")]
    pub results: PathBuf,
    /// The cell's batch size.
    #[arg(long, value_name = "B")]
    pub batch_size: u32,
    /// The cell's sparsity.
    #[arg(long, value_name = "S")]
    pub sparsity: f64,
    /// The trial's number [default: the cell's best trial]
    #[arg(long, value_name = "N")]
    pub trial: Option<u32>,
    /// The number of a confirmation of that trial's point, in place of the trial.
    #[arg(long, value_name = "N")]
    pub confirmation: Option<u32>,
    /// Where to train.
    #[command(flatten)]
    pub execution: ExecutionArguments,
    /// Where the data are.
    #[command(flatten)]
    pub data: DataFolder,
    /// Write its evaluations there too, as comma-separated values.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Commands of `dps-train`.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Train {
    /// Measure a study, plan it, or list its cells: a command line without a command.
    #[command(skip)]
    Study(StudyArguments),
    /// Write a new configuration, with questions for what is not given.
    Init {
        /// The file to write, which must not be there yet.
        #[arg(value_name = "NEW.toml")]
        path: PathBuf,
        /// Choices of the configuration that are given; the rest is asked.
        #[command(flatten)]
        given: Given,
        /// Where the data are.
        #[command(flatten)]
        data: DataFolder,
    },
    /// List the configurations that come with dps, or print one.
    Configs {
        /// The configuration to print.
        name: Option<String>,
    },
    /// Say what the keys of a configuration mean.
    ///
    /// Without a name it lists all keys; with one it says all of a key or a section: its values, its default and what they mean.
    #[command(after_help = "For example: dps-train keys grid, dps-train keys workload.goal_error, dps-train keys goal_error")]
    Keys {
        /// A section, or a key with or without its section.
        name: Option<String>,
        /// Print them as the tables of docs/configuration.md.
        #[arg(long, conflicts_with = "name")]
        markdown: bool,
    },
    /// Fetch data sets, and check the data of a configuration.
    #[command(subcommand)]
    Data(DataCommand),
    /// Propose goal, steps and ranges from a few whole curves.
    ///
    /// The curves of a few search points are trained at the smallest and the largest batch size, each at the least and the greatest sparsity. How
    /// long that probably takes is said first. The proposal is a configuration with comments, with a figure of error against steps beside it. The
    /// same command goes on where it was stopped. It runs under mpirun too.
    #[command(after_help = "For example: dps-train pilot study.toml, then dps-train study-pilot.toml")]
    Pilot(PilotArguments),
    /// Say how far a study is, whether it runs or not.
    Status {
        /// The study's result file, which need not be there yet.
        #[arg(value_name = "RESULT.h5", required = true)]
        results: Vec<PathBuf>,
        /// A JSON object a line.
        #[arg(long)]
        json: bool,
        /// One line that changes only when the study has advanced, for scripts.
        #[arg(long, conflicts_with = "json")]
        progress: bool,
    },
    /// Train the best points again with fresh seeds.
    ///
    /// The cells are those of a result file; its section confirm says how many points and seeds.
    /// The configuration is the file's own. Only what is missing is trained, and no trial again. A journal is kept beside the file, from which the
    /// same command goes on. It runs under mpirun too.
    #[command(after_help = "For example: mpirun -n 8 dps-train confirm results/quickstart.h5 --set confirm.seeds=16")]
    Confirm(ConfirmArguments),
    /// Train one recorded trial again, and compare it.
    ///
    /// The result file alone is needed. Every evaluation is counted to its end, and the trial is compared with the record.
    #[command(after_help = "For example: dps-train replay results/quickstart.h5 --batch-size 64 --sparsity 0.9")]
    Replay(ReplayArguments),
    /// Put parts of one study into one file.
    Merge {
        /// Result files of one study: they may differ in cells, trials, confirmations, device, threads and ranks, and in nothing else.
        #[arg(value_name = "PART.h5", required = true)]
        parts: Vec<PathBuf>,
        /// The result file of the whole.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Replace the file, if it is there. Unless the new one has all that is in it, the old one is kept as FILE.old-N.
        #[arg(long)]
        force: bool,
    },
    /// Run a study, and start it again after a failure.
    ///
    /// A new start can mend a lost rank, a death by a signal, and a stopped job.
    /// Supervise gives up where starts bring no progress. A signal to it stops the study, with everything saved.
    #[command(after_help = "For example: dps-train supervise -- mpirun -n 8 dps-train configs/mnist-simple-cnn-momentum.toml")]
    Supervise {
        /// The study's result file [default: that of the command's dps-train]
        #[arg(long, value_name = "RESULT.h5")]
        results: Option<PathBuf>,
        /// Starts in a row without progress after which it gives up.
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        tries: u32,
        /// Hosts with their numbers of ranks, as node1:4,node2:4, or a file for Open MPI's mpirun with a line "node1 slots=4" for each: each start is
        /// on those that answer, with fewer ranks where they have less room. COMMAND is then Open MPI's mpirun.
        #[arg(long, value_name = "LIST|FILE")]
        hosts: Option<String>,
        /// Command that runs the command `true` on a host, to see whether it answers within 20 seconds; the host's name follows it.
        #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes -o ConnectTimeout=10", requires = "hosts")]
        reach: String,
        /// Seconds between two such questions to the hosts of a running command, 0 for none: where one does not answer twice while another does, and
        /// the study makes no progress, the command is killed and started again on the others.
        #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "hosts")]
        ask_every: u32,
        /// The command, as it would be run without supervise.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Note in a study's journal how its last start ended.
    ///
    /// For scripts that start a study again, after an end of which the study could write nothing itself.
    /// The next start records it in the result file. dps-train supervise and the batch scripts note it themselves.
    #[command(hide = true, after_help = "For example, after mpirun was killed: dps-train ended results/quickstart.h5 --code 137")]
    Ended {
        /// The study's result file, which need not be there yet.
        #[arg(value_name = "RESULT.h5")]
        results: PathBuf,
        /// The exit code as a shell has it: of a signal's death 128 and its number.
        #[arg(long, value_name = "N")]
        code: u8,
    },
    /// Say what this machine has for a study, and what it lacks.
    ///
    /// Exit code 0: a study can run here; 3: it has no data set; 6: with --gpu, it has no GPU that can be used.
    Doctor {
        /// Where the data are.
        #[command(flatten)]
        data: DataFolder,
        /// Ask for a GPU too.
        #[arg(long)]
        gpu: bool,
    },
    /// Print completions of both command lines for a shell.
    #[command(after_help = "For bash: dps-train completions bash > ~/.local/share/bash-completion/completions/dps-train")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page; with a folder, write all of them.
    Man {
        /// The folder, for example ~/.local/share/man/man1.
        folder: Option<PathBuf>,
    },
}

/// Commands on data sets.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum DataCommand {
    /// Fetch a data set; without a name, list those there are.
    Fetch {
        /// The data set.
        #[arg(value_enum)]
        name: Option<DatasetName>,
        /// Where the data are.
        #[command(flatten)]
        data: DataFolder,
    },
    /// Read the data of a configuration, and say what they are: files with their SHA-256, extents, classes, split, normalisation, digest.
    Check {
        /// The configuration, a TOML file.
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
        /// Change one key, for example workload.dataset.path=FILE; may be repeated.
        #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
        set: Vec<Override>,
        /// Where the data are.
        #[command(flatten)]
        data: DataFolder,
    },
}

/// The end of `--help`.
const AFTER_HELP: &str = "\
A study: dps-train init NEW.toml; dps-train pilot NEW.toml; dps-train CONFIG,
alone or under mpirun -n 8 (the same command continues it); dps-train confirm
RESULT.h5; dps-report RESULT.h5. Of one command: dps-train COMMAND --help.
Examples, exit codes and rare options: dps-train man.";

/// The commands and options that `-h` lists.
pub(super) const BRIEF: [&str; 12] =
    ["init", "pilot", "status", "confirm", "doctor", "set", "batch_size", "sparsity", "trials", "output", "plan", "help"];

/// The end of the manual page.
pub(super) fn manual() -> String {
    format!(
        "Examples:
  dps-train configs/quickstart.toml                          a small study, on what this machine has
  dps-train configs/mnist-simple-cnn-sgd.toml --plan         what a study of the paper would cost
  mpirun -n 8 dps-train CONFIG --batch-size 16,64 --sparsity 0,0.9 --trials 4
  dps-train CONFIG --set workload.optimizer=nesterov --set search.momentum=0.9
  dps-train init study.toml                                  write a new configuration
  dps-train pilot study.toml                                 propose its goal, steps, interval and ranges
  dps-train configs                                          list the paper's configurations
  dps-train keys pruning                                     what the keys of a configuration mean
  dps-train status results/quickstart.h5                     how far it is
  dps-train merge parts/*.h5 -o results/whole.h5             one result from parts of a study
  dps-train replay results/quickstart.h5 --batch-size 64 --sparsity 0.9   the best trial of a cell again
  dps-train results/quickstart.h5 --trials 16                more trials of a result file, by the settings in it
  dps-train confirm results/quickstart.h5                    how many steps the best points take with fresh seeds
  dps-train data fetch fashion-mnist
  dps-train doctor                                           what this machine has for a study

The same command continues a study that was interrupted. With more batch sizes, sparsities or
trials it measures only those.

{}",
        exit::help()
    )
}
