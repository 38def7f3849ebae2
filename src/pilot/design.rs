//! Which studies a pilot measures: one for each of the two extreme batch sizes, as their curves have different lengths.

use std::path::{Path, PathBuf};

use crate::config::Override;
use crate::network::Network;
use crate::settings::{Study, ascending};

/// Trials of each corner where nothing else is asked: of so many Sobol points no two neighbours of a dimension are further apart than a fourth.
const TRIALS: u32 = 8;

/// FLOP of the training steps of one batch size, where no steps are asked: a few minutes of two processor cores.
const WORK: f64 = 2e13;

/// Steps of a curve at least, where no steps are asked and the configuration has so many: shorter curves show no goal.
const FEWEST_STEPS: u32 = 200;

/// Evaluations of a curve.
const EVALUATIONS: u32 = 32;

/// A goal that means no errors at all, so that every curve is whole.
const NO_GOAL: &str = "1e-9";

/// Size of a pilot, as the command line asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args)]
pub struct Asked {
    /// Points of the search that are tried [default: 8, or all trials of a smaller study]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub trials: Option<u32>,
    /// Steps of each curve [default: max_steps of the configuration, or as many as take a few minutes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
}

/// One study of a pilot.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The only batch size of the study.
    pub batch_size: u32,
    /// Steps of each curve.
    pub steps: u32,
    /// Steps between two evaluations.
    pub every: u32,
    /// Trials of each of its one or two cells.
    pub trials: u32,
    /// Changes of the configuration that make this study of it.
    pub overrides: Vec<Override>,
    /// Result file of the study.
    pub output: PathBuf,
}

/// The studies of a pilot of `study`, whose result files lie in `folder` and begin with `name`: of the smallest batch size, then of the largest, each
/// at the least and the greatest sparsity. They depend on nothing but the study, its network and what is asked, so that they are the same anywhere.
pub fn parts(study: &Study, network: &Network, asked: Asked, folder: &Path, name: &str) -> Vec<Part> {
    let ends = |values: usize| if values > 1 { vec![0, values - 1] } else { vec![0] };
    let sizes = ascending(study.grid.batch_sizes.iter().copied(), u32::cmp);
    let sparsities = ascending(study.grid.sparsities.iter().copied(), f64::total_cmp);
    let sparsities: Vec<String> = ends(sparsities.len()).into_iter().map(|place| format!("{:?}", sparsities[place])).collect();
    let trials = asked.trials.unwrap_or_else(|| study.grid.trials.min(TRIALS));
    let part = |place: usize| {
        let batch_size = sizes[place];
        let step = f64::from(trials) * sparsities.len() as f64 * f64::from(batch_size) * network.training_flop();
        let affordable = (WORK / step).min(f64::from(u32::MAX)) as u32;
        let steps = asked.steps.unwrap_or_else(|| study.workload.max_steps.min(affordable.max(FEWEST_STEPS)));
        let every = (steps / EVALUATIONS).max(1);
        let changes = [
            ("grid.batch_sizes", format!("[{batch_size}]")),
            ("grid.sparsities", format!("[{}]", sparsities.join(", "))),
            ("grid.trials", trials.to_string()),
            ("workload.goal_error", NO_GOAL.to_owned()),
            ("workload.max_steps", steps.to_string()),
            ("workload.evaluate_every", every.to_string()),
            ("execution.race", "false".to_owned()),
            ("execution.full_evaluation", "true".to_owned()),
            ("confirm", String::new()),
            ("smoothness", String::new()),
        ];
        Part {
            batch_size,
            steps,
            every,
            trials,
            overrides: changes.map(|(key, value)| Override::new("dps-train pilot", key, value)).into(),
            output: folder.join(format!("{name}-pilot-{batch_size}.h5")),
        }
    };
    ends(sizes.len()).into_iter().map(part).collect()
}
