//! The gradient's local Lipschitz constant along training (figure 4 of Lee et al., ICLR 2021) and its noise scale (McCandlish et al., 2018).

use std::collections::BTreeMap;

use super::super::axes::Scale;
use super::super::grid::Curve;
use super::super::studies::Study;
use super::Figure;
use super::curves::{Look, Shown, sheet};
use crate::study::{Cell, Measurement};

/// Lipschitz constant over steps; none where nothing was measured.
pub fn lipschitz(study: &Study) -> Option<Figure> {
    let look = Look { y: "Lipschitz constant of ∇f", title: "local Lipschitz constant along training", x: Scale::Linear };
    let sheet = sheet(study, &look, |cell| points(cell, |found| found.lipschitz), None)?;
    Some(Figure {
        name: "lipschitz",
        heading: "Smoothness along training",
        caption: format!(
            "Local Lipschitz constant L of the gradient over the training set: the largest change of the gradient over the distance, at points of the \
             step just to be taken{}. The theory's c1 grows with L: a sparser network whose line lies higher has less smooth a loss, and needs more \
             steps.",
            several(study)
        ),
        sheet,
    })
}

/// Noise scale over steps; none where nothing was measured.
pub fn noise_scale(study: &Study) -> Option<Figure> {
    let look = Look { y: "Gradient noise scale (examples)", title: "gradient noise scale along training", x: Scale::Linear };
    let sheet = sheet(study, &look, |cell| points(cell, |found| Some(found.noise_scale())), None)?;
    Some(Figure {
        name: "noise-scale",
        heading: "The gradient's noise along training",
        caption: format!(
            "Variance of one example's gradient over the squared norm of the mean gradient{}. In batches much smaller than this noise outweighs the \
             gradient, and twice the batch halves the steps; in much larger ones it is gone, and returns diminish. It grows as training proceeds.",
            several(study)
        ),
        sheet,
    })
}

fn several(study: &Study) -> &'static str {
    let measured = |cell: &Cell| cell.trials.iter().filter(|trial| !trial.measurements.is_empty()).count();
    if study.results.cells.iter().any(|cell| measured(cell) > 1) { ", mean over the measured trials" } else { "" }
}

/// The mean over a cell's measured trials at each step at which any has a value.
fn points(cell: &Cell, value: impl Fn(&Measurement) -> Option<f64>) -> Option<Shown> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for measurement in cell.trials.iter().flat_map(|trial| &trial.measurements) {
        let Some(value) = value(measurement).filter(|value| value.is_finite()) else { continue };
        let sum = sums.entry(measurement.step).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    let line: Curve = sums.into_iter().map(|(step, (sum, count))| (f64::from(step), sum / count)).collect();
    (!line.is_empty()).then_some(Shown { line, bounds: Vec::new() })
}
