//! Reading a command line: of what was typed, what it means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};

use super::options::{
    BRIEF, ConfirmArguments, ExecutionArguments, Line, PilotArguments, ShownArguments, Source, StudyArguments, Train, manual,
};
use crate::arguments::{ReportArguments, matches, report};
use crate::config::Override;
use crate::config::reader::nearest;
use crate::progress::ProgressForm;
use crate::settings::names_results;

impl Train {
    /// Reads a command line, program name first. Values that belong to the configuration are checked with it, by
    /// [`crate::settings::load`], so that all of its problems are reported together.
    ///
    /// # Errors
    /// Clap's message, `--help` and `--version` included; [`clap::Error::exit_code`] is 0 for those, else 2.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Train, clap::Error> {
        let read = matches(Line::command(), &BRIEF, words).and_then(|found| Line::from_arg_matches(&found));
        let Line { command, config, more, study } = read.map_err(about_resuming)?;
        let (kind, problem) = match (command, config) {
            (Some(command), _) => return Ok(command),
            (None, Some(config)) => match misspelt(&config) {
                Some(command) if config.as_os_str() == command.as_str() => (
                    ErrorKind::ArgumentConflict,
                    format!(
                        "expected the command {command:?} as the first word, found an option before it; write dps-train {command}, then its options"
                    ),
                ),
                Some(near) => (
                    ErrorKind::InvalidSubcommand,
                    format!(
                        "expected a command or a configuration file, found {config:?}, which is neither; did you mean dps-train {near}?"
                    ),
                ),
                None if more.is_empty() => return of_file(config, study).map(Train::Study),
                None => (
                    ErrorKind::TooManyValues,
                    format!("expected one configuration file, found {}; start dps-train once for each", 1 + more.len()),
                ),
            },
            (None, None) => (ErrorKind::MissingRequiredArgument, "expected a configuration file, found none; name one".to_owned()),
        };
        Err(usage(kind, &problem))
    }
}

/// A study by the file that its settings come from.
fn of_file(config: PathBuf, study: StudyArguments) -> Result<StudyArguments, clap::Error> {
    let is_of_results = names_results(&config);
    if is_of_results && study.fresh && study.output.is_none() {
        let problem = "expected no --fresh with a result file, which would be moved aside; name another file with --output to begin anew";
        return Err(usage(ErrorKind::ArgumentConflict, problem));
    }
    let source = if is_of_results { Source::Results } else { Source::Configuration };
    Ok(StudyArguments { config, source, ..study })
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

/// The command that a word is near to which names no file.
fn misspelt(word: &Path) -> Option<String> {
    let text = word.to_str().filter(|text| !text.contains(['.', '/']) && !word.exists())?;
    nearest(text, Line::command().get_subcommands().map(|command| command.get_name())).map(str::to_owned)
}

/// The result file of the study that a command measures: what follows `dps-train` among its words is read as a command line.
///
/// # Errors
/// Clap's message, where there is no such command line or it cannot be run again and again.
pub fn supervised(command: &[OsString]) -> Result<PathBuf, clap::Error> {
    let is_program = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "dps-train");
    let found = command.iter().position(is_program).map(|at| Train::read(command[at..].iter().cloned()));
    match found {
        Some(Ok(Train::Study(study))) if !study.plan && !study.cells && !study.fresh => Ok(study.output()),
        Some(Ok(Train::Confirm(asked))) => Ok(asked.study().output()),
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

impl StudyArguments {
    /// Changes that the command line makes in the configuration: `--set` in order, then the options that have a name of their own.
    pub fn overrides(&self) -> Vec<Override> {
        let list = |option: &str, key: &str, values: &[String]| {
            let array = toml::Value::Array(values.iter().map(|value| literal(value)).collect());
            Override::new(format!("{option} {}", values.join(",")), key, array.to_string())
        };
        let mut overrides = self.set.clone();
        overrides.extend((!self.batch_size.is_empty()).then(|| list("--batch-size", "grid.batch_sizes", &self.batch_size)));
        overrides.extend((!self.sparsity.is_empty()).then(|| list("--sparsity", "grid.sparsities", &self.sparsity)));
        overrides.extend(self.trials.as_ref().map(|value| set("--trials", "grid.trials", value)));
        overrides.extend(self.execution.overrides());
        overrides
    }

    /// The result file.
    pub fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| match self.source {
            Source::Configuration => Path::new("results").join(named(&self.config, ".h5")),
            Source::Results | Source::Confirmed => self.config.clone(),
        })
    }
}

impl ConfirmArguments {
    /// The study that confirms the cells.
    pub fn study(self) -> StudyArguments {
        let ConfirmArguments { results, set, execution, data, output, shown } = self;
        StudyArguments { config: results, source: Source::Confirmed, set, execution, data, output, shown, ..StudyArguments::default() }
    }
}

impl PilotArguments {
    /// How the curves are trained: the output is the proposal, a TOML file.
    pub fn study(&self) -> StudyArguments {
        let PilotArguments { config, set, asked: _, execution, data, output, fresh, shown } = self.clone();
        let output = Some(output.unwrap_or_else(|| config.with_file_name(named(&config, "-pilot.toml"))));
        StudyArguments { config, set, execution, data, output, fresh, shown, ..StudyArguments::default() }
    }
}

impl ShownArguments {
    /// How progress is shown.
    pub fn form(&self) -> ProgressForm {
        if self.quiet { ProgressForm::None } else { self.progress }
    }
}

impl ExecutionArguments {
    /// Changes that the options make in the configuration.
    pub fn overrides(&self) -> impl Iterator<Item = Override> {
        let device = self.device.iter().map(|value| set("--device", "execution.device", value));
        device.chain(self.threads.iter().map(|value| set("--threads", "execution.threads", value)))
    }
}

/// The change of a key that an option names.
fn set(option: &str, key: &str, value: &str) -> Override {
    Override::new(format!("{option} {value}"), key, literal(value).to_string())
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

/// The command lines of the programs with all that help leaves out.
pub fn programs() -> Vec<Command> {
    let shown = |argument: Arg| if argument.get_id() == "more" { argument } else { argument.hide(false) };
    let train = Line::command().after_help(manual()).mut_args(shown).mut_subcommands(|command| command.hide(false));
    vec![train, ReportArguments::command().after_help(report::manual())]
}

fn usage(kind: ErrorKind, problem: &str) -> clap::Error {
    Line::command().error(kind, problem)
}
