//! What the theory makes of the loss surfaces that were measured: the tables of the paper's appendix C, and the gradient noise scale.

use maud::{Markup, html};

use super::table::{ABSENT, brief, table};
use crate::analysis::statistics::{Along, Estimate, Measured, Shift, Smooth, Surface, decays};
use crate::analysis::studies::StudyResults;
use crate::readable::count;

const SURFACES: [&str; 11] = [
    "batch size",
    "sparsity",
    "trials × times",
    "loss at the start (nats)",
    "loss at the end (nats)",
    "Δ (nats)",
    "along training",
    "β at the start",
    "β along",
    "β at the end",
    "L along",
];
const RATIOS: [&str; 8] = ["batch size", "sparsity", "along training", "Δ", "β at the start", "β along", "β at the end", "L along"];
const PREDICTED: [&str; 2] = ["predicted c1", "fitted c1"];
const PREDICTED_WITH_DECAY: [&str; 5] = ["H*", "predicted c̃1", "fitted c̃1", "predicted c̃2", "fitted c̃2"];
const BY_GRADIENT: [&str; 11] = [
    "batch size",
    "sparsity",
    "along training",
    "ε",
    "η/(1 − m)",
    "Δ·L·β/ε²",
    "fitted c1",
    "Δ/(η·ε)",
    "fitted c2",
    "L·β·η/ε",
    "fitted c1/c2",
];
const NOISE_SCALES: [&str; 6] = ["batch size", "sparsity", "start", "median", "end", "fitted critical batch size"];

/// Loss surfaces, the predictions made of them and the noise scale, each a table.
pub fn theory(study: &StudyResults, smoothness: &[Smooth]) -> Markup {
    let decays = decays(study);
    let surfaces: Vec<Vec<String>> = smoothness.iter().flat_map(surface_rows).collect();
    let ratios: Vec<Vec<String>> = smoothness.iter().flat_map(|smooth| ratio_rows(smooth, decays)).collect();
    let predicted = if decays { &PREDICTED_WITH_DECAY[..] } else { &PREDICTED[..] };
    let by_gradient: Vec<Vec<String>> = smoothness.iter().filter(|_| !decays).flat_map(gradient_rows).collect();
    let noise_scales: Vec<Vec<String>> = smoothness.iter().map(noise_scale_row).collect();
    html! {
        p {
            @if decays {
                "With a decaying learning rate (appendix A.2) K* ≈ c̃1/B + c̃2, c̃1 is proportional to L·H*·β and c̃2 to Δ. " b { "H*" }
                " is the sum of the squared learning rates of the steps to the goal. "
            } @else {
                "With a constant learning rate (section 4.1) K* ≈ c1/B + c2, and c1 is proportional to Δ·β·L. "
            }
            b { "Δ" } " is twice the loss at untrained weights less that at the last measurement; " b { "β" }
            ", the variance of one example's gradient; " b { "L" }
            ", the local Lipschitz constant of the gradient, both along the training: at the steps measured, but for the first one and the "
            "trial's end, where β stands by itself. The paper takes the mean of L over the training and does not say when β was measured. A few "
            "large values rule a mean, so the median stands beside it. Numbers are geometric means over a cell's trials, each measured so many "
            "times; in brackets 95 % intervals by Student's t over those trials, of which a single one has none." (part(study).unwrap_or_default())
            @if !smoothness.iter().any(|smooth| smooth.along.iter().any(|surface| !surface.start_loss.value.is_nan())) {
                " Nothing was measured at untrained weights, so that Δ is missing (smoothness.start = true)."
            }
        }
        (table(&SURFACES, &surfaces))
        @if !ratios.is_empty() {
            p { "Sparse over dense, each trial over the dense one of its seed. The prediction takes β and L along the training." }
            (table(&[&RATIOS[..], predicted, &["measured shift"]].concat(), &ratios))
            p.faint {
                "Lee et al. measured, for Simple-CNN at sparsity 0.9, Δ 1.00, β 0.54 and L 3.09 times the dense network's: 1.67. What was "
                "fitted, and the measured shift, are of steps-to-result of the same workload, in this report, with their own intervals; – there "
                "are none."
                @if decays {
                    " H* is of the best trials of the steps-to-result, geometric mean over batch sizes, and without those of the measured "
                    "trials' steps."
                }
            }
        }
        @if !by_gradient.is_empty() {
            p {
                "The same ratios with the norm ε of the gradient and the learning rate, which the prediction above leaves out as equal: by section 4.1 c1 = "
                "Δ·L·β/(μ²ε²) and c2 = Δ/(ημε), so that proposition 4.1 predicts c1/c2 = L·β·η/(με). All are of the trials measured, at their own rates; ε is "
                "taken along the training, without the noise of a part of the training set."
            }
            (table(&BY_GRADIENT, &by_gradient))
        }
        p {
            b { "Gradient noise scale" }
            ", tr Σ / ‖∇f‖² in examples, at untrained weights, the median along the training, and at the last measurement. McCandlish et al. "
            "(2018) predict the critical batch size to be near it."
        }
        (table(&NOISE_SCALES, &noise_scales))
    }
}

/// What to say where a part of the training set was measured on.
fn part(study: &StudyResults) -> Option<String> {
    let (part, all) = study.measured_on().filter(|(part, all)| part < all)?;
    Some(format!(
        " Measured on the first {} of {} training examples: an estimate of what the whole training set, the paper's choice, would give; of L one \
         from above, as gradients of a part differ by noise too.",
        count(part as u32),
        count(all as u32)
    ))
}

/// Two rows of a cell: with means along the training, and with medians.
fn surface_rows(smooth: &Smooth) -> Vec<Vec<String>> {
    let times = smooth.measurements as f64 / smooth.trials.max(1) as f64;
    let counts = format!("{} × {}", smooth.trials, (times * 10.0).round() / 10.0);
    let row = |(along, surface): (Along, Surface<Estimate>)| {
        let losses = [surface.start_loss, surface.last_loss, surface.decrease].map(brief);
        let values = [surface.start_variance, surface.variance, surface.last_variance, surface.lipschitz].map(brief);
        name(smooth).into_iter().chain([counts.clone()]).chain(losses).chain([along.name().to_owned()]).chain(values).collect()
    };
    Along::ALL.into_iter().zip(smooth.along).map(row).collect()
}

/// Two rows of a cell that has a dense one to compare with, none of another.
fn ratio_rows(smooth: &Smooth, decays: bool) -> Vec<Vec<String>> {
    let Some(over_dense) = smooth.over_dense else { return Vec::new() };
    let measured = |ratio: fn(Measured) -> Option<Estimate>| optional(smooth.measured.and_then(ratio));
    let shift = measured(|measured| measured.shift.map(Shift::estimate));
    let (c1, c2) = (measured(|measured| measured.c1_ratio), measured(|measured| measured.c2_ratio));
    let row = |(along, over): (Along, Surface<Estimate>)| {
        let values = [over.decrease, over.start_variance, over.variance, over.last_variance, over.lipschitz].map(brief);
        let predicted = brief(smooth.predicted_c1(&over));
        let laws = match decays {
            true => {
                let searched = smooth.measured.and_then(|measured| measured.squared_rates_ratio);
                vec![brief(searched.unwrap_or(over.squared_rates)), predicted, c1.clone(), brief(over.decrease), c2.clone()]
            }
            false => vec![predicted, c1.clone()],
        };
        name(smooth).into_iter().chain([along.name().to_owned()]).chain(values).chain(laws).chain([shift.clone()]).collect()
    };
    Along::ALL.into_iter().zip(over_dense).map(row).collect()
}

/// Two rows of a cell that has a dense one to compare with: what the norm of the gradient makes of the prediction.
fn gradient_rows(smooth: &Smooth) -> Vec<Vec<String>> {
    let Some(over_dense) = smooth.over_dense else { return Vec::new() };
    let measured = |ratio: fn(Measured) -> Option<Estimate>| optional(smooth.measured.and_then(ratio));
    let row = |(along, over): (Along, Surface<Estimate>)| {
        let values = [
            brief(over.gradient),
            brief(over.rate),
            brief(over.c1_by_gradient),
            measured(|measured| measured.c1_ratio),
            brief(over.c2_by_gradient),
            measured(|measured| measured.c2_ratio),
            brief(over.critical_by_gradient),
            measured(|measured| measured.critical_ratio),
        ];
        name(smooth).into_iter().chain([along.name().to_owned()]).chain(values).collect()
    };
    Along::ALL.into_iter().zip(over_dense).map(row).collect()
}

fn noise_scale_row(smooth: &Smooth) -> Vec<String> {
    let critical = optional(smooth.measured.and_then(|measured| measured.critical));
    name(smooth).into_iter().chain(smooth.noise_scale.map(brief)).chain([critical]).collect()
}

fn name(smooth: &Smooth) -> [String; 2] {
    [count(smooth.key.batch_size), smooth.key.sparsity.to_string()]
}

fn optional(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| ABSENT.to_owned(), brief)
}
