//! The figure that leads the page: steps against batch size at all sparsities, with the fits that answer and their critical batch sizes.

use super::figure::{
    Figure, PARTS, Part, STEPS, band, batch_axis, between, confirmed_ends, confirmed_steps, curves, dots, in_brackets, linear_entry,
    linear_scaling, note, sparsity_entry, steps_axis, steps_words, unreached,
};
use crate::analysis::chart::{Chart, Dot, Element, Entry, GREY, Marker, Panel, Series, Stroke};
use crate::analysis::statistics::{Fitted, answering, confirmed_cells, confirmed_fits};
use crate::analysis::studies::{StudyResults, batch};
use crate::readable::rough;

/// Steps against batch size. A sparsity with a fit among those that answer shows the fit with its interval; any other sparsity shows K* alone.
pub fn answer(study: &StudyResults, fits: &[Fitted]) -> Figure {
    let cells = confirmed_cells(study);
    let confirmed = confirmed_fits(&cells);
    let (answering, is_confirmed) = answering(fits, &confirmed);
    let (curves, grid) = (curves(study), study.grid());
    let ends = if is_confirmed { confirmed_ends(&cells) } else { Vec::new() };
    let label = if is_confirmed { "Confirmed steps" } else { STEPS };
    let (x, y) = (batch_axis(&grid.batch_sizes), steps_axis(label, &[study], &[curves.concat(), ends]));
    let bottom = y.limits().0;
    let largest = grid.batch_sizes.last().copied().map_or(1.0, batch);
    let (mut bands, mut layers, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    let mut legend = Vec::new();
    for (number, (&sparsity, points)) in grid.sparsities.iter().zip(&curves).enumerate() {
        let Series { colour, marker } = Series::of_sparsity(sparsity);
        let mut entry = sparsity_entry(sparsity);
        layers.push(unreached(study, sparsity, colour, number, grid.sparsities.len()));
        let fitted = answering.iter().find(|fitted| fitted.sparsity == sparsity);
        let Some((fitted, fit)) = fitted.and_then(|fitted| Some((fitted, fitted.fit.as_ref().ok()?))) else {
            entry.name += if is_confirmed { ", K* alone" } else { ", no fit" };
            entry.stroke = Some(Stroke::Thin);
            legend.push(entry);
            layers.push(Element::Line(Stroke::Thin, colour, points.clone()));
            layers.push(Element::Hollow(marker, colour, dots(points, &steps_words(study, sparsity))));
            continue;
        };
        let (first, last) =
            (fitted.points.first().map_or(1.0, |point| point.batch_size), fitted.points.last().map_or(1.0, |point| point.batch_size));
        let sizes = between(first, last, PARTS);
        bands.push(band(colour, sizes.clone(), &y, |size| fit.steps(size)));
        layers.push(Element::Line(Stroke::Solid, colour, sizes.map(|size| (size, fit.steps(size).value)).collect()));
        if is_confirmed {
            layers.extend(confirmed_steps(cells.iter().filter(|cell| cell.key.sparsity == sparsity), marker, colour));
        } else {
            layers.extend(linear_scaling(colour, points, &y, largest));
            layers.push(Element::Points(marker, colour, dots(points, &steps_words(study, sparsity))));
        }
        let critical = fit.critical;
        if x.contains(critical.value) {
            let words = format!("sparsity {sparsity}: critical batch size {}", in_brackets(critical));
            let height = 2.0 * fit.c2.value;
            let (left, right) = x.limits();
            marks.push(Element::Line(Stroke::Dashed, colour, vec![(critical.value, bottom), (critical.value, height)]));
            marks.push(Element::Line(Stroke::Solid, colour, vec![(critical.low.max(left), height), (critical.high.min(right), height)]));
            marks.push(Element::Points(Marker::Star, colour, vec![Dot { at: (critical.value, height), words }]));
            entry.name += &format!(": critical at {}", rough(critical.value));
        }
        legend.push(entry);
    }
    if !marks.is_empty() {
        legend.push(Entry::point("critical batch size", GREY, Marker::Star));
    }
    if !is_confirmed {
        legend.extend(linear_entry(&curves));
    }
    let of = if is_confirmed { "confirmed steps" } else { "K*" };
    let caption = format!(
        "{} to the goal against batch size, with the fits of c1/B + c2 and their 95 % intervals (shaded). A star is where a fit's two terms are equal, the \
         critical batch size: to its left twice the batch nearly halves the steps, to its right a larger batch saves few; the line through it is its 95 % \
         interval.{}",
        if is_confirmed { "Confirmed steps (the best points with fresh seeds)" } else { "Fewest steps K*" },
        if is_confirmed { " Hollow: K* of sparsities whose steps are not confirmed." } else { "" }
    );
    let layers = bands.into_iter().chain(layers).chain(marks).collect();
    let panel = Panel { note: note(study, &curves), ..Panel::new(x, y, layers) };
    let chart = Chart::new(format!("{}: {of} to {}", study.name(), study.goal_in_short()), 1, vec![panel], legend);
    let table = if is_confirmed { "confirmed" } else { "cells" };
    Figure::new(("answer", "Steps and critical batch sizes"), caption, table, &[Part::Steps, Part::Fits, Part::Critical], chart)
}
