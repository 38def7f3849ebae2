//! The race on real data: cells measured with a race and without one have the same steps-to-result. `make test-data` fetches Fashion-MNIST and runs
//! this.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::storage::place;
use dps::backend::cpu::{Cpu, VectorUnit};
use dps::config::Override;
use dps::data::Dataset;
use dps::records::{Cell, Status};
use dps::settings::{self, Configuration};
use dps::storage::Disk;
use dps::study::{Beginning, RunEnd, Surroundings, run};
use dps::{progress, results};

const STUDY: &str = r#"[workload]
dataset = "fashion-mnist"
network = "simple-cnn"
optimizer = "momentum"
goal_error = 0.27
max_steps = 128
evaluate_every = 16
[grid]
batch_sizes = [32]
sparsities = [0, 0.9]
trials = 5
[search]
learning_rate = { min = 1e-3, max = 1.0, scale = "log" }
momentum = { min = 0.8, max = 0.99, scale = "reverse-log" }
[pruning]
examples = 500
[data]
validation_fraction = 0.02
"#;

fn cells(config: &Path, folder: &Path, dataset: &mut Option<Dataset>, seed: u32, race: bool) -> Vec<Cell> {
    let overrides = [("data.split_seed", seed.to_string()), ("execution.race", race.to_string())].map(|(key, value)| Override {
        option: format!("--set {key}={value}"),
        key: key.into(),
        value,
    });
    let loaded: Configuration = settings::load(config, &overrides).unwrap();
    let data = std::env::var_os("DPS_DATA").map_or_else(|| PathBuf::from("data"), PathBuf::from);
    let dataset = dataset
        .get_or_insert_with(|| Dataset::load(loaded.study.workload.dataset.clone(), &data, &loaded.study.data).expect("make test-data"));
    let place = place(2, Arc::new(Disk), Surroundings::PROCESS);
    let cpu = Cpu { unit: VectorUnit::best(), threads: 2, convolutions: loaded.study.execution.convolutions };
    let output = folder.join(format!("{seed}-{race}.h5"));
    let outcome = run(&loaded, dataset, &place, &cpu, &output, Beginning::Journal, &mut *progress::silent()).unwrap();
    assert!(matches!(outcome, RunEnd::Finished(_)));
    results::read(&output).unwrap().cells
}

#[test]
#[ignore = "needs Fashion-MNIST: make test-data"]
fn a_raced_cell_has_the_steps_to_result_and_the_best_trial_of_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("race.toml");
    std::fs::write(&config, STUDY).unwrap();
    let (mut decided, mut censored, mut raced_steps, mut whole_steps) = (0, 0, 0, 0);
    for seed in 0..3 {
        // Another split is another study: other batches, other masks, another validation set.
        let mut dataset = None;
        let raced = cells(&config, folder.path(), &mut dataset, seed, true);
        let whole = cells(&config, folder.path(), &mut dataset, seed, false);
        assert_eq!((raced.len(), whole.len()), (2, 2));
        for (raced, whole) in raced.iter().zip(&whole) {
            assert_eq!(raced.steps_to_result(), whole.steps_to_result(), "split {seed}, {:?}", raced.key);
            assert_eq!(raced.best().map(|best| best.index), whole.best().map(|best| best.index));
            assert_eq!(raced.test_errors, whole.test_errors);
            decided += usize::from(raced.steps_to_result().is_some());
            for (raced, whole) in raced.trials.iter().zip(&whole.trials) {
                // A censored trial is the beginning of the whole one.
                assert_eq!(raced.curve[..], whole.curve[..raced.curve.len()], "split {seed}, trial {}", raced.index);
                censored += usize::from(raced.status == Status::Censored);
                assert_ne!(whole.status, Status::Censored);
                raced_steps += raced.steps_run;
                whole_steps += whole.steps_run;
            }
        }
    }
    println!("{decided} of 6 cells reached the goal; {censored} trials censored; {raced_steps} steps instead of {whole_steps}");
    // The race did end trials early; else this test would compare a study with itself.
    assert!(decided >= 3 && censored >= 3 && raced_steps < whole_steps);
}
