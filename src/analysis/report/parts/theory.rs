//! Part of the page on the theory and the loss surfaces that were measured: the tables of the paper's appendix C, and the gradient noise scale.

use super::super::document::Block;
use super::super::numbers::brief;
use super::super::rows::Rows;
use super::super::table::Table;
use crate::analysis::statistics::{Along, Estimate, Fitted, Smooth, Surface, decays};
use crate::analysis::studies::StudyResults;
use crate::optimizer::{Metaparameter, OptimizerName};
use crate::readable::count;

/// Text above the table of ratios.
const RATIOS: &str = "Sparse over dense, each trial over the dense one of its seed. The prediction takes β and L along the training.";

/// Text on the ratios that Lee et al. measured, and on the columns beside the prediction.
const PAPERS_RATIOS: &str = "Lee et al. measured, for Simple-CNN at sparsity 0.9, Δ 1.00, β 0.54 and L 3.09 times the dense network's: 1.67. What was fitted, and the \
                             measured shift, are of steps-to-result of the same workload, in this report, with their own intervals; – there are none.";

/// Text above the table of ratios with the gradient's squared norm.
const BY_GRADIENT: &str = "The same ratios with ε, the mean of the gradient's squared norm, and the learning rate, which the prediction above leaves out as equal: \
                           proposition 4.1 has c1 = Δ·L·β/(μ²ε²) and c2 = Δ/(ημε), and so predicts c1/c2 = L·β·η/(με). All are of the trials measured, \
                           at their own rates; ε is taken along the training, without its first step and the noise of a part of the training set.";

/// Text above the table of noise scales.
const NOISE_SCALES: &str = "__Gradient noise scale__, tr Σ / ‖∇f‖² in examples, at untrained weights, the median along the training, and at the last measurement. \
                            McCandlish et al. (2018) predict the critical batch size to be near it.";

/// Loss surfaces, the predictions made of them and the noise scale, each a table.
pub fn theory(study: &StudyResults, smoothness: &[Smooth]) -> Vec<Block<'static>> {
    let decays = decays(study);
    let has_start = smoothness.iter().any(|smooth| smooth.along.iter().any(|surface| !surface.start_loss.value.is_nan()));
    let law = match decays {
        true => {
            "With a decaying learning rate (appendix A.2) K* ≈ c̃1/B + c̃2, c̃1 is proportional to L·H*·β and c̃2 to Δ. __H*__ is the sum of the squared learning \
             rates of the steps to the goal. "
        }
        false => "With a constant learning rate (section 4.1) K* ≈ c1/B + c2, and c1 is proportional to Δ·β·L. ",
    };
    let start = if has_start { "" } else { " Nothing was measured at untrained weights, so that Δ is missing (smoothness.start = true)." };
    let text = format!(
        "{law}__Δ__ is twice the loss at untrained weights less that at the last measurement; __β__, the variance of one example's gradient; __L__, the local \
         Lipschitz constant of the gradient, both along the training: at the steps measured, but for the first one and the trial's end, where β stands by \
         itself. The paper takes the mean of L over the training and does not say when β was measured. A few large values rule a mean, so the median stands \
         beside it. Numbers are geometric means over a cell's trials, each measured so many times; in brackets 95 % intervals by Student's t over those \
         trials, of which a single one has none.{}{start}",
        part(study).unwrap_or_default()
    );
    let mut blocks = vec![Block::Text(text), Block::Table(surfaces(smoothness))];
    blocks.extend(beyond_the_theory(study).map(Block::Note));
    let ratio = |(smooth, along, _, over)| Some((smooth, along, over?));
    let over_dense: Vec<Row> = smoothness.iter().flat_map(Smooth::both).filter_map(ratio).collect();
    if !over_dense.is_empty() {
        let further = " H* is of the best trials of the steps-to-result, geometric mean over batch sizes, and without those of the measured trials' steps.";
        let note = PAPERS_RATIOS.to_owned() + if decays { further } else { "" };
        blocks.extend([Block::Text(RATIOS.to_owned()), Block::Table(ratios(&over_dense, decays)), Block::Note(note)]);
        if !decays {
            blocks.extend([Block::Text(BY_GRADIENT.to_owned()), Block::Table(by_gradient(&over_dense))]);
        }
    }
    blocks.extend([Block::Text(NOISE_SCALES.to_owned()), Block::Table(noise_scales(smoothness))]);
    blocks
}

/// Sentence for a study whose trainings are not those that the theory speaks of.
fn beyond_the_theory(study: &StudyResults) -> Option<String> {
    let optimizer: OptimizerName = study.results.workload.optimizer.parse().ok()?;
    let is_known = matches!(optimizer, OptimizerName::Sgd | OptimizerName::Momentum | OptimizerName::Nesterov);
    let warms_up =
        study.results.trials().any(|trial| trial.metaparameters.get(Metaparameter::WarmupSteps).is_some_and(|steps| steps > 0.0));
    let unknown: Vec<&str> = [(!is_known).then_some(optimizer.name()), warms_up.then_some("warm-ups")].into_iter().flatten().collect();
    let those = unknown.join(" and of ");
    (!unknown.is_empty()).then(|| {
        format!("The theory is of stochastic gradient descent, and knows nothing of {those}: its predictions below are no predictions of this study.")
    })
}

/// Sentence for a study whose loss surfaces were measured on a part of the training set.
fn part(study: &StudyResults) -> Option<String> {
    let (part, all) = study.measured_on().filter(|(part, all)| part < all)?;
    Some(format!(
        " Measured on the first {} of {}{} training examples: an estimate of what the whole training set, the paper's choice, would give; of L one \
         from above, as gradients of a part differ by noise too.",
        count(part as u32),
        if study.training_examples().is_some() { "" } else { "about " },
        count(all as u32)
    ))
}

/// A cell's numbers, or their ratios, with means along the training or with medians.
type Row<'a> = (&'a Smooth, Along, Surface<Estimate>);

/// The fitted ratio beside a cell's measurements.
fn fitted(ratio: fn(&Fitted) -> Option<Estimate>) -> impl Fn(&Row) -> Option<Estimate> {
    move |(smooth, ..)| smooth.fitted.as_ref().and_then(ratio)
}

fn surfaces(smoothness: &[Smooth]) -> Table {
    let times = |smooth: &Smooth| (smooth.measurements as f64 / smooth.trials.max(1) as f64 * 10.0).round() / 10.0;
    Rows::new("surfaces", smoothness.iter().flat_map(Smooth::both).map(|(smooth, along, surface, _)| (smooth, along, surface)))
        .keyed(|(smooth, ..)| smooth.key)
        .column("trials × times", |(smooth, ..)| format!("{} × {}", smooth.trials, times(smooth)))
        .shown("loss at the start (nats)", brief, |(.., surface)| Some(surface.start_loss))
        .shown("loss at the end (nats)", brief, |(.., surface)| Some(surface.last_loss))
        .shown("Δ (nats)", brief, |(.., surface)| Some(surface.decrease))
        .column("along training", |(_, along, _)| along.name().to_owned())
        .shown("β at the start", brief, |(.., surface)| Some(surface.start_variance))
        .shown("β along", brief, |(.., surface)| Some(surface.variance))
        .shown("β at the end", brief, |(.., surface)| Some(surface.last_variance))
        .shown("L along", brief, |(.., surface)| Some(surface.lipschitz))
        .table()
}

/// Rows of the cells that have a dense one to compare with.
fn ratios(over_dense: &[Row], decays: bool) -> Table {
    let rows = Rows::new("ratios", over_dense.iter().copied())
        .keyed(|(smooth, ..)| smooth.key)
        .column("along training", |(_, along, _)| along.name().to_owned())
        .shown("Δ", brief, |(.., over)| Some(over.decrease))
        .shown("β at the start", brief, |(.., over)| Some(over.start_variance))
        .shown("β along", brief, |(.., over)| Some(over.variance))
        .shown("β at the end", brief, |(.., over)| Some(over.last_variance))
        .shown("L along", brief, |(.., over)| Some(over.lipschitz));
    let predicted = |(smooth, _, over): &Row| Some(smooth.predicted_c1(over));
    let searched = fitted(|fitted| fitted.squared_rates_ratio);
    let rows = match decays {
        true => rows
            .shown("H*", brief, |row| Some(searched(row).unwrap_or(row.2.squared_rates)))
            .shown("predicted c̃1", brief, predicted)
            .shown("fitted c̃1", brief, fitted(|fitted| fitted.c1_ratio))
            .shown("predicted c̃2", brief, |(.., over)| Some(over.decrease))
            .shown("fitted c̃2", brief, fitted(|fitted| fitted.c2_ratio)),
        false => rows.shown("predicted c1", brief, predicted).shown("fitted c1", brief, fitted(|fitted| fitted.c1_ratio)),
    };
    rows.shown("measured shift", brief, fitted(|fitted| fitted.shift.map(|shift| shift.ratio))).table()
}

/// Table of the prediction with the squared norm of the gradient.
fn by_gradient(over_dense: &[Row]) -> Table {
    Rows::new("by-gradient", over_dense.iter().copied())
        .keyed(|(smooth, ..)| smooth.key)
        .column("along training", |(_, along, _)| along.name().to_owned())
        .shown("ε", brief, |(.., over)| Some(over.gradient))
        .shown("η/(1 − m)", brief, |(.., over)| Some(over.rate))
        .shown("Δ·L·β/ε²", brief, |(.., over)| Some(over.c1_by_gradient))
        .shown("fitted c1", brief, fitted(|fitted| fitted.c1_ratio))
        .shown("Δ/(η·ε)", brief, |(.., over)| Some(over.c2_by_gradient))
        .shown("fitted c2", brief, fitted(|fitted| fitted.c2_ratio))
        .shown("L·β·η/ε", brief, |(.., over)| Some(over.critical_by_gradient))
        .shown("fitted c1/c2", brief, fitted(|fitted| fitted.critical_ratio))
        .table()
}

fn noise_scales(smoothness: &[Smooth]) -> Table {
    Rows::new("noise-scales", smoothness)
        .keyed(|smooth| smooth.key)
        .shown("start", brief, |smooth| Some(smooth.noise_scale[0]))
        .shown("median", brief, |smooth| Some(smooth.noise_scale[1]))
        .shown("end", brief, |smooth| Some(smooth.noise_scale[2]))
        .shown("fitted critical batch size", brief, |smooth| smooth.fitted.as_ref().and_then(Fitted::critical))
        .table()
}
