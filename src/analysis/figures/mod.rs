//! The figures as data: a file for each, and the list of them all below. `chart` says how a figure is drawn.
//!
//! A figure may not compute what a table says too: that is done in `statistics`.

use crate::analysis::statistics::Fitted;
use crate::analysis::studies::{StudyResults, has_curves, has_trials};

mod answer;
mod budgets;
mod curves;
mod fewer;
mod figure;
mod heat;
mod luck;
mod optimizers;
mod panels;
mod parallel;
mod parameters;
mod rates;
mod ratio;
mod scatter;
mod smoothness;
mod so_far;
mod together;
mod trade_off;
mod whole_curves;
mod workloads;

pub use curves::shown;
pub use figure::{Figure, Part};
pub use together::steps_to_result_plot;
pub use whole_curves::{Whole, whole_curves};

/// Every figure of one study, in the order of the page. A study that was run for its measurements alone has none of K*.
pub fn figures(study: &StudyResults, fits: &[Fitted]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let alone = study.measures_alone();
    if !alone {
        figures.extend((!fits.is_empty()).then(|| answer::answer(study, fits)));
        figures.push(together::together(study));
        figures.extend(together::normalised(study, fits));
        figures.extend(panels::panels(study, fits));
        figures.extend(trade_off::trade_off(study, fits));
        figures.extend(ratio::ratio(study));
        figures.extend(luck::luck(study));
        figures.extend(rates::rates(study));
        figures.extend(parameters::parameters(study, fits));
    }
    if !alone && has_trials(&study.results) {
        figures.extend(scatter::scatter(study));
        figures.extend(parallel::parallel(study));
        figures.extend(fewer::fewer(study));
        figures.extend(so_far::so_far(study));
    }
    if !alone {
        figures.extend(budgets::fixed_budgets(study));
    }
    if has_curves(&study.results) {
        figures.extend(if alone { smoothness::loss(study) } else { curves::loss(study) });
        figures.extend(curves::error(study));
    }
    figures.extend(smoothness::lipschitz(study));
    figures.extend(smoothness::noise_scale(study));
    figures
}

/// Figures of studies of one data set, network and goal, and of all studies.
pub fn compared(studies: &[(StudyResults, Vec<Fitted>)]) -> Vec<Figure> {
    let mut groups: Vec<Vec<&StudyResults>> = Vec::new();
    // A table names no optimizer.
    for (study, _) in studies.iter().filter(|(study, _)| !study.results.workload.optimizer.is_empty()) {
        let of = |study: &StudyResults| {
            let workload = &study.results.workload;
            (workload.dataset.clone(), workload.network.clone(), workload.goal_threshold, workload.validation_examples)
        };
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| of(first) == of(study))) {
            Some(group) => group.push(study),
            None => groups.push(vec![study]),
        }
    }
    let with_steps: Vec<(&StudyResults, &[Fitted])> =
        studies.iter().filter(|(study, _)| !study.measures_alone()).map(|(study, fits)| (study, fits.as_slice())).collect();
    let mut figures: Vec<Figure> = groups.iter().filter_map(|group| optimizers::optimizers(group)).collect();
    figures.extend(workloads::workloads(&with_steps));
    figures.extend(workloads::ratios(&with_steps));
    figures
}
