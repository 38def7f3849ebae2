//! The cells of a study whose best points were trained again with fresh seeds: their steps with errors, and how lucky K* was.

use super::confirmed::{Confirmed, Reached, variances};
use super::fit::{Estimate, Fit, Point};
use super::studies::StudyResults;
use crate::records::{Cell, CellKey, Status};

/// What confirmations say of a cell.
#[derive(Debug, Clone)]
pub struct ConfirmedCell {
    /// Which cell.
    pub key: CellKey,
    /// Its points, by their trials of the search.
    pub points: Vec<u32>,
    /// Their steps.
    pub confirmed: Confirmed,
    /// K* over the geometric mean of the confirmed steps: how lucky it was.
    pub luck: Option<Estimate>,
    /// Variances of log steps between points, between seeds and of what is left.
    pub variances: Option<[f64; 3]>,
}

/// The law fitted to the confirmed steps of a sparsity.
#[derive(Debug, Clone)]
pub struct ConfirmedFit {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// The fit to the geometric means.
    pub fit: Fit,
    /// How often means with these errors would lie as far from the law, if it held: the goodness of the fit.
    pub goodness: f64,
}

/// The confirmed cells of a study, in its order.
pub fn confirmed_cells(study: &StudyResults) -> Vec<ConfirmedCell> {
    study.results.cells.iter().filter_map(of_cell).collect()
}

fn of_cell(cell: &Cell) -> Option<ConfirmedCell> {
    let mut points: Vec<u32> = Vec::new();
    // By point, then seed.
    let mut trainings: Vec<Vec<Reached>> = Vec::new();
    for confirmation in &cell.confirmations {
        let point = confirmation.run.index;
        let place = points.iter().position(|&known| known == point).unwrap_or_else(|| {
            points.push(point);
            trainings.push(Vec::new());
            points.len() - 1
        });
        trainings[place].push(confirmation.reached().map(|(above, steps)| (f64::from(above), f64::from(steps))));
    }
    let runs = || cell.confirmations.iter().map(|confirmation| &confirmation.run);
    // A training that failed took all steps of the limit, or became infeasible; then more than any that did not.
    let given_up = runs().filter(|run| run.status == Status::Incomplete).map(|run| run.steps_run).max();
    let limit = given_up.or_else(|| runs().filter_map(|run| run.steps).max()).unwrap_or(1);
    let confirmed = Confirmed::new(&trainings, f64::from(limit))?;
    let Estimate { value, low, high } = confirmed.mean;
    let luck = cell.steps_to_result().map(f64::from).filter(|_| !value.is_nan());
    let luck = luck.map(|steps| Estimate { value: steps / value, low: steps / high, high: steps / low });
    Some(ConfirmedCell { key: cell.key, points, confirmed, luck, variances: variances(&trainings) })
}

/// The law fitted to the confirmed steps of each sparsity that has them at three batch sizes.
pub fn confirmed_fits(cells: &[ConfirmedCell]) -> Vec<ConfirmedFit> {
    let mut sparsities: Vec<f64> = cells.iter().map(|cell| cell.key.sparsity).collect();
    sparsities.dedup();
    let known = |sparsity: f64| cells.iter().filter(move |cell| cell.key.sparsity == sparsity && !cell.confirmed.mean.value.is_nan());
    let point = |cell: &ConfirmedCell| {
        let steps = cell.confirmed.mean.value;
        Point { batch_size: f64::from(cell.key.batch_size.max(1)), above: steps, steps }
    };
    let points: Vec<Vec<Point>> = sparsities.iter().map(|&sparsity| known(sparsity).map(point).collect()).collect();
    let fits = Fit::together(&points.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let fitted = |(sparsity, fit): (f64, Result<Fit, String>)| {
        let fit = fit.ok()?;
        let squares: f64 = known(sparsity)
            .map(|cell| {
                let Estimate { value, low, high } = cell.confirmed.mean;
                let error = (high / low).ln() / 2.0 / 1.96;
                ((value / fit.steps(f64::from(cell.key.batch_size.max(1))).value).ln() / error).powi(2)
            })
            .sum();
        Some(ConfirmedFit { sparsity, goodness: beyond_chi_squared(squares, fit.points - 2), fit })
    };
    sparsities.into_iter().zip(fits).filter_map(fitted).collect()
}

/// How often a sum of squares of so many normal numbers is larger (Wilson and Hilferty, 1931: a normal approximation of its cube root).
fn beyond_chi_squared(squares: f64, freedom: usize) -> f64 {
    let ninth = 2.0 / 9.0 / freedom as f64;
    let normal = ((squares / freedom as f64).cbrt() - 1.0 + ninth) / ninth.sqrt();
    libm::erfc(normal * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 5 % points of tables.
    #[test]
    fn chances_of_sums_of_squares_are_those_of_tables() {
        for (squares, freedom, chance) in [(3.841, 1, 0.05), (5.991, 2, 0.05), (15.507, 8, 0.05), (8.0, 8, 0.433)] {
            assert!((beyond_chi_squared(squares, freedom) - chance).abs() < 0.006, "{squares} {freedom}");
        }
    }
}
