//! `dps-train pilot`: whole curves at the corners of a study's grid, and what they propose.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;

use dps::arguments::{PilotArguments, StudyArguments};
use dps::comm::{Communicator, together};
use dps::data::Dataset;
use dps::pilot::{PICTURE_TITLE, Part, parts, propose};
use dps::progress::{Event, Observer, ProgressForm};
use dps::readable::{count, duration, shell_path, some};
use dps::results::Results;
use dps::storage::open_regular;
use dps::streams::out;
use dps::{Error, Result, data, exit, results, settings, signals, study};

use crate::plan::bound;
use crate::study::{Prepared, fail, load, measure, observer, prepare};

/// Part of the machine's peak speed that training is assumed to reach, as in a plan.
const ASSUMED: &str = "at half of this machine's peak speed";

/// Bytes at the begin of a picture in which its title stands: a title is at most as long as a file's name.
const HEAD: u64 = 1024;

/// Runs a pilot on all ranks.
pub fn pilot(arguments: &PilotArguments, world: &dyn Communicator, mpi_library: &str) -> u8 {
    let asked = &arguments.study();
    let speaks = world.rank() == 0;
    if speaks {
        signals::speak(asked.shown.form() == ProgressForm::Json);
    }
    let refuse = |error: &Error| fail(speaks, asked.shown.form(), error);
    let mut observer = observer(asked, speaks);
    let begun = prepare(asked, world).and_then(|whole| {
        let text = together(world, begin(asked))?;
        let parts = designed(arguments, &whole, world, &mut *observer)?;
        let dataset = load(asked, &whole.configuration, world)?;
        Ok((whole, text, parts, dataset))
    });
    let (whole, text, parts, dataset) = match begun {
        Ok(begun) => begun,
        Err(error) => return refuse(&error),
    };
    let mut measured: Vec<Results> = Vec::new();
    for (part, arguments, prepared) in &parts {
        let sparsities: Vec<String> = prepared.configuration.study.grid.sparsities.iter().map(f64::to_string).collect();
        observer.event(&Event::Note(&format!(
            "pilot: batch size {} at sparsity {}: {} of {} each; results: {}",
            count(part.batch_size),
            sparsities.join(" and "),
            some(part.trials as usize, "curve"),
            some(part.steps as usize, "step"),
            part.output.display()
        )));
        match measure(arguments, prepared, &dataset, world, mpi_library.to_owned()) {
            Ok(results) => measured.push(*results),
            Err(code) => return code,
        }
    }
    let parts: Vec<Part> = parts.into_iter().map(|(part, ..)| part).collect();
    if !speaks {
        return together(world, Ok(())).map_or_else(|error| error.exit_code(), |()| exit::DONE);
    }
    let written = publish(arguments, &whole, &text, (&parts, &measured), &dataset);
    together(world, written).map_or_else(|error| refuse(&error), |()| exit::DONE)
}

/// Reads the configuration's text. Refuses an output that is there or names a folder, and a picture that is there unless a pilot without a proposal
/// drew it.
fn begin(asked: &StudyArguments) -> Result<String> {
    let refuse = |path: &Path, problem: String| Error::Configuration { path: path.display().to_string(), problems: vec![problem] };
    let (output, picture) = (asked.output(), asked.output().with_extension("svg"));
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(refuse(
            &output,
            "expected the name of a file for the proposal, found that of a folder; choose another --output".to_owned(),
        ));
    }
    if let Some(problem) = dps::init::refused_name(&output) {
        return Err(refuse(&output, problem.to_owned()));
    }
    let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    for (path, is_written_over) in [(&output, is_there(&output)), (&picture, is_there(&picture) && !is_picture(&picture))] {
        if is_written_over {
            return Err(refuse(path, "expected no such file, found one; name another with --output, or move it away".to_owned()));
        }
    }
    std::fs::read_to_string(&asked.config)
        .map_err(|cause| refuse(&asked.config, format!("the file cannot be read ({cause}); make it readable")))
}

/// Whether the file at `path` is the picture of a pilot.
fn is_picture(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = open_regular(path, OpenOptions::new().read(true)).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(&format!("{PICTURE_TITLE}</title>"))
}

/// The studies of the pilot, ready to be measured. How long they probably take is said.
fn designed(
    arguments: &PilotArguments,
    whole: &Prepared,
    world: &dyn Communicator,
    observer: &mut dyn Observer,
) -> Result<Vec<(Part, StudyArguments, Prepared)>> {
    let asked = arguments.study();
    let parts = parts(&whole.configuration.study, &whole.network, arguments.asked, Path::new("results"), &whole.configuration.name);
    let (mut ready, mut seconds) = (Vec::new(), 0.0);
    for part in parts {
        let set = [&asked.set[..], &part.overrides].concat();
        let study = StudyArguments { set, output: Some(part.output.clone()), ..asked.clone() };
        let configuration = together(world, settings::load(&study.config, &study.overrides()))?;
        let network = study::check(&configuration, &whole.facts)?;
        let prepared = Prepared { configuration, facts: whole.facts, network, chosen: whole.chosen.clone(), about_device: Vec::new() };
        let bound = bound(&prepared, world);
        seconds += bound.assumed_most() + bound.score_seconds();
        ready.push((part, study, prepared));
    }
    let curves: usize =
        ready.iter().map(|(part, _, prepared)| part.trials as usize * prepared.configuration.study.grid.sparsities.len()).sum();
    let line = format!(
        "pilot: {}, probably {} in all ({ASSUMED}); --steps and --trials change that",
        some(curves, "whole curve"),
        duration(seconds)
    );
    observer.event(&Event::Note(&line));
    Ok(ready)
}

/// Writes the proposal and its picture, and says what is proposed.
fn publish(
    arguments: &PilotArguments,
    whole: &Prepared,
    text: &str,
    (parts, measured): (&[Part], &[Results]),
    dataset: &Dataset,
) -> Result<()> {
    let output = arguments.study().output();
    let picture = output.with_extension("svg");
    let proposed =
        propose(&whole.configuration, (text, &arguments.set), parts, measured, dataset.validation.errors_of_guessing(), &picture);
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err((problem, chart)) => {
            chart.publish(&picture)?;
            let problem = format!("{problem}; {} shows the curves", picture.display());
            return Err(Error::Configuration { path: arguments.config.display().to_string(), problems: vec![problem] });
        }
    };
    proposal.chart.publish(&picture)?;
    results::publish(&output, proposal.text.as_bytes())?;
    if !arguments.shown.quiet {
        let (summary, file, picture, named) = (&proposal.summary, output.display(), picture.display(), shell_path(&output));
        let data = data::folder_option(&arguments.data.folder);
        out(&format!("{summary}\nProposal: {file}\nFigure:   {picture}\nNext:     dps-train {named} --plan{data}\n"));
    }
    Ok(())
}
