//! A panel a sparsity with perfect scaling, the fit and its regimes (figure 1, columns 1 and 2, of Lee et al., ICLR 2021).

use super::figure::{
    Figure, NEAR_END, PARTS, Part, STEPS, along, band, batch_axis, between, between_evaluations, curves, dots, in_brackets, known,
    linear_entry, linear_scaling, note, steps_axis, steps_words, unreached,
};
use crate::analysis::chart::{Chart, Element, Entry, GREY, Marker, Panel, Series, Stroke};
use crate::analysis::statistics::Fitted;
use crate::analysis::studies::{StudyResults, batch};
use crate::readable::count;

/// K* against batch size, a panel a sparsity, with the fit and its interval; none before the first cell.
pub fn panels(study: &StudyResults, fits: &[Fitted]) -> Option<Figure> {
    if fits.is_empty() {
        return None;
    }
    let curves = curves(study);
    let grid = study.grid();
    let (x, y) = (batch_axis(&grid.batch_sizes), steps_axis(STEPS, &[study], &curves));
    let (bottom, top) = y.limits();
    let largest = grid.batch_sizes.last().copied().map_or(1.0, batch);
    let panel = |(number, fitted): (usize, &Fitted)| {
        let points = curves.get(number).cloned().unwrap_or_default();
        let mut layers = Vec::new();
        let Series { colour, marker } = Series::of_sparsity(fitted.sparsity);
        if let Ok(fit) = &fitted.fit {
            let smallest = grid.batch_sizes.first().copied().map_or(1.0, batch);
            layers.push(band(colour, between(smallest, largest, PARTS), &y, |size| fit.steps(size)));
            // Where the band leaves the panel: one arrow, in the middle of where it does.
            let cut = |is_cut: &dyn Fn(f64) -> bool, y: f64, arrow| {
                let sizes: Vec<f64> = between(smallest, largest, PARTS).filter(|&size| is_cut(size)).collect();
                let words = |size, _| format!("the interval of the fit goes on: {}", in_brackets(fit.steps(size)));
                Element::Points(arrow, colour, sizes.get(sizes.len() / 2).map(|&size| dots(&[(size, y)], &words)).unwrap_or_default())
            };
            layers.push(cut(&|size| fit.steps(size).high > top, along(bottom, top, NEAR_END), Marker::Arrow(0, -1)));
            layers.push(cut(&|size| fit.steps(size).low < bottom, along(bottom, top, 1.0 - NEAR_END), Marker::Arrow(0, 1)));
            // Beyond the batch sizes that were fitted the curve is an extrapolation.
            let (first, last) = known(&points).unwrap_or((smallest, largest));
            let curve = |stroke, from: f64, to: f64| {
                Element::Line(stroke, colour, between(from, to, PARTS).map(|size| (size, fit.steps(size).value)).collect())
            };
            layers.push(curve(Stroke::Solid, first, last));
            layers.extend([(smallest, first), (last, largest)].map(|(from, to)| curve(Stroke::Dashed, from, to)));
            let (left, right) = x.limits();
            let ends = [fit.critical.low, fit.critical.high].map(|size| (size.clamp(left, right), bottom, top));
            layers.push(Element::Band(colour, ends.to_vec()));
            let middle = (bottom * top).sqrt();
            let goes_on = |at: f64, arrow| {
                let words = |_, _| format!("the interval of the critical batch size goes on: {}", in_brackets(fit.critical));
                Element::Points(arrow, colour, dots(&[(at, middle)], &words))
            };
            layers.extend((fit.critical.low < left).then(|| goes_on(along(left, right, 1.0 - NEAR_END), Marker::Arrow(-1, 0))));
            layers.extend((fit.critical.high > right).then(|| goes_on(along(left, right, NEAR_END), Marker::Arrow(1, 0))));
            let rule = |stroke, colour, size| Element::Line(stroke, colour, vec![(size, bottom), (size, top)]);
            let (linear, maximal) = fit.borders();
            layers.extend([
                rule(Stroke::Thin, GREY, linear.value),
                rule(Stroke::Thin, GREY, maximal.value),
                rule(Stroke::Dashed, colour, fit.critical.value),
            ]);
        }
        layers.extend(linear_scaling(GREY, &points, &y, largest));
        layers.push(between_evaluations(study, 1.0, colour, &points));
        let words = steps_words(study, fitted.sparsity);
        let with_fit = |size: f64, steps: f64| {
            let fit = fitted.fit.as_ref().map(|fit| fit.steps(size));
            let fit = fit.map_or(String::new(), |fit| format!("; the fit: {}", in_brackets(fit)));
            words(size, steps) + &fit
        };
        layers.push(Element::Points(marker, colour, dots(&points, &with_fit)));
        layers.push(unreached(study, fitted.sparsity, colour, 0, 1));
        let title = format!("sparsity {}", fitted.sparsity);
        Panel { title, x: x.clone(), y: y.clone(), layers, note: note(study, &[points]) }
    };
    let panels: Vec<Panel> = fits.iter().enumerate().map(panel).collect();
    let Series { colour, marker } = Series::of_sparsity(fits.first()?.sparsity);
    let mut legend = vec![Entry::point("measured K*", colour, marker)];
    if fits.iter().any(|fitted| fitted.fit.is_ok()) {
        legend.extend([Entry::line("fit c1/B + c2", colour, Stroke::Solid), Entry::line("critical batch size", colour, Stroke::Dashed)]);
    }
    if fits.iter().any(|fitted| !fitted.left_out.is_empty()) {
        let name = format!("not in {} steps", count(study.results.workload.max_steps));
        legend.push(Entry::point(name, colour, Marker::Arrow(0, -1)));
    }
    let bordered = |fitted: &Fitted| {
        fitted.fit.as_ref().is_ok_and(|fit| [fit.borders().0, fit.borders().1].into_iter().any(|border| x.contains(border.value)))
    };
    if fits.iter().any(bordered) {
        legend.push(Entry::line("ends of the regimes", GREY, Stroke::Thin));
    }
    legend.extend(linear_entry(&curves));
    let caption = "Measured K* (a bar below a point reaches to the evaluation before), the fit K ≈ c1/B + c2 with its 95 % interval (shaded), and \
                   perfect linear scaling from the first point. The fit is dashed where nothing was measured; an arrow at the step budget marks a \
                   cell none of whose trials reached the goal. The dashed rule in its colour is the critical batch size c1/c2, with its 95 % \
                   interval (shaded from the bottom to the top); left of the first thin rule scaling is linear (local slope below −0.95), right of \
                   the second data parallelism is maximal (above −0.05); rules outside the measured range are not drawn.";
    let chart = Chart::new(format!("{}: K* and the fit", study.name()), panels.len().clamp(1, 2), panels, legend);
    Some(Figure::new(("panels", "Each sparsity with its fit"), caption, "cells", &[Part::Steps, Part::Fits, Part::Critical], chart))
}
