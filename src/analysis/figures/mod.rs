//! The figures, a file for each kind: what they show, as data. How it is drawn is said in `chart`.

use crate::analysis::statistics::Fitted;
use crate::analysis::studies::{StudyResults, has_curves, has_trials};

mod budgets;
mod curves;
mod fewer;
mod figure;
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

pub use figure::Figure;
pub use optimizers::optimizers;
pub use together::steps_to_result_plot;
pub use whole_curves::{Whole, whole_curves};
pub use workloads::{ratios, workloads};

/// Every figure of one study, in the order of the page. A study that was run for its measurements alone has none of K*.
pub fn figures(study: &StudyResults, fits: &[Fitted]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let alone = study.measures_alone();
    if !alone {
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
