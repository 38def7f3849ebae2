//! `dps-train CONFIG`: a study, on one process or on the ranks of MPI.

use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::Arc;

use dps::arguments::{Source, StudyArguments};
use dps::backend::cpu::Cpu;
use dps::backend::{Chosen, choose};
use dps::comm::launcher::{Launched, command_line, let_the_first_speak};
use dps::comm::{Communicator, MemoryLimit, Single, together};
use dps::config::Override;
use dps::data::{Dataset, Facts};
use dps::network::Network;
use dps::progress::{Event, Observer, ProgressForm};
use dps::readable::shell_path;
use dps::storage::Disk;
use dps::streams::{err, out};
use dps::study::{Beginning, Place, RunEnd, Surroundings};
use dps::{Error, Result, analysis, exit, journal, progress, results, settings, signals, study};

#[cfg(feature = "mpi")]
use crate::common::leave;
use crate::plan::plan;

/// The exit code of a process that has not found the others of its launcher. The first one says the error.
fn lonely(launched: &Launched, progress: ProgressForm, error: &Error) -> u8 {
    let_the_first_speak(launched.rank);
    fail(launched.rank == 0, progress, error)
}

/// Runs `train` on the ranks of MPI, or on this process alone. The exit code is that of `train`.
#[cfg(feature = "mpi")]
pub fn start(progress: ProgressForm, train: impl FnOnce(&dyn Communicator, String) -> u8) -> u8 {
    if !dps::comm::launcher::is_possible() {
        return train(&Single, "none".into());
    }
    let launched = Launched::now();
    if let Err(error) = launched.check_before_start(&dps::comm::mpi_library()) {
        return lonely(&launched, progress, &error);
    }
    match dps::comm::MpiWorld::start() {
        Ok(world) => {
            if let Err(error) = launched.check(world.ranks().size(), Some(&dps::comm::mpi_library())) {
                return lonely(&launched, progress, &error);
            }
            let code = train(world.ranks(), dps::comm::mpi_library());
            if signals::orphaned() {
                // MPI's end would wait for the launcher.
                leave(code);
            }
            code
        }
        Err(error) => fail(true, progress, &error),
    }
}

/// Runs `train` on this process. The exit code is that of `train`.
#[cfg(not(feature = "mpi"))]
pub fn start(progress: ProgressForm, train: impl FnOnce(&dyn Communicator, String) -> u8) -> u8 {
    let launched = Launched::now();
    if let Err(error) = launched.check(1, None) {
        return lonely(&launched, progress, &error);
    }
    train(&Single, "none".into())
}

/// Runs a study on all ranks. What goes wrong while preparing goes wrong on all of them, and rank 0 says it; what goes wrong later ends
/// the world.
pub fn train(arguments: &StudyArguments, world: &dyn Communicator, mpi_library: String) -> u8 {
    let speaks = world.rank() == 0;
    if speaks {
        signals::speak(arguments.shown.form() == ProgressForm::Json);
    }
    let refuse = |error: Error| fail(speaks, arguments.shown.form(), &error);
    let prepared = match prepare(arguments, world) {
        Ok(prepared) => prepared,
        Err(error) => return refuse(error),
    };
    if arguments.plan {
        // The ranks tell each other what memory they have.
        let plan = plan(arguments, &prepared, world);
        if speaks {
            out(&plan);
        }
        return exit::DONE;
    }
    let dataset = match load(arguments, &prepared.configuration, world) {
        Ok(dataset) => dataset,
        Err(error) => return refuse(error),
    };
    match measure(arguments, &prepared, &dataset, world, mpi_library) {
        Ok(results) if speaks => report(arguments, &results).map_or_else(refuse, |()| exit::DONE),
        Ok(_) => exit::DONE,
        Err(code) => code,
    }
}

/// Observer that shows the progress, on the rank that speaks.
pub fn observer(arguments: &StudyArguments, speaks: bool) -> Box<dyn Observer> {
    if speaks {
        progress::observer(arguments.shown.form(), arguments.shown.verbose, std::io::stderr().is_terminal())
    } else {
        progress::silent()
    }
}

/// The data of a study, on every rank or on none.
pub fn load(arguments: &StudyArguments, configuration: &settings::Configuration, world: &dyn Communicator) -> Result<Dataset> {
    together(world, Dataset::load(configuration.study.workload.dataset.clone(), &arguments.data.folder, &configuration.study.data))
}

/// Measures a prepared study, or what is left of it.
///
/// # Errors
/// The exit code, where it is stopped or fails; why is said.
pub fn measure(
    arguments: &StudyArguments,
    prepared: &Prepared,
    dataset: &Dataset,
    world: &dyn Communicator,
    mpi_library: String,
) -> std::result::Result<Box<results::Results>, u8> {
    let Prepared { configuration, chosen, about_device, .. } = prepared;
    let (speaks, share) = (world.rank() == 0, dps::comm::threads(world));
    let threads = threads(&configuration.study, share);
    let memory = MemoryLimit::of(world, threads);
    let place = Place {
        world,
        mpi_library,
        command_line: command_line(),
        threads,
        memory,
        storage: Arc::new(Disk),
        surroundings: Surroundings::PROCESS,
    };
    let mut observer = observer(arguments, speaks);
    let notes = notes(&configuration.study, dataset, share);
    about_device.iter().chain(&notes).for_each(|line| observer.event(&Event::Note(line)));
    let beginning = match arguments {
        StudyArguments { source: Source::Confirmed, config, .. } => Beginning::Confirmed(config),
        StudyArguments { fresh: true, .. } => Beginning::Fresh,
        StudyArguments { source: Source::Results, config, .. } if journal::overwrites(&arguments.output(), config) => {
            Beginning::Results(config)
        }
        _ => Beginning::Journal,
    };
    let outcome = match &**chosen {
        Chosen::Cpu(unit) => {
            let cpu = Cpu { unit: *unit, threads, convolutions: configuration.study.execution.convolutions };
            study::run(configuration, dataset, &place, &cpu, &arguments.output(), beginning, &mut *observer)
        }
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => study::run(configuration, dataset, &place, &**cuda, &arguments.output(), beginning, &mut *observer),
    };
    Err(match outcome {
        Ok(RunEnd::Finished(results)) => return Ok(results),
        Ok(RunEnd::Stopped) => {
            if speaks && arguments.shown.form() == ProgressForm::Json {
                err("{\"event\":\"stopped\"}");
            } else if speaks {
                err("dps-train: stopped by a signal, with everything saved; the same command continues");
            }
            exit::STOPPED
        }
        // Every rank has this error, and all end MPI as usual. A failure of NCCL, which one rank may have alone, has ended the program before.
        Err(error @ (Error::Elsewhere { .. } | Error::Communication { .. } | Error::Journal { .. } | Error::Results { .. })) => {
            fail(speaks, arguments.shown.form(), &error)
        }
        Err(error) => {
            let code = fail(true, arguments.shown.form(), &error);
            world.abort(code.into());
            code
        }
    })
}

/// Says an error, on the rank that speaks, in the form in which progress is shown. The exit code is the error's.
pub fn fail(speaks: bool, progress: ProgressForm, error: &Error) -> u8 {
    let code = error.exit_code();
    match progress {
        _ if !speaks => {}
        ProgressForm::Json => err(&serde_json::json!({ "event": "error", "message": error.to_string(), "exit_code": code }).to_string()),
        _ => err(&format!("dps-train: {error}")),
    }
    code
}

/// A study that can be measured.
pub struct Prepared {
    /// The study.
    pub configuration: settings::Configuration,
    /// Facts of the study's data, and the network for them.
    pub facts: Facts,
    pub network: Arc<Network>,
    /// The device, which the studies of a pilot share.
    pub chosen: Rc<Chosen>,
    /// Sentences on the device.
    pub about_device: Vec<String>,
}

/// Prepares a study, or finds the same error on every rank.
pub fn prepare(arguments: &StudyArguments, world: &dyn Communicator) -> Result<Prepared> {
    // The configuration has another limit, perhaps. Until it is read, this one holds.
    world.limit_waits(settings::Execution::default().deadline_seconds);
    let configuration = match arguments.source {
        Source::Configuration => together(world, settings::load(&arguments.config, &arguments.overrides())),
        Source::Results | Source::Confirmed => of_results(arguments, world),
    }?;
    world.limit_waits(configuration.study.execution.deadline_seconds);
    if arguments.source == Source::Configuration && journal::overwrites(&arguments.output(), &arguments.config) {
        let problem = format!(
            "expected --output to be another file than CONFIG {}, found one that is written over it; name another file",
            arguments.config.display()
        );
        return Err(Error::Configuration { path: arguments.output().display().to_string(), problems: vec![problem] });
    }
    let facts = together(world, Facts::of(&configuration.study.workload.dataset, &arguments.data.folder, &configuration.study.data))?;
    let network = study::check(&configuration, &facts)?;
    let (chosen, about_device) = choose(&configuration.study, world)?;
    Ok(Prepared { configuration, facts, network, chosen: Rc::new(chosen), about_device })
}

/// The configuration of a result file; where its cells are confirmed, with a section that says how. Rank 0 reads it.
fn of_results(arguments: &StudyArguments, world: &dyn Communicator) -> Result<settings::Configuration> {
    let path = &arguments.config;
    let read = || {
        let journal = journal::journal_path(path);
        if !path.exists() && journal.exists() {
            let problem = format!(
                "expected a result file, found its journal {} alone; the command that started the study goes on with it and writes the file",
                journal.display()
            );
            return Err(Error::Results { path: path.clone(), problem });
        }
        results::read(path).map(|results| results.configuration)
    };
    let text = if world.rank() == 0 { read() } else { Ok(String::new()) };
    let text = String::from_utf8_lossy(&world.broadcast(together(world, text)?.into_bytes())).into_owned();
    let name = settings::study_name(path);
    let overrides = arguments.overrides();
    let asked = settings::recorded(&name, &text, &overrides)?;
    if arguments.source == Source::Confirmed {
        let problem = not_measured(&asked.study.grid, &settings::recorded(&name, &text, &[])?.study.grid);
        if let Some(problem) = problem {
            let problem = format!(
                "expected cells and trials of the result file, as a confirmation measures none, found {problem}; measure them first: dps-train {} …",
                shell_path(path)
            );
            return Err(Error::Configuration { path: path.display().to_string(), problems: vec![problem] });
        }
    }
    if asked.study.confirm.is_some() || arguments.source == Source::Results {
        return Ok(asked);
    }
    let default = Override::new("confirm", "confirm", "{}");
    settings::recorded(&name, &text, &[&[default], &overrides[..]].concat())
}

/// The cells or trials that one grid has and the other one has not, in words.
fn not_measured(asked: &settings::Grid, has: &settings::Grid) -> Option<String> {
    let size = asked.batch_sizes.iter().find(|size| !has.batch_sizes.contains(size)).map(|size| format!("batch size {size}"));
    let sparsity = || asked.sparsities.iter().find(|one| !has.sparsities.contains(one)).map(|one| format!("sparsity {one}"));
    let trials = || (asked.trials > has.trials).then(|| format!("{} trials, where it has {}", asked.trials, has.trials));
    size.or_else(sparsity).or_else(trials)
}

/// Notes on settings that may not be meant, a sentence each; `share` is as many threads as the rank's share of its host's processors.
fn notes(study: &settings::Study, dataset: &Dataset, share: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let examples = dataset.training.len();
    if let Some(size) = study.grid.batch_sizes.iter().find(|&&size| size as usize > examples) {
        notes.push(format!(
            "batch size {size} is larger than the training set of {examples} examples: a batch holds some of them more than once"
        ));
    }
    if let Some(confirm) = study.confirm.as_ref().filter(|confirm| confirm.points > 1 && !confirm.neighbours)
        && study.execution.race == settings::Race::Until(1.0)
    {
        notes.push(format!(
            "of {} points to confirm a cell seldom has more than one: with execution.race = true its trials end when one reaches the goal; \
             1.25 or more goes on to others",
            confirm.points
        ));
    }
    let empty = dataset.empty_classes();
    if !empty.is_empty() {
        let classes: Vec<String> = empty.iter().take(5).map(usize::to_string).collect();
        let more = if empty.len() > classes.len() { ", ..." } else { "" };
        notes.push(format!(
            "{} of {} classes have no training example ({}{more}), but outputs of the network: number the classes from 0 and leave none out",
            empty.len(),
            dataset.classes,
            classes.join(", ")
        ));
    }
    if let Some(smoothness) =
        study.smoothness.as_ref().filter(|smoothness| smoothness.trials > 0 && smoothness.trials <= study.search.first_trial)
    {
        notes.push(format!(
            "smoothness.trials = {} measures trials below that number, and the first one here is {}: no loss surface is measured",
            smoothness.trials, study.search.first_trial
        ));
    }
    let threads = study.execution.threads;
    if threads as usize > share {
        notes.push(format!(
            "{threads} threads a rank are slower than {share}, the rank's share of its host's processors: leave out execution.threads"
        ));
    }
    notes
}

/// The table on standard output, the figure beside the results.
fn report(arguments: &StudyArguments, results: &dps::results::Results) -> Result<()> {
    let (output, quiet) = (arguments.output(), arguments.shown.quiet);
    let figure = journal::figure_path(&output);
    analysis::steps_to_result_plot(results, &figure)?;
    if !quiet {
        let (table, file, figure) = (analysis::table(results, None), output.display(), figure.display());
        out(&format!("{table}\nResults: {file}\nFigure:  {figure}\nNext:    dps-report {}\n", shell_path(&output)));
    }
    Ok(())
}

/// Threads of this rank: what the configuration says, or as many as the rank's `share` of its host's processors.
pub fn threads(study: &settings::Study, share: usize) -> usize {
    match study.execution.threads as usize {
        0 => share,
        threads => threads,
    }
}
