//! `mpirun -n 8 dps-train CONFIG`: measures steps-to-result over batch sizes and sparsities.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod commands;
#[path = "../common/mod.rs"]
mod common;
mod pilot;
mod plan;
mod replay;
mod study;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use common::leave;
use dps::arguments::{DataCommand, StudyArguments, Train};
use dps::comm::{self, launcher};
use dps::data::DatasetName;
use dps::journal::Journal;
use dps::progress::ProgressForm;
use dps::storage::Disk;
use dps::streams::{err, out};
use dps::supervise::Hosts;
use dps::{Result, arguments, data, doctor, exit, init, settings, signals, streams};
use signal_hook::consts::SIGINT;

/// How a study's progress is shown, and so its errors; set before the study begins.
static SHOWN: OnceLock<ProgressForm> = OnceLock::new();

fn main() -> ExitCode {
    common::prepare("dps-train");
    // SAFETY: no other thread has started.
    #[cfg(feature = "cuda")]
    unsafe {
        dps::backend::cuda::nccl::prepare_environment();
    }
    comm::on_abandon(|error| leave(study::fail(true, SHOWN.get().copied().unwrap_or_default(), error)));
    streams::exit_code(run())
}

/// Does what the command line says; the exit code.
fn run() -> u8 {
    match Train::read(std::env::args_os()) {
        Ok(Train::Study(arguments)) if arguments.cells => print(commands::list(&arguments)),
        Ok(Train::Study(arguments)) => measured(&arguments),
        Ok(Train::Confirm(asked)) => measured(&asked.study()),
        Ok(Train::Pilot(asked)) => {
            be_ready(asked.shown.form());
            study::start(asked.shown.form(), |world, mpi| pilot::pilot(&asked, world, &mpi))
        }
        // None of the others starts MPI: batch scripts run them outside of mpirun.
        Ok(Train::Init { path, given, data }) => print(commands::new_configuration(&path, &given, &data.folder)),
        Ok(Train::Completions { shell }) => print(Ok(arguments::completions(shell))),
        Ok(Train::Man { folder: Some(folder) }) => print(commands::write_pages(&folder, &arguments::manual_pages())),
        Ok(Train::Man { folder: None }) => print(Ok(arguments::manual_pages().swap_remove(0).1)),
        Ok(Train::Keys { markdown: true, .. }) => print(Ok(settings::markdown_of_keys())),
        Ok(Train::Keys { name, .. }) => print(settings::keys(name.as_deref())),
        Ok(Train::Configs { name: None }) => print(Ok(init::list())),
        Ok(Train::Configs { name: Some(name) }) => print(init::text(&name).map(str::to_owned)),
        Ok(Train::Merge { parts, output, force }) => print(commands::merge(parts, &output, force)),
        // Each is said; the exit code is that of the first that fails.
        Ok(Train::Status { results, json, progress }) => {
            let codes: Vec<u8> = results.iter().map(|path| print(commands::status(path, json, progress))).collect();
            codes.into_iter().find(|&code| code != exit::DONE).unwrap_or(exit::DONE)
        }
        Ok(Train::Replay(arguments)) => finish(replay::replay(&arguments)),
        Ok(Train::Supervise { results, command, hosts, reach, ask_every, tries }) => {
            let output = match results.map_or_else(|| arguments::supervised(&command), Ok) {
                Ok(output) => output,
                Err(answer) => return streams::usage(&answer),
            };
            let hosts = hosts.map(|list| Hosts::read(&list, &reach, Duration::from_secs(ask_every.into()))).transpose();
            hosts.map_or_else(|error| finish(Err(error)), |hosts| commands::supervised(&command, hosts.as_ref(), &output, tries))
        }
        Ok(Train::Ended { results, code }) => finish(Journal::note_end(&results, code, Arc::new(Disk))),
        Ok(Train::Doctor { data, gpu }) => {
            let examination = doctor::examine(&data.folder);
            out(&examination.text(gpu));
            examination.exit_code(gpu)
        }
        Ok(Train::Data(DataCommand::Fetch { name: Some(dataset), data })) => {
            let fetched = data::fetch(dataset, &data.folder, &mut |line| err(line));
            print(fetched.map(|place| format!("{dataset} is in {}\n", place.display())))
        }
        Ok(Train::Data(DataCommand::Fetch { name: None, data })) => {
            let found = |&name: &DatasetName| if data::locate(name, &data.folder).is_ok() { "  (found)" } else { "" };
            print(Ok(DatasetName::ALL.iter().map(|name| format!("{name}{}\n", found(name))).collect()))
        }
        Ok(Train::Data(DataCommand::Check { config, set, data })) => print(commands::check_data(&config, &set, &data.folder)),
        // Under mpirun every rank reads the command line; the first one speaks.
        Err(answer) if launcher::rank() > 0 => {
            if answer.use_stderr() {
                launcher::let_the_first_speak(launcher::rank());
            }
            answer.exit_code() as u8
        }
        Err(answer) => streams::usage(&answer),
    }
}

/// Measures a study, or plans it; the exit code.
fn measured(arguments: &StudyArguments) -> u8 {
    be_ready(arguments.shown.form());
    study::start(arguments.shown.form(), |world, mpi| study::train(arguments, world, mpi))
}

/// Prints a text, or says why there is none; the exit code.
fn print(text: Result<String>) -> u8 {
    finish(text.map(|text| out(&text)))
}

/// Prepares for a study whose progress is shown so. Listens for signals before all else: one that comes while data are read should stop a study as
/// gently as any other.
fn be_ready(progress: ProgressForm) {
    let _ = SHOWN.set(progress);
    if let Err(cause) = listen(launcher::is_certain()) {
        err(&format!("dps-train: signals cannot be caught ({cause}): a stopped study will go on from its last checkpoint"));
    }
}

/// Starts to listen for signals. A second SIGINT ends the process at once, for a person who does not want to wait; so does the death of the launcher,
/// where there is one, if the study takes longer than a minute to stop.
fn listen(launched: bool) -> std::io::Result<()> {
    signal_hook::flag::register_conditional_shutdown(SIGINT, exit::KILLED.into(), signals::stop_flag())?;
    // `leave` ends the process at once: at an ordinary end MPI and CUDA may wait for the launcher.
    signals::listen(launched.then_some(|| leave(exit::COMMUNICATION)))
}

/// The exit code of a result; an error is said.
fn finish(result: Result<()>) -> u8 {
    common::finish("dps-train", result.map(|()| exit::DONE))
}
