//! `dps-train CONFIG [options]`, `dps-train init`, `dps-train configs`, `dps-train keys`, `dps-train merge`, `dps-train status`, `dps-train doctor`
//! and `dps-train data fetch [NAME]`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::manual::{completions, pages};
use super::report::ReportArguments;
use crate::config::{DatasetName, NetworkName, OptimizerName, Override, ScheduleName, keys, markdown_of_keys};
use crate::exit;
use crate::init::Given;
use crate::progress::ProgressForm;
use crate::version::VERSION_AND_COMMIT;

/// What `dps-train` is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Train {
    /// Measure a study, or plan it.
    Study(StudyArguments),
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
        /// Their result files.
        results: Vec<PathBuf>,
        /// In which form.
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
        /// Its file.
        path: PathBuf,
        /// What it is of; the rest is asked.
        given: Given,
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
        /// Its exit code.
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
    /// The configuration file.
    pub config: PathBuf,
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

/// Steps-to-result of pruned networks over batch sizes and sparsities.
#[derive(Debug, Parser)]
#[command(
    name = "dps-train",
    bin_name = "dps-train",
    version = VERSION_AND_COMMIT,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    max_term_width = 100,
    after_help = after_help()
)]
struct Raw {
    #[command(subcommand)]
    command: Option<RawCommand>,
    #[command(flatten)]
    study: RawStudy,
}

#[derive(Debug, Args)]
struct RawStudy {
    /// The study's TOML file.
    #[arg(required = true)]
    config: Option<PathBuf>,
    /// More of them, which are refused in words of our own.
    #[arg(hide = true)]
    more: Vec<PathBuf>,
    /// Set a key of the configuration; an empty value removes it. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
    set: Vec<Override>,
    /// Global batch sizes, in place of grid.batch_sizes.
    #[arg(long, value_name = "B,…", value_delimiter = ',', allow_negative_numbers = true)]
    batch_size: Vec<String>,
    /// Sparsities, in place of grid.sparsities.
    #[arg(long, value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    sparsity: Vec<String>,
    /// Trials a cell, in place of grid.trials.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<String>,
    #[command(flatten)]
    execution: RawExecution,
    #[command(flatten)]
    data: RawData,
    /// The result file [default: results/NAME.h5 for NAME.toml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what the study would cost, and end.
    #[arg(long)]
    plan: bool,
    /// Print the number, batch size and sparsity of each cell, a line each, and end.
    #[arg(long, conflicts_with_all = ["plan", "fresh"])]
    cells: bool,
    /// Start over; the journal and results of an earlier run are moved aside.
    #[arg(long, conflicts_with = "plan")]
    fresh: bool,
    /// Say nothing but errors.
    #[arg(short, long, conflicts_with = "progress")]
    quiet: bool,
    /// Say more, in lines: the whole configuration, where each thing comes from, each evaluation and checkpoint.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// How to show progress: auto (a bar on a terminal, plain lines elsewhere), bar, json (an object a line) or none.
    #[arg(long, value_enum, default_value = "auto", hide_possible_values = true)]
    progress: ProgressForm,
}

#[derive(Debug, Args)]
struct RawExecution {
    /// Where to train, in place of execution.device: auto, cpu or cuda.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Threads a rank, in place of execution.threads; 0 shares the host's processors among its ranks.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
}

impl RawExecution {
    fn overrides(self) -> impl Iterator<Item = Override> {
        let device = self.device.map(|value| set("--device", "execution.device", value));
        device.into_iter().chain(self.threads.map(|value| set("--threads", "execution.threads", value)))
    }
}

#[derive(Debug, Args)]
struct RawData {
    /// Folder of the data sets [default: $DPS_DATA, else data]
    #[arg(long = "data", id = "data_folder", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl RawData {
    fn folder(self) -> PathBuf {
        self.folder.unwrap_or_else(crate::data::default_folder)
    }
}

#[derive(Debug, Subcommand)]
enum RawCommand {
    /// Put the results of parts of one study, such as its cells, into one file.
    Merge {
        /// Result files of one study: they may differ in cells, device, threads and ranks, and in nothing else.
        #[arg(value_name = "PART.h5", required = true)]
        parts: Vec<PathBuf>,
        /// The result file of the whole.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Replace the file, if it is there.
        #[arg(long)]
        force: bool,
    },
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
    /// Train one recorded trial again, from its result file alone, count every evaluation to its end, and compare it with the record.
    #[command(after_help = "For example: dps-train replay results/quickstart.h5 --batch-size 64 --sparsity 0.9")]
    Replay {
        /// The result file.
        #[arg(value_name = "RESULT.h5")]
        results: PathBuf,
        /// The cell's batch size.
        #[arg(long, value_name = "B")]
        batch_size: u32,
        /// The cell's sparsity.
        #[arg(long, value_name = "S")]
        sparsity: f64,
        /// The trial's number [default: the cell's best trial]
        #[arg(long, value_name = "N")]
        trial: Option<u32>,
        #[command(flatten)]
        execution: RawExecution,
        #[command(flatten)]
        data: RawData,
        /// Write its evaluations there too, as comma-separated values.
        #[arg(long, value_name = "FILE")]
        csv: Option<PathBuf>,
    },
    /// Run a command that measures a study, and start it again after ends that a new start can mend: a lost rank, a signal's death, a stopped job.
    ///
    /// It gives up where starts bring no progress. A signal to supervise stops the study, with everything saved.
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
        /// What runs the command `true` on a host, to see whether it answers within 20 seconds; the host's name follows it.
        #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes -o ConnectTimeout=10", requires = "hosts")]
        reach: String,
        /// The command, as it would be run without supervise.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Note in a study's journal how its last start ended, where that was no end of which the study could write itself: for scripts that start it
    /// again.
    ///
    /// The next start records it in the result file. dps-train supervise and the batch scripts note it themselves.
    #[command(after_help = "For example, after mpirun was killed: dps-train ended results/quickstart.h5 --code 137")]
    Ended {
        /// The study's result file, which need not be there yet.
        #[arg(value_name = "RESULT.h5")]
        results: PathBuf,
        /// The exit code as a shell has it: of a signal's death 128 and its number.
        #[arg(long, value_name = "N")]
        code: u8,
    },
    /// Write a new configuration with comments, which asks for what is not given.
    Init {
        /// The file to write, which must not be there yet.
        #[arg(value_name = "NEW.toml")]
        path: PathBuf,
        /// Data set.
        #[arg(long, value_name = "NAME", value_parser = names::<DatasetName>(DatasetName::NAMES))]
        dataset: Option<DatasetName>,
        /// Network [default: the one that fits the data set]
        #[arg(long, value_name = "NAME", value_parser = names::<NetworkName>(NetworkName::NAMES))]
        network: Option<NetworkName>,
        /// Optimizer.
        #[arg(long, value_name = "NAME", value_parser = names::<OptimizerName>(OptimizerName::NAMES))]
        optimizer: Option<OptimizerName>,
        /// Learning-rate schedule [default: linear-decay for cifar-10, else constant]
        #[arg(long, value_name = "NAME", value_parser = names::<ScheduleName>(ScheduleName::NAMES))]
        schedule: Option<ScheduleName>,
    },
    /// List the configurations that come with the program and the paper's figures each is for; with a name, print one.
    Configs {
        /// The configuration to print.
        name: Option<String>,
    },
    /// List the keys of a configuration; with a name, say all of a key or a section: its values, its default and what they mean.
    #[command(after_help = "For example: dps-train keys grid, dps-train keys workload.goal_error, dps-train keys goal_error")]
    Keys {
        /// A section, or a key with or without its section.
        name: Option<String>,
        /// Print them as the tables of docs/configuration.md.
        #[arg(long, conflicts_with = "name")]
        markdown: bool,
    },
    /// Say what this machine has for a study, and what to do about what it lacks.
    ///
    /// Exit code 0: a study can run here; 3: it has no data set; 6: with --gpu, it has no GPU that can be used.
    Doctor {
        #[command(flatten)]
        data: RawData,
        /// Ask for a GPU too.
        #[arg(long)]
        gpu: bool,
    },
    /// Data sets.
    #[command(subcommand)]
    Data(RawDataCommand),
    /// Print completions of both programs' command lines for a shell.
    #[command(after_help = "For bash: dps-train completions bash > ~/.local/share/bash-completion/completions/dps-train")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of dps-train, for man -l; with a folder, write those of both programs and all commands there.
    Man {
        /// The folder, for example ~/.local/share/man/man1.
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
enum RawDataCommand {
    /// Fetch a data set; without a name, list those there are.
    Fetch {
        /// The data set.
        #[arg(value_parser = names::<DatasetName>(DatasetName::NAMES))]
        name: Option<DatasetName>,
        #[command(flatten)]
        data: RawData,
    },
    /// Read the data of a configuration, and say what they are: files with their SHA-256, extents, classes, split, normalisation, digest.
    Check {
        /// The configuration, a TOML file.
        #[arg(value_name = "CONFIG")]
        config: PathBuf,
        /// Change one key, for example workload.dataset.path=FILE; may be repeated.
        #[arg(long, value_name = "KEY=VALUE", value_parser = Override::parse)]
        set: Vec<Override>,
        #[command(flatten)]
        data: RawData,
    },
}

impl Train {
    /// Reads a command line, program name first. Values that belong to the configuration are checked with it, by
    /// [`crate::config::load`], so that all of its problems are reported together.
    ///
    /// # Errors
    /// What clap has to say, `--help` and `--version` included; [`clap::Error::exit_code`] is 0 for those, else 2.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Train, clap::Error> {
        let Raw { command, study } = Raw::try_parse_from(words)?;
        match (command, study.config.clone()) {
            (Some(RawCommand::Init { path, dataset, network, optimizer, schedule }), _) => {
                Ok(Train::Init { path, given: Given { dataset, network, optimizer, schedule } })
            }
            (Some(RawCommand::Completions { shell }), _) => Ok(Train::Print { text: completions(programs(), shell) }),
            (Some(RawCommand::Man { folder }), _) => {
                let pages = pages(programs());
                Ok(match folder {
                    Some(folder) => Train::Man { folder, pages },
                    None => Train::Print { text: pages.into_iter().next().map(|(_, page)| page).unwrap_or_default() },
                })
            }
            (Some(RawCommand::Configs { name }), _) => Ok(Train::Configs { name }),
            (Some(RawCommand::Keys { markdown: true, .. }), _) => Ok(Train::Print { text: markdown_of_keys() }),
            (Some(RawCommand::Keys { name, .. }), _) => match keys(name.as_deref()) {
                Ok(text) => Ok(Train::Print { text }),
                Err(problem) => Err(usage(ErrorKind::InvalidValue, &problem)),
            },
            (Some(RawCommand::Data(RawDataCommand::Fetch { name: Some(dataset), data })), _) => {
                Ok(Train::FetchData { dataset, data: data.folder() })
            }
            (Some(RawCommand::Data(RawDataCommand::Check { config, set, data })), _) => {
                Ok(Train::CheckData { config, overrides: set, data: data.folder() })
            }
            (Some(RawCommand::Data(RawDataCommand::Fetch { name: None, data })), _) => Ok(Train::ListData { data: data.folder() }),
            (Some(RawCommand::Doctor { data, gpu }), _) => Ok(Train::Doctor { data: data.folder(), gpu }),
            (Some(RawCommand::Merge { parts, output, force }), _) => Ok(Train::Merge { parts, output, force }),
            (Some(RawCommand::Replay { results, batch_size, sparsity, trial, execution, data, csv }), _) => {
                let overrides = execution.overrides().collect();
                Ok(Train::Replay(ReplayArguments { results, batch_size, sparsity, trial, overrides, data: data.folder(), csv }))
            }
            (Some(RawCommand::Supervise { results, tries, hosts, reach, command }), _) => {
                let output = results.map_or_else(|| output_of(&command), Ok)?;
                Ok(Train::Supervise { command, output, hosts, reach, tries })
            }
            (Some(RawCommand::Ended { results, code }), _) => Ok(Train::Ended { output: results, code }),
            (Some(RawCommand::Status { results, json, progress }), _) => {
                let form = match (json, progress) {
                    (true, _) => StatusForm::Json,
                    (_, true) => StatusForm::Progress,
                    _ => StatusForm::Text,
                };
                Ok(Train::Status { results, form })
            }
            (None, Some(config)) if study.more.is_empty() => {
                let cells = study.cells;
                study.validate(config).map(if cells { Train::Cells } else { Train::Study })
            }
            (None, Some(_)) => {
                let problem = format!("expected one configuration file, found {}; start dps-train once for each", 1 + study.more.len());
                Err(usage(ErrorKind::TooManyValues, &problem))
            }
            (None, None) => Err(usage(ErrorKind::MissingRequiredArgument, "expected a configuration file, found none; name one")),
        }
    }
}

/// The result file of the study that a command measures: what follows `dps-train` among its words is read as a command line.
fn output_of(command: &[OsString]) -> Result<PathBuf, clap::Error> {
    let is_program = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "dps-train");
    let found = command.iter().position(is_program).map(|at| Train::read(command[at..].iter().cloned()));
    match found {
        Some(Ok(Train::Study(study))) if !study.plan && !study.fresh => Ok(study.output),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) => Err(usage(
            ErrorKind::ValueValidation,
            "expected a command that measures a study, found another, or one with --fresh, which each start would begin anew",
        )),
        None => Err(usage(
            ErrorKind::MissingRequiredArgument,
            "expected a command in which dps-train CONFIG stands, found none; name the study's result file with --results",
        )),
    }
}

impl RawStudy {
    fn validate(self, config: PathBuf) -> Result<StudyArguments, clap::Error> {
        let mut overrides = self.set;
        let list = |option: &str, key: &str, values: Vec<String>| Override {
            option: format!("{option} {}", values.join(",")),
            key: key.to_owned(),
            value: toml::Value::Array(values.iter().map(|value| literal(value)).collect()).to_string(),
        };
        overrides.extend((!self.batch_size.is_empty()).then(|| list("--batch-size", "grid.batch_sizes", self.batch_size)));
        overrides.extend((!self.sparsity.is_empty()).then(|| list("--sparsity", "grid.sparsities", self.sparsity)));
        overrides.extend(self.trials.map(|value| set("--trials", "grid.trials", value)));
        overrides.extend(self.execution.overrides());

        let stem = config.file_stem().unwrap_or(config.as_os_str());
        // Not with_extension: the names of configurations may have dots, as in goal-0.12.
        let mut file = stem.to_owned();
        file.push(".h5");
        let output = self.output.unwrap_or_else(|| Path::new("results").join(file));
        let progress = if self.quiet { ProgressForm::None } else { self.progress };
        Ok(StudyArguments {
            config,
            overrides,
            data: self.data.folder(),
            output,
            plan: self.plan,
            fresh: self.fresh,
            quiet: self.quiet,
            verbose: self.verbose,
            progress,
        })
    }
}

/// The change of a key that an option names.
fn set(option: &str, key: &str, value: String) -> Override {
    Override { option: format!("{option} {value}"), key: key.to_owned(), value: literal(&value).to_string() }
}

/// Reads one of some names.
fn names<T: FromStr<Err = String> + Clone + Send + Sync + 'static>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// A word of the command line as TOML: a number if it is one, else text for the configuration's rules to refuse by name.
fn literal(word: &str) -> toml::Value {
    let word = word.trim();
    match (word.parse::<i64>(), word.parse::<f64>()) {
        (Ok(integer), _) => toml::Value::Integer(integer),
        (_, Ok(number)) => toml::Value::Float(number),
        _ => toml::Value::String(word.to_owned()),
    }
}

fn programs() -> Vec<clap::Command> {
    vec![Raw::command(), ReportArguments::command()]
}

fn usage(kind: ErrorKind, problem: &str) -> clap::Error {
    Raw::command().error(kind, problem)
}

fn after_help() -> String {
    format!(
        "Examples:
  dps-train configs/quickstart.toml                          a small study, on what this machine has
  dps-train configs/mnist-simple-cnn-sgd.toml --plan         what a study of the paper would cost
  mpirun -n 8 dps-train CONFIG --batch-size 16,64 --sparsity 0,0.9 --trials 4
  dps-train CONFIG --set workload.optimizer=nesterov --set search.momentum=0.9
  dps-train init study.toml                                  write a new configuration
  dps-train configs                                          list the paper's configurations
  dps-train keys pruning                                     what the keys of a configuration mean
  dps-train status results/quickstart.h5                     how far it is
  dps-train merge parts/*.h5 -o results/whole.h5             one result from parts of a study
  dps-train replay results/quickstart.h5 --batch-size 64 --sparsity 0.9   the best trial of a cell again
  dps-train data fetch fashion-mnist
  dps-train doctor                                           what this machine has for a study

The same command continues a study that was interrupted. With more batch sizes, sparsities or
trials it measures only those.

{}",
        exit::help()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn read(line: &str) -> Result<Train, clap::Error> {
        Train::read(format!("dps-train {line}").split_whitespace().map(OsString::from))
    }

    fn study(line: &str) -> StudyArguments {
        match read(line) {
            Ok(Train::Study(study)) => study,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn quickstart(line: &str) -> crate::Result<config::Study> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/quickstart.toml");
        config::load(&path, &study(&format!("quickstart.toml {line}")).overrides).map(|loaded| loaded.study)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Raw::command().debug_assert();
        super::super::ReportArguments::command().debug_assert();
    }

    #[test]
    fn a_configuration_alone_has_defaults() {
        let expected = StudyArguments {
            config: "configs/fashion-mnist-goal-0.12.toml".into(),
            overrides: Vec::new(),
            data: "data".into(),
            output: "results/fashion-mnist-goal-0.12.h5".into(),
            plan: false,
            fresh: false,
            quiet: false,
            verbose: false,
            progress: ProgressForm::Auto,
        };
        assert_eq!(study("configs/fashion-mnist-goal-0.12.toml"), expected);
    }

    #[test]
    fn options_reach_the_study() {
        let study = quickstart(
            "--batch-size 16,64 --batch-size 8 --sparsity 0,.5 --trials 2 --device cpu --threads 3 --set workload.optimizer=nesterov",
        )
        .unwrap();
        assert_eq!(study.grid, config::Grid { batch_sizes: vec![16, 64, 8], sparsities: vec![0.0, 0.5], trials: 2 });
        assert_eq!((study.execution.device, study.execution.threads), (config::DeviceName::Cpu, 3));
        assert_eq!(study.workload.optimizer, config::OptimizerName::Nesterov);
        assert_eq!(quickstart("--trials 2 --set grid.trials=3").unwrap().grid.trials, 2);
    }

    #[test]
    fn wrong_values_are_refused_by_option() {
        for (line, expected) in [
            ("--batch-size 16,big", "--batch-size 16,big: grid.batch_sizes: expected a list of batch sizes"),
            ("--batch-size 0", "--batch-size 0: grid.batch_sizes"),
            ("--batch-size 4,", "--batch-size 4,: grid.batch_sizes"),
            ("--sparsity -0.5", "--sparsity -0.5: grid.sparsities"),
            ("--sparsity nan", "--sparsity nan: grid.sparsities"),
            ("--trials many", "--trials many: grid.trials: expected a whole number from 1 to 100000, found \"many\""),
            ("--device gpu", "--device gpu: execution.device: expected one of auto, cpu, cuda, found \"gpu\"; did you mean \"cuda\"?"),
            ("--threads -1", "--threads -1: execution.threads"),
        ] {
            let error = quickstart(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn data_sets_are_fetched_and_listed() {
        let fetch = Train::FetchData { dataset: DatasetName::Cifar10, data: "d".into() };
        assert_eq!(read("data fetch cifar-10 --data d").unwrap(), fetch);
        assert_eq!(read("data fetch").unwrap(), Train::ListData { data: "data".into() });
        let error = read("data fetch cifar").unwrap_err().to_string();
        assert!(error.contains("cifar-10"), "{error}");
    }

    #[test]
    fn parts_are_merged_and_studies_looked_at() {
        let merge = Train::Merge { parts: vec!["a.h5".into(), "b.h5".into()], output: "c.h5".into(), force: true };
        assert_eq!(read("merge a.h5 b.h5 -o c.h5 --force").unwrap(), merge);
        let status = |form| Train::Status { results: vec!["a.h5".into()], form };
        assert_eq!(read("status a.h5").unwrap(), status(StatusForm::Text));
        assert_eq!(read("status a.h5 --json").unwrap(), status(StatusForm::Json));
        assert_eq!(read("status a.h5 --progress").unwrap(), status(StatusForm::Progress));
        assert_eq!(read("doctor --data d --gpu").unwrap(), Train::Doctor { data: "d".into(), gpu: true });
        assert!(matches!(read("a.toml --cells --sparsity 0").unwrap(), Train::Cells(study) if study.overrides.len() == 1));
    }

    #[test]
    fn usage_errors_end_with_two_and_help_with_zero() {
        for line in [
            "",
            "--plan",
            "a.toml b.toml",
            "a.toml --sett x=1",
            "a.toml --set x",
            "a.toml --quiet --progress bar",
            "a.toml data fetch",
            "a.toml --progress loud",
            "data",
            "--plan data fetch",
            "merge -o c.h5",
            "merge a.h5",
            "status",
            "status a.h5 --json --progress",
            "a.toml --cells --plan",
            "a.toml --quiet --verbose",
            "init",
            "init a.toml --dataset mnits",
            "configs a b",
            "keys goal_eror",
            "keys a b",
            "keys grid --markdown",
        ] {
            let error = read(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}: {error}");
        }
        let help = read("--help").unwrap_err();
        assert_eq!(help.exit_code(), 0);
        assert!(help.to_string().contains("Examples:") && help.to_string().contains("Exit codes:"));
        let version = read("--version").unwrap_err();
        assert_eq!((version.exit_code(), version.to_string()), (0, format!("dps-train {VERSION_AND_COMMIT}\n")));
    }

    #[test]
    fn configurations_are_made_and_listed() {
        let given = Given { dataset: Some(DatasetName::Mnist), optimizer: Some(OptimizerName::Sgd), ..Given::default() };
        assert_eq!(read("init a.toml --dataset mnist --optimizer sgd").unwrap(), Train::Init { path: "a.toml".into(), given });
        assert_eq!(read("configs").unwrap(), Train::Configs { name: None });
        assert_eq!(read("configs quickstart").unwrap(), Train::Configs { name: Some("quickstart".into()) });
        let Ok(Train::Print { text }) = read("keys workload.goal_error") else { panic!("no text") };
        assert!(text.starts_with("workload.goal_error\n"), "{text}");
        let unknown = read("keys goal_eror").unwrap_err().to_string();
        assert!(unknown.contains("found \"goal_eror\"; did you mean \"goal_error\"?"), "{unknown}");
        let two = read("a.toml b.toml").unwrap_err().to_string();
        assert!(two.contains("expected one configuration file, found 2; start dps-train once for each"), "{two}");
        assert!(study("a.toml --verbose").verbose);
    }

    #[test]
    fn completions_and_manual_pages_are_of_both_programs() {
        for shell in ["bash", "zsh", "fish"] {
            let Train::Print { text } = read(&format!("completions {shell}")).unwrap() else { panic!("{shell}") };
            assert!(["dps-train", "dps-report", "doctor", "strict"].iter().all(|word| text.contains(word)), "{shell}");
        }
        let Train::Man { pages, .. } = read("man folder").unwrap() else { panic!("no pages") };
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["dps-train.1", "dps-train-merge.1", "dps-train-data-fetch.1", "dps-report.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let Train::Print { text } = read("man").unwrap() else { panic!("no page") };
        assert!(text.contains(".TH dps-train 1") && text.contains("Exit codes"), "{text}");
    }

    #[test]
    fn quiet_shows_no_progress() {
        let quiet = study("a.toml -q --plan");
        assert_eq!((quiet.quiet, quiet.plan, quiet.progress), (true, true, ProgressForm::None));
        assert_eq!(study("a.toml --progress json").progress, ProgressForm::Json);
    }
}
