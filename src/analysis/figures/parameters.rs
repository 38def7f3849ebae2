//! The fits' parameters against sparsity.

use super::figure::{Figure, NEAR_END, Part, along, in_brackets, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Dot, Element, Marker, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::{Estimate, Fit, Fitted};
use crate::analysis::studies::StudyResults;

/// c1, c2 and the critical batch size of each sparsity, with intervals; none where nothing was fitted.
pub fn parameters(study: &StudyResults, fits: &[Fitted]) -> Option<Figure> {
    let fitted: Vec<(f64, &Fit)> = fits.iter().filter_map(|fitted| Some((fitted.sparsity, fitted.fit.as_ref().ok()?))).collect();
    if fitted.is_empty() {
        return None;
    }
    type Chosen = fn(&Fit) -> Estimate;
    let shown: [(&str, Chosen); 3] =
        [("c1 (steps × examples)", |fit| fit.c1), ("c2 (steps)", |fit| fit.c2), ("critical batch size (examples)", |fit| fit.critical)];
    let panel = |(name, of): (&str, Chosen)| {
        let x = Axis::around(Scale::Linear, "Sparsity", fits.iter().map(|fitted| fitted.sparsity).chain([0.0, 1.0]), (0.0, 1.0));
        // A limit that is zero or infinite is cut at ten times the other values.
        let finite = |value: &f64| value.is_finite() && *value > 0.0;
        let values: Vec<f64> = fitted.iter().map(|(.., fit)| of(fit).value).filter(finite).collect();
        // Where there are no other values, a limit is not cut.
        let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = values.iter().copied().reduce(f64::max).unwrap_or(f64::INFINITY);
        let limits = fitted.iter().flat_map(|(.., fit)| [of(fit).low.max(least / 10.0), of(fit).high.min(most * 10.0)]);
        let y = Axis::around(Scale::Log10, "Fitted value", limits.filter(finite).chain(values.iter().copied()), (1.0, 1000.0));
        let (bottom, top) = y.limits();
        let layers = fitted.iter().flat_map(|&(sparsity, fit)| {
            let estimate = of(fit);
            let Series { colour, marker } = Series::of_sparsity(sparsity);
            let bar = vec![(sparsity, estimate.low.max(bottom)), (sparsity, estimate.high.min(top))];
            let edge = |at: f64, arrow| Element::Points(arrow, colour, vec![Dot { at: (sparsity, at), words: in_brackets(estimate) }]);
            let below = (estimate.low < bottom).then(|| edge(along(bottom, top, 1.0 - NEAR_END), Marker::Arrow(0, 1)));
            let above = (estimate.high > top).then(|| edge(along(bottom, top, NEAR_END), Marker::Arrow(0, -1)));
            let ends = below.into_iter().chain(above);
            ends.chain([
                Element::Line(Stroke::Solid, colour, bar),
                Element::Points(
                    marker,
                    colour,
                    vec![Dot { at: (sparsity, estimate.value), words: format!("sparsity {sparsity}: {name} {}", in_brackets(estimate)) }],
                ),
            ])
            .collect::<Vec<_>>()
        });
        Panel::new(x, y, layers.collect()).titled(name.to_owned())
    };
    let legend = fitted.iter().map(|&(sparsity, _)| sparsity_entry(sparsity)).collect();
    let caption = "c1, c2 and the critical batch size c1/c2 of K ≈ c1/B + c2 at each sparsity, with 95 % bootstrap intervals. Intervals \
                   that overlap widely mean that this study cannot tell the sparsities apart; an arrow at the end of a bar says that \
                   the interval goes on beyond the panel, and a missing point is zero or infinite.";
    let chart = Chart::new(format!("{}: parameters of the fits", study.name()), 3, shown.into_iter().map(panel).collect(), legend);
    Some(Figure::new(("fits", "What was fitted"), caption, "fits", &[Part::Fits], chart))
}
