//! Measures a small study with the library, in this process alone: `cargo run --release --example measure [FOLDER OF DATA]`.
//!
//! `dps-train data fetch fashion-mnist` puts the data set into the folder `data`. The study has 4 cells of 4 trials; it goes on where an earlier
//! run was stopped, and prints the steps-to-result of each cell.

use std::path::Path;

use dps::Result;
use dps::backend::cpu::{Cpu, VectorUnit};
use dps::comm::{self, Single};
use dps::data::Dataset;
use dps::settings;
use dps::study::{Beginning, Place, RunEnd, run};

const STUDY: &str = r#"
[workload]
dataset = "fashion-mnist"
network = "simple-cnn"
optimizer = "momentum"
goal_error = 0.25
max_steps = 400
evaluate_every = 16

[grid]
batch_sizes = [64, 256]
sparsities = [0, 0.9]
trials = 4

[pruning]
examples = 2_000

[search]
learning_rate = { min = 1e-3, max = 1e-1, scale = "log" }
momentum = { min = 0.8, max = 0.95, scale = "reverse-log" }
"#;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "data".to_owned());
    let configuration = settings::parse("measure", STUDY, &[])?;
    let study = &configuration.study;
    let dataset = Dataset::load(study.workload.dataset.clone(), Path::new(&folder), &study.data)?;
    let threads = comm::threads(&Single);
    let (place, convolutions) = (Place::alone(threads), study.execution.convolutions);
    let device = Cpu { unit: VectorUnit::best(), threads, convolutions };
    let output = Path::new("results/measure.h5");
    let mut observer = dps::progress::silent();
    match run(&configuration, &dataset, &place, &device, output, Beginning::Journal, &mut *observer)? {
        RunEnd::Finished(results) => {
            for cell in &results.cells {
                match cell.steps_to_result() {
                    Some(steps) => println!("{}: {steps} steps", cell.key),
                    None => println!("{}: no trial reached the goal", cell.key),
                }
            }
        }
        RunEnd::Stopped => println!("stopped by a signal; the next run goes on"),
    }
    Ok(())
}
