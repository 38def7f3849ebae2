//! Synthetic studies for the tests of reports: every number follows from a known law.

use dps::optimizer::{Metaparameter, Metaparameters};
use dps::records::{Cell, CellKey, CurvePoint, Status, Trial};
use dps::results::{Environment, Results, WorkloadSummary};
use dps::settings::Race;

/// Steps between evaluations of every synthetic study.
pub const EVERY: u32 = 16;

/// A synthetic study: its grid, and what its results are made by.
#[derive(Clone)]
pub struct Synthetic {
    pub optimizer: &'static str,
    pub batch_sizes: Vec<u32>,
    pub sparsities: Vec<f64>,
    pub trials: u32,
    pub race: Race,
    /// Relative scatter of K*.
    pub noise: f64,
}

impl Synthetic {
    /// Batch sizes 2 to 2,048, three sparsities and 40 trials by momentum, raced.
    pub fn large() -> Synthetic {
        let batch_sizes = (1..12).map(|power| 1 << power).collect();
        Synthetic { optimizer: "momentum", batch_sizes, sparsities: vec![0.0, 0.5, 0.9], trials: 40, race: Race::Until(1.0), noise: 0.1 }
    }

    /// Four batch sizes, two sparsities and 8 trials by momentum, each run to its end.
    pub fn small() -> Synthetic {
        Synthetic {
            optimizer: "momentum",
            batch_sizes: vec![2, 8, 32, 128],
            sparsities: vec![0.0, 0.9],
            trials: 8,
            race: Race::Off,
            noise: 0.0,
        }
    }

    fn has_momentum(&self) -> bool {
        ["momentum", "nesterov"].contains(&self.optimizer)
    }

    /// The configuration as dps-train would store it.
    pub fn configuration(&self) -> String {
        let momentum = if self.has_momentum() { "momentum = { min = 0.9, max = 0.9999, scale = \"reverse-log\" }\n" } else { "" };
        format!(
            "[workload]\ndataset = \"fashion-mnist\"\nnetwork = \"simple-cnn\"\noptimizer = \"{}\"\ngoal_error = 0.14\nmax_steps = 40000\n\
             evaluate_every = {EVERY}\n\n[grid]\nbatch_sizes = {:?}\nsparsities = {:?}\ntrials = {}\n\n[search]\n\
             learning_rate = {{ min = 1e-4, max = 1.0, scale = \"log\" }}\n{momentum}\n[execution]\nrace = {}\n",
            self.optimizer,
            self.batch_sizes,
            self.sparsities,
            self.trials,
            self.race.factor().map_or("false".to_owned(), |factor| factor.to_string())
        )
    }

    /// c1 and c2 by which the steps-to-result of a sparsity follow K* = c1/B + c2.
    pub fn law(&self, sparsity: f64) -> (f64, f64) {
        let quicker = if self.optimizer == "sgd" { 1.6 } else { 1.0 };
        ((1.0 + sparsity) * 9000.0, (1.0 + sparsity) * 90.0 * quicker)
    }

    /// The whole study.
    pub fn results(&self) -> Results {
        let keys =
            self.sparsities.iter().flat_map(|&sparsity| self.batch_sizes.iter().map(move |&batch_size| CellKey { batch_size, sparsity }));
        Results {
            configuration: self.configuration(),
            environment: Environment {
                program_version: "0.1.0".to_owned(),
                commit: "0123abc".to_owned(),
                mpi_library: "Open MPI 4.1.4".to_owned(),
                ranks: 2,
                threads: 1,
                host: "node".to_owned(),
                device: "CPU, AVX-512".to_owned(),
                data_digest: "ab".repeat(32),
                started: "2026-01-02T03:04:05Z".to_owned(),
                finished: "2026-01-02T04:05:06Z".to_owned(),
                ..Environment::default()
            },
            workload: WorkloadSummary {
                dataset: "fashion-mnist".to_owned(),
                network: "simple-cnn".to_owned(),
                optimizer: self.optimizer.to_owned(),
                schedule: "constant".to_owned(),
                goal_error: 0.14,
                goal_threshold: 840,
                validation_examples: 6000,
                training_examples: None,
                test_examples: 10_000,
                max_steps: 40_000,
                evaluate_every: EVERY,
                parameters: 62_346,
            },
            cells: keys.map(|key| self.cell(key)).collect(),
            complete: true,
        }
    }

    /// A cell whose trials do the better the nearer their effective learning rate is to the cell's best.
    pub fn cell(&self, key: CellKey) -> Cell {
        let (c1, c2) = self.law(key.sparsity);
        let place = u64::from(key.batch_size) + (key.sparsity * 1000.0) as u64 * 7919;
        let scatter = (self.noise * normal(place)).exp();
        let least = (c1 / f64::from(key.batch_size) + c2) * scatter;
        let best_rate = 0.02 * f64::from(key.batch_size).sqrt();
        let trial = |index: u32| {
            let u = |dimension: u64| uniform(u64::from(index) * 2 + dimension + place * 1000);
            let learning_rate = 10f64.powf(-4.0 + 4.0 * u(0));
            let momentum = self.has_momentum().then(|| 1.0 - 10f64.powf(-4.0 + 3.0 * u(1)));
            let off = (learning_rate / (1.0 - momentum.unwrap_or(0.0)) / best_rate).log10();
            // The first trial is at the best place, so that K* follows the law, and two more are near it, one on each side.
            let (learning_rate, momentum, off) = match index {
                0..3 => {
                    let (off, near) = [(0.0, 0.95), (0.2, 0.93), (-0.2, 0.97)][index as usize];
                    (best_rate * 0.05 * 10f64.powf(off), momentum.map(|_| near), off)
                }
                _ => (learning_rate, momentum, off),
            };
            let steps = (least * (1.0 + 3.0 * off * off) / f64::from(EVERY)).ceil().max(1.0) as u32 * EVERY;
            let status = match steps {
                _ if off > 1.0 => Status::Infeasible,
                steps if steps <= 40_000 => Status::Complete,
                _ => Status::Incomplete,
            };
            let mut metaparameters = Metaparameters::from([(Metaparameter::LearningRate, learning_rate)]);
            metaparameters.set(Metaparameter::Momentum, momentum);
            let steps_run = match status {
                Status::Infeasible => 48,
                _ => steps.min(40_000),
            };
            Trial {
                status,
                steps: (status == Status::Complete).then_some(steps),
                steps_run,
                parameters_kept: (62_346.0 * (1.0 - key.sparsity)) as u32,
                mask_hash: 1,
                seconds: f64::from(steps_run) * 1e-3,
                ..Trial::new(index, metaparameters)
            }
        };
        let mut trials: Vec<Trial> = (0..self.trials).map(trial).collect();
        let best = trials.iter().filter_map(|trial| trial.steps).min();
        if let Some(end) = best.and_then(|best| self.race.last_step(best, EVERY)) {
            for trial in trials.iter_mut().filter(|trial| trial.status != Status::Infeasible && trial.steps_run > end) {
                (trial.status, trial.steps, trial.steps_run) = (Status::Censored, None, end);
            }
        }
        for trial in &mut trials {
            let full = self.race == Race::Off;
            trial.curve = (1..=trial.steps_run / EVERY).map(|evaluation| point(evaluation * EVERY, trial, full)).collect();
        }
        let reached = trials.iter().any(|trial| trial.steps.is_some());
        Cell { key, trials, test_errors: reached.then_some(1409), seconds: 12.5, confirmations: Vec::new() }
    }
}

/// A curve that comes to the goal at the trial's end where it is complete.
fn point(step: u32, trial: &Trial, full: bool) -> CurvePoint {
    let left = 1.0 - f64::from(step) / f64::from(trial.steps_run);
    let goal = trial.status == Status::Complete && step == trial.steps_run;
    let noise = 1.0 + 0.25 * normal(u64::from(step) * 31 + u64::from(trial.index));
    let errors = if goal { 840 } else { 860 + (4500.0 * left * left) as u32 };
    let (errors, examples) = if full || goal { (errors, 6000) } else { (841, 2500) };
    CurvePoint { step, loss: ((0.35 + 2.0 * left * left) * noise.abs()) as f32, errors, examples }
}

/// A uniform number in (0, 1), a function of `counter`.
pub fn uniform(counter: u64) -> f64 {
    let mut z = counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
}

/// A standard normal number, a function of `counter`.
pub fn normal(counter: u64) -> f64 {
    (-2.0 * uniform(2 * counter).ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform(2 * counter + 1)).cos()
}
