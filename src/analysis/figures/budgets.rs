//! The best validation error within fixed budgets of steps and of examples against batch size.

use super::figure::{Figure, batch_axis, name, sparsity_entry};
use crate::analysis::chart::{Axis, Chart, Dot, Element, Entry, GREY, Marker, Panel, Scale, Series, Stroke};
use crate::analysis::statistics::{Budget, budgets, least_errors};
use crate::analysis::studies::{Curve, StudyResults, batch};
use crate::readable::{count, digits};

/// The error of a cell within a budget.
struct Point {
    batch_size: f64,
    /// The least validation error within the budget, as a fraction; where `is_exact` is false, an upper bound of this error.
    error: f64,
    is_exact: bool,
}

/// A budget, and the points of each sparsity.
type Within = (Budget, Vec<(f64, Vec<Point>)>);

/// A panel a budget, a curve a sparsity; none where less than a quarter of the errors are known, as in a race, whose evaluations stop early.
pub fn fixed_budgets(study: &StudyResults) -> Option<Figure> {
    let grid = study.grid();
    let examples = f64::from(study.results.workload.validation_examples.max(1));
    let point = |budget: Budget, size: u32, sparsity: f64| {
        let found = least_errors(study, grid.cell(size, sparsity)?, budget.steps(size))?;
        Some(Point { batch_size: batch(size), error: f64::from(found.high?) / examples, is_exact: found.exact().is_some() })
    };
    let within = |budget: Budget| {
        let curve = |&sparsity: &f64| (sparsity, grid.batch_sizes.iter().filter_map(|&size| point(budget, size, sparsity)).collect());
        (budget, grid.sparsities.iter().map(curve).collect())
    };
    let shown: Vec<Within> = budgets(study).into_iter().map(within).collect();
    let points = || shown.iter().flat_map(|(_, curves)| curves).flat_map(|(_, points)| points);
    // At one batch size there is nothing to compare.
    if 4 * points().filter(|point| point.is_exact).count() < points().count().max(1) || grid.batch_sizes.len() < 2 {
        return None;
    }
    let x = batch_axis(&grid.batch_sizes);
    let y = Axis::around(Scale::Log10, "Best validation error", points().map(|point| point.error.max(1.0 / examples)), (0.01, 1.0));
    let panel = |(budget, curves): &Within| {
        let layers = curves.iter().flat_map(|(sparsity, points)| {
            let Series { colour, marker } = Series::of_sparsity(*sparsity);
            let dots = |is_exact: bool| {
                let at_most = if is_exact { "" } else { "at most " };
                let dot = |&Point { batch_size, error, .. }: &Point| Dot {
                    at: (batch_size, error),
                    words: format!("{}: error {at_most}{}", name(batch_size, *sparsity), digits(error, 3)),
                };
                points.iter().filter(|point| point.is_exact == is_exact).map(dot).collect::<Vec<_>>()
            };
            let line: Curve = points.iter().map(|point| (point.batch_size, if point.is_exact { point.error } else { f64::NAN })).collect();
            [
                Element::Line(Stroke::Solid, colour, line),
                Element::Hollow(marker, colour, dots(false)),
                Element::Points(marker, colour, dots(true)),
            ]
        });
        let (amount, unit) = budget.amount();
        Panel::new(x.clone(), y.clone(), layers.collect()).titled(format!("within {} {unit}", count(amount)))
    };
    // A row for steps and one for examples, where there are as many of both.
    let in_steps = shown.iter().filter(|(budget, _)| matches!(budget, Budget::Steps(_))).count();
    let columns = if 2 * in_steps == shown.len() { in_steps } else { 3 };
    let mut legend: Vec<Entry> = grid.sparsities.iter().map(|&sparsity| sparsity_entry(sparsity)).collect();
    if points().any(|point| !point.is_exact) {
        legend.push(Entry::point("at most", GREY, Marker::Ring));
    }
    let caption = "The lowest validation error of any evaluation of any of a cell's trials within a budget of steps, and within one of training \
                   examples (steps times batch size). Filled markers are exact. Hollow ones are bounds, at most so much: a trial ended before, as it \
                   had reached the goal or a race cut it off, and would have come lower. A cell is left out where no evaluation of the whole \
                   validation set lies within the budget.";
    let chart = Chart::new(format!("{}: best error within a budget", study.name()), columns, shown.iter().map(panel).collect(), legend);
    Some(Figure::new(("budgets", "Fixed budgets"), caption, "budgets", &[], chart))
}
