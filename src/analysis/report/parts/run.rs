//! Part of the page on the run: its workload, its time, and the programs and machines that measured it.

use super::super::document::Block;
use crate::analysis::statistics::is_of_one_machine;
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::error::short;
use crate::forecast::{Forecast, Measured};
use crate::readable::{count, some};
use crate::records::{CellKey, Ending, counted};
use crate::results::Environment;

/// Letters of a command line that the page shows.
const LONGEST_COMMAND: usize = 400;

/// Workload, goal and grid of a study, and the time of cells to come.
pub fn run(study: &StudyResults) -> Vec<Block<'static>> {
    let workload = &study.results.workload;
    let grid = study.grid();
    let configured = study.configuration.as_ref().map(|study| &study.grid);
    let (sizes, sparsities) =
        configured.map_or((&grid.batch_sizes, &grid.sparsities), |configured| (&configured.batch_sizes, &configured.sparsities));
    let list = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
    let trials: Vec<usize> = study.results.cells.iter().map(|cell| cell.trials.len()).collect();
    let trials = match (trials.iter().min(), trials.iter().max()) {
        (Some(&low), Some(&high)) if low == high => format!("{} a cell", some(low, "trial")),
        (Some(low), Some(high)) => format!("{low} to {high} trials a cell"),
        _ => "no trials yet".to_owned(),
    };
    let missing = study.missing();
    let cells = match study.results.cells.len() {
        measured if study.results.complete => format!("{}; finished", some(measured, "cell")),
        measured if missing.is_empty() => format!("{}; more are to come", some(measured, "cell")),
        measured => format!("{} of {} so far", count(measured as u64), some(measured + missing.len(), "cell")),
    };
    let goal = match study.measures_alone() {
        true => "none: every trial runs to its last step, and its loss surface is measured on the way".to_owned(),
        false if workload.validation_examples == 0 => study.goal(),
        false => format!(
            "validation error ≤ {}: at most {} of {} examples wrong",
            workload.goal_error,
            count(workload.goal_threshold),
            count(workload.validation_examples)
        ),
    };
    let mut rows = vec![("Workload", study.name())];
    // Measurements of others need not say all this.
    if workload.parameters > 0 {
        rows.push(("Parameters", count(workload.parameters)));
    }
    rows.push(("Goal", goal));
    if let Some(examples) = workload.training_examples {
        rows.push(("Validation set", format!("the data's own; all {} examples of the training file are trained on", count(examples))));
    }
    if workload.evaluate_every > 0 {
        rows.push(("Tested", format!("every {}, up to {}", some(workload.evaluate_every as usize, "step"), count(workload.max_steps))));
    }
    rows.push(("Batch sizes", list(&mut sizes.iter().map(|size| count(*size)))));
    rows.push(("Sparsities", list(&mut sparsities.iter().map(f64::to_string))));
    if has_trials(&study.results) {
        rows.push(("Trials", format!("{trials}, {cells}")));
    }
    if !missing.is_empty() {
        let left = to_come(study, &missing).unwrap_or_else(|| "how long is not known".to_owned());
        rows.push(("To come", format!("{}: {left}", some(missing.len(), "cell"))));
    }
    vec![Block::Pairs(rows)]
}

/// How long cells of a study that are not measured probably take, in words, by the seconds of those that are. None where no cell is measured, or
/// several machines measured them.
pub fn to_come(study: &StudyResults, cells: &[CellKey]) -> Option<String> {
    if !is_of_one_machine(study) {
        return None;
    }
    let measured: Vec<Measured> = study.results.cells.iter().map(Measured::of).collect();
    let trials = study.results.cells.iter().map(|cell| cell.trials.len()).max().unwrap_or(0);
    let forecast = Forecast::new(&measured, &cells.iter().map(|&key| (key, 0.0)).collect::<Vec<_>>(), trials, None)?;
    Some(format!("{}, by the seconds of the measured cells, with the same race and on the same machine", forecast.left))
}

/// Where a study is from: its files, machine, program, command and data.
pub fn provenance(study: &StudyResults) -> Vec<Block<'static>> {
    if !is_of_dps(&study.results) {
        let whom = "others; what is not here their files do not say".to_owned();
        return vec![Block::Pairs(vec![("Read from", study.sources.join(", ")), ("Run by", whom)])];
    }
    let mut rows = vec![("Result files", study.sources.join(", "))];
    for environment in &study.environments {
        let ranks = some(environment.ranks as usize, "rank");
        let threads = some(environment.threads as usize, "thread");
        rows.push((
            "Run on",
            format!("{}, {ranks} of {threads}, host {}, MPI: {}", environment.device, environment.host, environment.mpi_library),
        ));
        rows.push(("Run by", program(environment)));
        rows.push(("Processor", environment.processor.clone()));
        rows.push(("Command", short(&environment.command_line, LONGEST_COMMAND)));
        rows.push(("Time", format!("{} to {}", environment.started, environment.finished)));
        if environment.starts.len() > 1 {
            let later = environment.starts.iter().filter(|start| start.before != Ending::First);
            let causes = later.map(|start| format!("after {}, on {}", start.before, some(start.ranks as usize, "rank")));
            let causes = counted(&causes.collect::<Vec<String>>());
            rows.push(("Starts", format!("{}: {}", some(environment.starts.len(), "start"), causes.join("; "))));
        }
        rows.push(("Data (SHA-256)", environment.data_digest.clone()));
    }
    // Files of older programs do not say everything.
    rows.retain(|(_, text)| !text.is_empty());
    vec![Block::Pairs(rows)]
}

/// The program, the files that it was built from, and its compiler.
fn program(environment: &Environment) -> String {
    let tree = match environment.source_tree.as_str() {
        "modified" => " with changed files",
        _ => "",
    };
    let built = format!("dps {} {}", environment.program_version, environment.commit).trim_end().to_owned() + tree;
    let compiler = Some(&environment.compiler).filter(|compiler| !compiler.is_empty());
    compiler.map_or(built.clone(), |compiler| format!("{built}, by {compiler}"))
}
