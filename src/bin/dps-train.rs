//! `mpirun -n 8 dps-train CONFIG`: measures steps-to-result over batch sizes and sparsities.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dps::allocator::Allocator;
use dps::arguments::{ReplayArguments, StatusForm, StudyArguments, Train};
use dps::backend::cpu::{self, Cpu, Physical, peak_flop};
use dps::backend::{Chosen, choose};
use dps::comm::launcher::{self, Launched};
use dps::comm::{Communicator, Single, resident_memory, together};
use dps::config::DatasetName;
use dps::data::{self, Dataset, Facts};
use dps::init::{self, Given};
use dps::journal::Journal;
use dps::progress::{Event, ProgressForm};
use dps::readable::{count, first_line, some};
use dps::storage::Disk;
use dps::streams::{err, out, prompt};
use dps::study::{CostBound, Memory, NetworkCost, Place, Processors, RunEnd, Site, Surroundings};
use dps::supervise::Hosts;
use dps::version::VERSION_AND_COMMIT;
use dps::{Error, Result, analysis, config, doctor, exit, journal, progress, records, results, signals, streams, study, supervise};

/// How often a replay says where it is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 1_000;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    // SAFETY: no other thread has started.
    #[cfg(feature = "cuda")]
    unsafe {
        dps::backend::cuda::nccl::leave_buffers_unregistered();
    }
    streams::prepare("dps-train");
    streams::exit_code(run())
}

/// Does what the command line says; the exit code.
fn run() -> u8 {
    match Train::read(std::env::args_os()) {
        Ok(Train::Study(arguments)) => {
            // First of all: a signal that comes while data are read should stop the study as gently as any other.
            if let Err(cause) = signals::listen(launcher::is_certain()) {
                err(&format!("dps-train: signals cannot be caught ({cause}): a stopped study will go on from its last checkpoint"));
            }
            start(&arguments)
        }
        // None of the others starts MPI: batch scripts run them outside of mpirun.
        Ok(Train::Cells(arguments)) => finish(&list(&arguments)),
        Ok(Train::Init { path, given }) => finish(&new_configuration(&path, &given)),
        Ok(Train::Print { text }) => {
            out(&text);
            exit::DONE
        }
        Ok(Train::Man { folder, pages }) => finish(&write_pages(&folder, &pages)),
        Ok(Train::Configs { name: None }) => {
            out(&init::list());
            exit::DONE
        }
        Ok(Train::Configs { name: Some(name) }) => finish(&init::text(&name).map(out)),
        Ok(Train::Merge { parts, output, force }) => finish(&merge(parts, &output, force)),
        Ok(Train::Status { results, form }) => finish(&results.iter().try_for_each(|path| status(path, form))),
        Ok(Train::Replay(arguments)) => finish(&replay(&arguments)),
        Ok(Train::Supervise { command, output, hosts, reach, tries }) => {
            let hosts = hosts.map(|list| Hosts::read(&list, &reach)).transpose();
            hosts.map_or_else(|error| finish(&Err(error)), |hosts| supervised(&command, hosts.as_ref(), &output, tries))
        }
        Ok(Train::Ended { output, code }) => finish(&Journal::note_end(&output, code, Arc::new(Disk))),
        Ok(Train::Doctor { data, gpu }) => {
            let examination = doctor::examine(&data);
            out(&examination.text(gpu));
            examination.exit_code(gpu)
        }
        Ok(Train::FetchData { dataset, data }) => finish(&data::fetch(dataset, &data, &mut |line| err(line)).map(|place| {
            out(&format!("{dataset} is in {}\n", place.display()));
        })),
        Ok(Train::CheckData { config, overrides, data }) => finish(&check_data(&config, &overrides, &data)),
        Ok(Train::ListData { data }) => {
            for &name in DatasetName::ALL {
                let found = data::locate(name, &data).is_ok();
                out(&format!("{name}{}\n", if found { "  (found)" } else { "" }));
            }
            exit::DONE
        }
        // Under mpirun every rank reads the command line; the first one speaks.
        Err(answer) if launcher::rank() > 0 => answer.exit_code() as u8,
        Err(answer) => streams::usage(&answer),
    }
}

/// The exit code of a command that is started again until it is done.
fn supervised(command: &[OsString], hosts: Option<&Hosts>, output: &Path, tries: u32) -> u8 {
    if let Err(cause) = signals::listen(false) {
        err(&format!("dps-train: signals cannot be caught ({cause}): they end this process, and the command goes on"));
    }
    supervise::supervise(command, hosts, output, tries).unwrap_or_else(|error| finish(&Err(error)))
}

/// The exit code of a result; an error is said.
fn finish(result: &Result<()>) -> u8 {
    match result {
        Ok(()) => exit::DONE,
        Err(error) => {
            err(&format!("dps-train: {error}"));
            error.exit_code()
        }
    }
}

/// The cells of a study, numbered as they are measured.
fn list(arguments: &StudyArguments) -> Result<()> {
    let study = config::load(&arguments.config, &arguments.overrides)?.study;
    let lines = records::cells(&study.grid).into_iter().enumerate();
    out(&lines.map(|(index, key)| format!("{index} {} {}\n", key.batch_size, key.sparsity)).collect::<String>());
    Ok(())
}

/// Says what the data of a study are.
fn check_data(path: &Path, overrides: &[config::Override], data: &Path) -> Result<()> {
    let study = config::load(path, overrides)?.study;
    out(&data::check(&study.workload.dataset, data, &study.data)?);
    Ok(())
}

/// Writes a new configuration, asking at the terminal for what is not given.
fn new_configuration(path: &Path, given: &Given) -> Result<()> {
    let mut ask = |question: &str| {
        prompt(question);
        let mut answer = String::new();
        // An answer is a word: a line without an end is none.
        let read = std::io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer).ok()?;
        (read > 0).then_some(answer)
    };
    let terminal = std::io::stdin().is_terminal();
    init::init(path, given, if terminal { Some(&mut ask) } else { None })?;
    out(&format!("{} is written; what it costs at most: dps-train {} --plan\n", path.display(), path.display()));
    Ok(())
}

/// Writes manual pages into a folder.
fn write_pages(folder: &Path, pages: &[(String, String)]) -> Result<()> {
    pages.iter().try_for_each(|(name, page)| results::publish(&folder.join(name), page.as_bytes()))?;
    out(&format!("{}: {}\n", folder.display(), some(pages.len(), "manual page")));
    Ok(())
}

/// Writes one result file from parts of a study.
fn merge(parts: Vec<PathBuf>, output: &Path, force: bool) -> Result<()> {
    let refuse = |problem: String| Err(Error::Results { path: output.to_owned(), problem });
    let journal = journal::journal_path(output);
    if journal.exists() {
        // Its next run would write the file anew, without what was merged.
        return refuse(format!("it is the result of the study whose journal is {}; choose another --output", journal.display()));
    }
    if !force && output.exists() {
        return refuse("expected no such file, found one; choose another --output, or --force to replace it".into());
    }
    let parts = parts.into_iter().map(|path| results::read(&path).map(|part| (path, part))).collect::<Result<Vec<_>>>()?;
    let count = parts.len();
    let merged = results::merge(parts)?;
    results::write(output, &merged)?;
    let state = if merged.complete { "complete" } else { "incomplete" };
    out(&format!("{}: {} from {}, {state}\n", output.display(), some(merged.cells.len(), "cell"), some(count, "file")));
    Ok(())
}

/// Prints how far the study of the result file at `path` is.
fn status(path: &Path, form: StatusForm) -> Result<()> {
    let report = study::status(path)?;
    out(&match form {
        StatusForm::Text => report.to_string(),
        StatusForm::Json => format!("{}\n", report.json()),
        StatusForm::Progress => format!("{}\n", report.progress()),
    });
    Ok(())
}

/// Trains a recorded trial again, prints its curve, and compares it with the record.
fn replay(arguments: &ReplayArguments) -> Result<()> {
    let path = &arguments.results;
    let refuse = |problem: String| Error::Results { path: path.clone(), problem };
    let results = results::read(path)?;
    let key = records::CellKey { batch_size: arguments.batch_size, sparsity: arguments.sparsity };
    let (cell, recorded) = study::find(&results.cells, key, arguments.trial).map_err(refuse)?;
    let parse = |overrides| config::parse(&path.display().to_string(), &results.configuration, overrides);
    let trials = match parse(&[]) {
        Ok(loaded) => loaded.study.grid.trials,
        Err(error) => {
            return Err(refuse(format!("its configuration is none that this program reads ({})", first_line(&error.to_string()))));
        }
    };
    if recorded.index >= trials {
        return Err(refuse(format!(
            "expected trials below {trials}, as its configuration says, found trial {}; copy it again",
            recorded.index
        )));
    }
    let loaded = parse(&arguments.overrides)?;
    let dataset = Dataset::load(loaded.study.workload.dataset.clone(), &arguments.data, &loaded.study.data)?;
    let digest = &results.environment.data_digest;
    if dataset.digest != *digest {
        return Err(refuse(format!(
            "expected the data that the study was measured on, SHA-256 {digest}, found {}; name the folder that has them with --data",
            dataset.digest
        )));
    }
    let (chosen, _) = choose(&loaded.study, &Single)?;
    let threads = threads(&loaded.study, &Single);
    let (end, mut told) = (recorded.steps_run, Instant::now());
    let mut tell = |step: u32| {
        if told.elapsed() > TELL_EVERY {
            told = Instant::now();
            err(&format!("step {} of {}", count(step), count(end)));
        }
    };
    let replayed = match &chosen {
        Chosen::Cpu(unit) => study::replay(&loaded, &dataset, threads, &Cpu { unit: *unit, threads }, cell, recorded, &mut tell),
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => study::replay(&loaded, &dataset, threads, &**cuda, cell, recorded, &mut tell),
    }?;
    if let Some(csv) = &arguments.csv {
        results::publish(csv, replayed.csv().as_bytes())?;
    }
    out(&replayed.table(recorded));
    let name = format!("trial {} of {}", recorded.index, cell.key);
    if replayed.differences.is_empty() {
        out(&format!("\n{name}: as recorded, {}\n", recorded.status.name()));
        return Ok(());
    }
    let environment = &results.environment;
    Err(refuse(format!(
        "{name} does not come out as recorded: {}; it was measured by dps {} {} on {}, and trained again by dps {} on {}: records are \
         the same on the same kind of device by versions with the same first two numbers",
        replayed.differences.join("; "),
        environment.program_version,
        environment.commit,
        environment.device,
        VERSION_AND_COMMIT,
        chosen.name(),
    )))
}

#[cfg(feature = "mpi")]
fn start(arguments: &StudyArguments) -> u8 {
    if !launcher::is_possible() {
        return train(arguments, &Single, "none".into());
    }
    let launched = Launched::now();
    if let Err(error) = launched.check_before_start(&dps::comm::mpi_library()) {
        return lonely(&launched, error);
    }
    match dps::comm::MpiWorld::start() {
        Ok(world) => {
            if let Err(error) = launched.check(world.ranks().size(), Some(&dps::comm::mpi_library())) {
                return lonely(&launched, error);
            }
            let code = train(arguments, world.ranks(), dps::comm::mpi_library());
            if signals::orphaned() {
                // MPI's end would wait for the launcher.
                exit::leave(code);
            }
            code
        }
        Err(error) => finish(&Err(error)),
    }
}

#[cfg(not(feature = "mpi"))]
fn start(arguments: &StudyArguments) -> u8 {
    let launched = Launched::now();
    if let Err(error) = launched.check(1, None) {
        return lonely(&launched, error);
    }
    train(arguments, &Single, "none".into())
}

/// The exit code of processes that a launcher started and that have not found each other; the first one speaks.
fn lonely(launched: &Launched, error: Error) -> u8 {
    if launched.rank == 0 { finish(&Err(error)) } else { error.exit_code() }
}

/// Runs a study on all ranks. What goes wrong while preparing goes wrong on all of them, and rank 0 says it; what goes wrong later ends
/// the world.
fn train(arguments: &StudyArguments, world: &dyn Communicator, mpi_library: String) -> u8 {
    let speaks = world.rank() == 0;
    if speaks {
        signals::speak(arguments.progress == ProgressForm::Json);
    }
    // What all ranks know, one says.
    let refuse = |error: Error| {
        if speaks {
            fail(arguments, &error);
        }
        error.exit_code()
    };
    let (loaded, facts, chosen, choice) = match prepare(arguments, world) {
        Ok(prepared) => prepared,
        Err(error) => return refuse(error),
    };
    world.limit_waits(loaded.study.execution.deadline_seconds);
    let threads = threads(&loaded.study, world);
    if arguments.plan {
        return match plan(arguments, &loaded, &facts, &chosen, world, threads) {
            Ok(plan) => {
                if speaks {
                    out(&plan);
                }
                exit::DONE
            }
            Err(error) => refuse(error),
        };
    }
    let dataset = Dataset::load(loaded.study.workload.dataset.clone(), &arguments.data, &loaded.study.data);
    let dataset = match together(world, dataset) {
        Ok(dataset) => dataset,
        Err(error) => return refuse(error),
    };
    let place =
        Place { world, mpi_library, command_line: command_line(), threads, storage: Arc::new(Disk), surroundings: Surroundings::PROCESS };
    let mut observer = if speaks {
        progress::observer(arguments.progress, arguments.verbose, std::io::stderr().is_terminal())
    } else {
        progress::silent()
    };
    let notes = notes(&loaded.study, &dataset, world.size() * threads);
    choice.iter().chain(&notes).for_each(|line| observer.event(&Event::Note { line }));
    let outcome = match &chosen {
        Chosen::Cpu(unit) => {
            let cpu = Cpu { unit: *unit, threads };
            study::run(&loaded, &dataset, &place, &cpu, &arguments.output, arguments.fresh, &mut *observer)
        }
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => study::run(&loaded, &dataset, &place, &**cuda, &arguments.output, arguments.fresh, &mut *observer),
    };
    match outcome {
        Ok(RunEnd::Finished(results)) if speaks => finish(&report(arguments, &results)),
        Ok(RunEnd::Finished(_)) => exit::DONE,
        Ok(RunEnd::Stopped) => {
            if speaks && arguments.progress == ProgressForm::Json {
                err("{\"event\":\"stopped\"}");
            } else if speaks {
                err("dps-train: stopped by a signal, with everything saved; the same command continues");
            }
            exit::STOPPED
        }
        // What all ranks know, one says; then they part in peace.
        Err(error @ (Error::Elsewhere { .. } | Error::Communication { .. } | Error::Journal { .. } | Error::Results { .. })) => {
            refuse(error)
        }
        Err(error) => {
            fail(arguments, &error);
            if world.size() > 1 {
                world.abort(error.exit_code().into());
            }
            error.exit_code()
        }
    }
}

/// The words of the command line as a shell would take them.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // No word has a NUL character, so they can be joined.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

/// Threads of this rank: what the configuration says, or its share of the host's processors.
fn threads(study: &config::Study, world: &dyn Communicator) -> usize {
    match study.execution.threads as usize {
        0 => dps::comm::threads(world),
        threads => threads,
    }
}

/// Says an error, in the form in which progress is shown.
fn fail(arguments: &StudyArguments, error: &Error) {
    if arguments.progress == ProgressForm::Json {
        err(&format!("{}", serde_json::json!({ "event": "error", "message": error.to_string(), "exit_code": error.exit_code() })));
    } else {
        err(&format!("dps-train: {error}"));
    }
}

/// The study, what is known of its data, the device and a line about its choice, or the same error on every rank.
fn prepare(arguments: &StudyArguments, world: &dyn Communicator) -> Result<(config::Configuration, Facts, Chosen, Option<String>)> {
    let loaded = together(world, config::load(&arguments.config, &arguments.overrides))?;
    if journal::overwrites(&arguments.output, &arguments.config) {
        let problem = format!(
            "expected --output to be another file than CONFIG {}, found one that is written over it; name another .h5 file",
            arguments.config.display()
        );
        return Err(Error::Configuration { path: arguments.output.display().to_string(), problems: vec![problem] });
    }
    let facts = together(world, Facts::of(&loaded.study.workload.dataset, &arguments.data))?;
    study::check(&loaded, &facts)?;
    let (chosen, line) = choose(&loaded.study, world)?;
    Ok((loaded, facts, chosen, line))
}

/// What may not be meant, a sentence each.
fn notes(study: &config::Study, dataset: &Dataset, threads: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let examples = dataset.training.len();
    if let Some(size) = study.grid.batch_sizes.iter().find(|&&size| size as usize > examples) {
        notes.push(format!(
            "batch size {size} is larger than the training set of {examples} examples: a batch holds some of them more than once"
        ));
    }
    let processors = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
    if study.execution.threads as usize > processors {
        notes.push(format!(
            "{threads} threads on {processors} processors are slower than as many as there are: leave out execution.threads"
        ));
    }
    notes
}

/// The table on standard output, the figure beside the results.
fn report(arguments: &StudyArguments, results: &dps::results::Results) -> Result<()> {
    let figure = journal::figure_path(&arguments.output);
    analysis::steps_to_result_plot(results, &figure)?;
    if !arguments.quiet {
        let (results_file, figure) = (arguments.output.display(), figure.display());
        out(&format!("{}\nResults: {results_file}\nFigure:  {figure}\n", analysis::table(results)));
    }
    Ok(())
}

/// The network's layers, what the study would cost at most, and what it probably takes. Every rank must ask.
fn plan(
    arguments: &StudyArguments,
    loaded: &config::Configuration,
    facts: &Facts,
    chosen: &Chosen,
    world: &dyn Communicator,
    threads: usize,
) -> Result<String> {
    let (study, network) = (&loaded.study, Arc::new(study::check(loaded, facts)?));
    let validation = facts.validation(study.data.validation_fraction);
    let (ranks, trials) = (world.size(), study.grid.trials as usize);
    let (device, units, rate, lanes, memory) = match chosen {
        Chosen::Cpu(unit) => {
            let device = format!("CPU threads with {}, at the measured multiply-add peak of one", unit.name());
            let room = cpu::room(&Physical::new(&network), ranks, world) as usize;
            let lanes = if study.execution.lanes > 0 { study.execution.lanes as usize } else { room }.clamp(1, trials.max(1));
            let processors = Processors { ranks, threads, lanes, program: resident_memory() };
            (device, ranks * threads, peak_flop(*unit), lanes, Memory::on(&processors, study, facts, &network))
        }
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => {
            // Weights, velocity and mask, and a gradient for each lane.
            let bytes = (4 * 4 * network.parameters() * trials) as u64 + facts.bytes(facts.training + facts.test);
            (format!("{}, at the 32-bit peak of its clock", cuda.name()), ranks, cuda.peak_flop(), trials, Memory { bytes, saving: bytes })
        }
    };
    let cost = NetworkCost {
        parameters: network.parameters(),
        forward_flop: network.forward_flop(),
        training_flop: network.training_flop(),
        memory,
    };
    let site = Site {
        training_examples: facts.training as u64 - validation as u64,
        validation_examples: validation as u64,
        device,
        ranks: units as u32,
        lanes: lanes as u32,
        flop_per_second: rate * units as f64,
    };
    let bound = CostBound::new(study, &network, &cost, &site);
    let expected = study::expected(&bound, loaded, &arguments.output).map_or(String::new(), |words| format!("{words}\n"));
    Ok(format!("{}\n{bound}{expected}", study::layer_table(&network)))
}
