//! The gradient's local Lipschitz constant along training (figure 4 of Lee et al., ICLR 2021) and its noise scale (McCandlish et al., 2018).

use std::collections::BTreeMap;

use super::curves::{Shown, chart};
use super::figure::{Figure, Part};
use crate::analysis::chart::Scale;
use crate::analysis::statistics::{Estimate, ends, noise_scale as found_noise_scale};
use crate::analysis::studies::StudyResults;
use crate::records::{Cell, Measurement};

/// Lipschitz constant over steps; none where nothing was measured.
pub fn lipschitz(study: &StudyResults) -> Option<Figure> {
    let axes = (Scale::Linear, "Local Lipschitz constant L of ∇f");
    let chart = chart(study, "local Lipschitz constant along training", axes, &|cell| points(cell, &|found| found.lipschitz), None)?;
    let caption = format!(
        "Local Lipschitz constant L of the gradient of the training loss f: the largest change of the gradient over the distance (no unit), at points of \
         the step just to be taken{}. The theory's c1 grows with L: a sparser network whose line lies higher has less smooth a loss, and needs more \
         steps.",
        several(study)
    );
    Some(Figure::new(("lipschitz", "Smoothness along training"), caption, "smoothness", &[Part::Theory], chart))
}

/// Noise scale over steps; none where nothing was measured.
pub fn noise_scale(study: &StudyResults) -> Option<Figure> {
    let (axes, sampling) = ((Scale::Linear, "Gradient noise scale (examples)"), study.sampling());
    let noise = |cell: &Cell| points(cell, &|found| Some(found_noise_scale(found, sampling)));
    let chart = chart(study, "gradient noise scale along training", axes, &noise, None)?;
    let part = if sampling > 0.0 { "; what noise adds to a gradient over a part of the training set is taken off" } else { "" };
    let caption = format!(
        "Variance of one example's gradient over the squared norm of the training set's mean gradient{}{part}. In batches much smaller than this noise \
         outweighs the gradient, and twice the batch halves the steps; in much larger ones it is gone, and returns diminish.",
        several(study)
    );
    let names = ("noise-scale", "The gradient's noise along training");
    Some(Figure::new(names, caption, "smoothness", &[Part::Critical, Part::Theory], chart))
}

fn several(study: &StudyResults) -> String {
    let measured = |cell: &Cell| cell.trials.iter().filter(|trial| !trial.measurements.is_empty()).count();
    match study.results.cells.iter().map(measured).max() {
        Some(several) if several > 1 => {
            format!(", geometric mean over {several} trials of different seeds; shaded, from the lowest to the highest of them")
        }
        _ => String::new(),
    }
}

/// Loss over steps of a study that was run for its measurements, over the examples measured on; none where nothing was measured.
pub fn loss(study: &StudyResults) -> Option<Figure> {
    let axes = (Scale::Linear, "Training loss (nats)");
    let chart = chart(study, "training loss", axes, &|cell| points(cell, &|found| Some(found.loss)), None)?;
    let caption = format!("Mean loss over the training examples measured on, over the steps taken{}.", several(study));
    Some(Figure::new(("loss", "Training loss"), caption, "smoothness", &[], chart))
}

/// The geometric mean over a cell's measured trials at each step at which any has a value, and their range where there are several.
fn points(cell: &Cell, value: &dyn Fn(&Measurement) -> Option<f64>) -> Option<Shown> {
    let mut found: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for measurement in cell.trials.iter().flat_map(|trial| &trial.measurements) {
        if let Some(value) = value(measurement).filter(|value| value.is_finite()) {
            found.entry(measurement.step).or_default().push(value);
        }
    }
    let several = found.values().any(|values| values.len() > 1);
    let band = found.iter().filter(|_| several).map(|(&step, values)| {
        let (low, high) = ends(values.iter().copied());
        (f64::from(step), low, high)
    });
    let band = band.collect();
    let line: Vec<_> = found.into_iter().map(|(step, values)| (f64::from(step), Estimate::geometric(values.into_iter()).value)).collect();
    (!line.is_empty()).then(|| Shown { line, band, ..Shown::default() })
}
