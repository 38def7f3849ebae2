//! Steps against examples: what a larger batch saves of the ones and costs of the others (figure 1 of McCandlish et al., 2018).

use super::figure::{Figure, INSIDE, PARTS, Part, between, curves, in_brackets, known, sparsity_entry, steps_words};
use crate::analysis::chart::{Axis, Chart, Dot, Element, Entry, GREY, Marker, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::Fitted;
use crate::analysis::studies::{StudyResults, batch};
use crate::readable::{count, significant};

/// Lines of equal batch size at most.
const MOST_LINES: usize = 7;

/// Length of their words as a share of the panel's width.
const WORDS: f64 = 0.085;

/// Steps-to-result against the examples that they take, with the fitted hyperbolas; none where nothing was fitted.
pub fn trade_off(study: &StudyResults, fits: &[Fitted]) -> Option<Figure> {
    let curves = curves(study);
    let fitted: Vec<_> =
        fits.iter().zip(&curves).filter_map(|(fitted, curve)| Some((fitted.sparsity, fitted.fit.as_ref().ok()?, curve))).collect();
    if fitted.is_empty() {
        return None;
    }
    let measured = || curves.iter().flatten().filter(|point| point.1.is_finite());
    let x = Axis::around(Scale::Log2, "Examples (steps × batch size)", measured().map(|(size, steps)| size * steps), (1.0, 2.0));
    let y = Axis::around(Scale::Log2, "Steps-to-result", measured().map(|point| point.1), (1.0, 2.0));
    let sizes = study.grid().batch_sizes;
    let every = sizes.len().div_ceil(MOST_LINES);
    let mut layers: Vec<Element> = sizes.iter().step_by(every).flat_map(|&size| equal_batch_size(&x, &y, size)).collect();
    let mut critical = Vec::new();
    for &(sparsity, fit, curve) in &fitted {
        let Series { colour, marker } = Series::of_sparsity(sparsity);
        let (first, last) = known(curve)?;
        let at = |size: f64| (size * fit.steps(size).value, fit.steps(size).value);
        layers.push(Element::Line(Stroke::Solid, colour, between(first, last, PARTS).map(at).collect()));
        let words = steps_words(study, sparsity);
        let dot = |&(size, steps): &(f64, f64)| Dot {
            at: (size * steps, steps),
            words: format!("{}; {} examples", words(size, steps), count((size * steps) as u64)),
        };
        layers.push(Element::Points(marker, colour, curve.iter().filter(|point| point.1.is_finite()).map(dot).collect()));
        let (c1, c2) = (fit.c1.value, fit.c2.value);
        let words = format!(
            "sparsity {sparsity}: critical batch size {}; twice E_min = {} and twice S_min = {}",
            in_brackets(fit.critical),
            significant(c1),
            significant(c2)
        );
        critical.push(Element::Hollow(Marker::Ring, colour, vec![Dot { at: (2.0 * c1, 2.0 * c2), words }]));
    }
    layers.extend(critical);
    let mut legend: Vec<Entry> = fitted.iter().map(|&(sparsity, ..)| sparsity_entry(sparsity)).collect();
    legend.push(Entry::point("critical batch size", GREY, Marker::Ring));
    legend.push(Entry::line("equal batch size B", GREY, Stroke::Thin));
    let caption = "Steps-to-result against the training examples they take, K* times the batch size, a marker a cell. The lines are those of the \
                   fit: (S/S_min − 1)(E/E_min − 1) = 1 with steps S, examples E, S_min = c2 and E_min = c1. A small batch stands at the upper left, \
                   with the fewest examples, a large one at the lower right, with the fewest steps. At the ring both are twice the least: there the \
                   batch size is c1/c2, the critical one. A ring outside the measured range is not drawn.";
    let chart = Chart::new(format!("{}: steps against examples", study.name()), 1, vec![Panel::new(x, y, layers)], legend);
    Some(Figure::new(("trade-off", "Steps against examples"), caption, "cells", &[Part::Critical], chart))
}

/// E = S·B from one side of the panel to another, with the batch size at its upper end. None where it passes the panel by.
fn equal_batch_size(x: &Axis, y: &Axis, size: u32) -> Vec<Element> {
    let ((left, right), (bottom, top)) = (x.limits(), y.limits());
    let from = left.max(bottom * batch(size)) / INSIDE;
    let to = right.min(top * batch(size)) * INSIDE;
    if from >= to {
        return Vec::new();
    }
    let at = |examples: f64| (examples, examples / batch(size));
    // The words end at the line's upper end and stand below the line. The words are lowered by as much as the line falls over their length.
    let lower = (right / left).powf(WORDS) * (top / bottom).powf(0.01);
    let words = Element::Words(format!("B {}", count(size)), (to, at(to).1 / lower));
    vec![Element::Line(Stroke::Thin, GREY, vec![at(from), at(to)]), words]
}
