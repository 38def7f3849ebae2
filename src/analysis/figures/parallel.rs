//! Every trial as a line through all metaparameters that were searched (parallel coordinates; Inselberg, 1985).

use super::figure::{Figure, Part, panel_a_cell};
use super::scatter::{COLOURED, STAR, colour, colours, ends, is_papers, words};
use crate::analysis::chart::{Axis, Chart, Colour, Dot, Element, Entry, Marker, Path, Scale, Stroke};
use crate::analysis::statistics::share;
use crate::analysis::studies::StudyResults;
use crate::optimizer::{self, Metaparameter, Range};
use crate::readable::significant;
use crate::records::{Cell, Trial};

/// A panel a cell. None for a study that searched fewer than two metaparameters, or the learning rate and the momentum alone, which a plane shows
/// better; nor where the search space is not known.
pub fn parallel(study: &StudyResults) -> Option<Figure> {
    let search = &study.configuration.as_ref().ok()?.search;
    let searched: Vec<(Metaparameter, Range)> = search.ranges().filter(|(_, range)| range.min < range.max).collect();
    if searched.len() < 2 || matches!(searched[..], [(across, _), (up, _)] if is_papers(across, up)) {
        return None;
    }
    let ratios = study.results.cells.iter().flat_map(|cell| cell.trials.iter().filter_map(|trial| ratio(cell, trial)));
    let slowest = Some(ratios.fold(1.0, f64::max)).filter(|&slowest| slowest > 1.0);
    let names = searched.iter().map(|(name, _)| name.label().to_owned()).chain(slowest.map(|_| "steps".to_owned()));
    let x = Axis::named("Metaparameter", names.collect());
    let y = Axis::around(Scale::Linear, "Place in its range", [0.0, 1.0], (0.0, 1.0));
    let path = |cell: &Cell, trial: &Trial| {
        let places = searched.iter().map(|(name, range)| share(range, trial.metaparameters.get(*name)?));
        let steps = slowest.and_then(|slowest| Some(ratio(cell, trial)?.ln() / slowest.ln()));
        let places: Option<Vec<f64>> = places.chain(steps.map(Some)).collect();
        Some((0..).map(f64::from).zip(places?).collect::<Vec<_>>())
    };
    let (panels, columns) = panel_a_cell(study, &x, &y, &|cell| {
        let best = cell.best();
        let is_best = |trial: &&Trial| best.is_some_and(|best| best.index == trial.index);
        let workload = &study.results.workload;
        let paths = |stroke: Stroke, of: Colour, trials: Vec<&Trial>| {
            let path = |trial: &Trial| Some(Path { points: path(cell, trial)?, words: words(cell, trial) });
            Element::Paths(stroke, of, trials.into_iter().filter_map(path).collect())
        };
        // The best trial is drawn last, over the others.
        let of_colour = |entry: &Entry| {
            let here = cell.trials.iter().filter(|trial| colour(workload, trial) == entry.colour && !is_best(trial));
            paths(Stroke::Thin, entry.colour, here.collect())
        };
        let mut layers: Vec<Element> = colours(workload).iter().rev().map(of_colour).collect();
        layers.extend(best.map(|best| paths(Stroke::Solid, colour(workload, best), vec![best])));
        let star = |at: (f64, f64)| Dot { at, words: best.map_or(String::new(), |best| words(cell, best)) };
        let stars = best.and_then(|best| path(cell, best)).unwrap_or_default().into_iter().map(star);
        layers.push(Element::Points(Marker::Star, STAR, stars.collect()));
        layers
    });
    let entry = |entry: Entry| Entry::line(entry.name, entry.colour, Stroke::Solid);
    let best = Entry::point("best", STAR, Marker::Star);
    let ranges: Vec<String> = searched.iter().map(|(name, range)| described(*name, range)).collect();
    let steps = slowest.map_or(String::new(), |slowest| {
        format!(" Steps: of complete trials alone, from K* of the cell to {} times it, on a logarithmic scale.", significant(slowest))
    });
    let legend = colours(&study.results.workload).into_iter().map(entry).chain([best]).collect();
    let caption = format!(
        "Every trial as a line, a panel a cell (S sparsity, B batch size): on each axis its place between the lower and the upper end of the range that was \
         searched, on the search's own scale. {}.{steps} Where the lines of complete trials come close together, that metaparameter matters; where the best \
         one meets an axis at its end, the range was too narrow.{COLOURED}{}",
        ranges.join("; "),
        ends(study)
    );
    let chart = Chart::new(format!("{}: trials in all dimensions", study.name()), columns, panels, legend).crowded();
    Some(Figure::new(("parallel", "The search in all its dimensions"), caption, "trials", &[Part::Trials], chart))
}

/// Steps of a complete trial over K*.
fn ratio(cell: &Cell, trial: &Trial) -> Option<f64> {
    Some(f64::from(trial.steps?) / f64::from(cell.steps_to_result()?.max(1)))
}

/// A range in words: `η: learning rate from 0.0001 to 1.0, logarithmic`.
fn described(name: Metaparameter, range: &Range) -> String {
    let symbol = if name.symbol().is_empty() { String::new() } else { format!("{}: ", name.symbol()) };
    let scale = match range.scale {
        optimizer::Scale::Integer | optimizer::Scale::Linear => "linear",
        optimizer::Scale::Log => "logarithmic",
        optimizer::Scale::ReverseLog => "logarithmic in the distance to 1",
    };
    // The limits are written as in the configuration: 1e-10, not its ten decimals.
    let limit = |value: f64| if name.is_whole() { name.show(value) } else { format!("{value:?}") };
    format!("{symbol}{} from {} to {}, {scale}", name.title(), limit(range.min), limit(range.max))
}
