//! Reading a command line: of what was typed, what it means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::options::{Raw, RawCommand, RawData, RawDataCommand, RawExecution, RawShown, RawStudy};
use super::{PilotArguments, ReplayArguments, StatusForm, StudyArguments, Train};
use crate::arguments::ReportArguments;
use crate::arguments::manual::{completions, pages};
use crate::config::{Override, keys, markdown_of_keys};
use crate::init::Given;
use crate::pilot::Asked;
use crate::progress::ProgressForm;

impl Train {
    /// Reads a command line, program name first. Values that belong to the configuration are checked with it, by
    /// [`crate::config::load`], so that all of its problems are reported together.
    ///
    /// # Errors
    /// What clap has to say, `--help` and `--version` included; [`clap::Error::exit_code`] is 0 for those, else 2.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Train, clap::Error> {
        let Raw { command, study } = Raw::try_parse_from(words).map_err(about_resuming)?;
        match (command, study.config.clone()) {
            (Some(RawCommand::Init { path, dataset, own, network, listed, optimizer, schedule, data }), _) => {
                Ok(Train::Init { path, given: Given { dataset, path: own, network, listed, optimizer, schedule }, data: data.folder() })
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
            (Some(RawCommand::Replay { results, batch_size, sparsity, trial, confirmation, execution, data, csv }), _) => {
                let overrides = execution.overrides().collect();
                Ok(Train::Replay(ReplayArguments {
                    results,
                    batch_size,
                    sparsity,
                    trial,
                    confirmation,
                    overrides,
                    data: data.folder(),
                    csv,
                }))
            }
            (Some(RawCommand::Confirm { results, set, execution, data, output, shown }), _) => {
                let overrides = set.into_iter().chain(execution.overrides()).collect();
                let output = output.unwrap_or_else(|| results.clone());
                let (quiet, verbose, progress) = shown.form();
                Ok(Train::Study(StudyArguments {
                    config: results,
                    confirms: true,
                    overrides,
                    data: data.folder(),
                    output,
                    plan: false,
                    fresh: false,
                    quiet,
                    verbose,
                    progress,
                }))
            }
            (Some(RawCommand::Pilot { config, set, trials, steps, execution, data, output, fresh, shown }), _) => {
                let kept = set.len();
                let overrides = set.into_iter().chain(execution.overrides()).collect();
                let output = output.unwrap_or_else(|| config.with_file_name(named(&config, "-pilot.toml")));
                let (quiet, verbose, progress) = shown.form();
                let data = data.folder();
                let study =
                    StudyArguments { config, confirms: false, overrides, data, output, plan: false, fresh, quiet, verbose, progress };
                Ok(Train::Pilot(PilotArguments { study, kept, asked: Asked { trials, steps } }))
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
            (None, Some(config)) if misspelt(&config).is_some() => {
                let near = misspelt(&config).unwrap_or_default();
                let problem = format!(
                    "expected a command or a configuration file, found {config:?}, which is neither; did you mean dps-train {near}?"
                );
                Err(usage(ErrorKind::InvalidSubcommand, &problem))
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

/// Options by which other programs go on.
const RESUMING: [&str; 5] = ["--resume", "--continue", "--restart", "--restore", "--checkpoint"];

/// Of an unknown option to go on, what goes on; clap would offer --fresh, which starts over. Other mistakes are clap's.
fn about_resuming(mistake: clap::Error) -> clap::Error {
    let word = match (mistake.kind(), mistake.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => word.split('=').next().unwrap_or_default().to_owned(),
        _ => return mistake,
    };
    if !RESUMING.contains(&word.as_str()) {
        return mistake;
    }
    let problem =
        format!("expected no option to go on, found {word}: the command that began a study goes on with it; leave the option out");
    usage(ErrorKind::UnknownArgument, &problem)
}

/// How alike two words are at least, of which one may be meant by the other.
const ALIKE: f64 = 0.85;

/// The command that a word is near to which names no file.
fn misspelt(word: &Path) -> Option<String> {
    let text = word.to_str().filter(|text| !text.contains(['.', '/']) && !word.exists())?;
    let likeness = |name: &str| strsim::jaro_winkler(name, text).max(strsim::normalized_damerau_levenshtein(name, text));
    let command = Raw::command();
    let near = command.get_subcommands().map(|command| (likeness(command.get_name()), command.get_name()));
    near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, name)| name.to_owned())
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

/// The name of a configuration with another ending.
fn named(config: &Path, ending: &str) -> OsString {
    // Not with_extension: the names of configurations may have dots, as in goal-0.12.
    let mut name = config.file_stem().unwrap_or(config.as_os_str()).to_owned();
    name.push(ending);
    name
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

        let output = self.output.unwrap_or_else(|| Path::new("results").join(named(&config, ".h5")));
        let (quiet, verbose, progress) = self.shown.form();
        Ok(StudyArguments {
            config,
            confirms: false,
            overrides,
            data: self.data.folder(),
            output,
            plan: self.plan,
            fresh: self.fresh,
            quiet,
            verbose,
            progress,
        })
    }
}

impl RawShown {
    /// Whether little is said, or much, and how progress is shown.
    fn form(self) -> (bool, bool, ProgressForm) {
        (self.quiet, self.verbose, if self.quiet { ProgressForm::None } else { self.progress })
    }
}

impl RawExecution {
    fn overrides(self) -> impl Iterator<Item = Override> {
        let device = self.device.map(|value| set("--device", "execution.device", value));
        device.into_iter().chain(self.threads.map(|value| set("--threads", "execution.threads", value)))
    }
}

impl RawData {
    fn folder(self) -> PathBuf {
        self.folder.unwrap_or_else(crate::data::default_folder)
    }
}

/// The change of a key that an option names.
fn set(option: &str, key: &str, value: String) -> Override {
    Override { option: format!("{option} {value}"), key: key.to_owned(), value: literal(&value).to_string() }
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
