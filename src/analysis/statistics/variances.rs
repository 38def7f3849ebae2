//! Where the scatter of confirmed steps comes from: the point, the initial weights with their mask, the order of the examples.
//!
//! Seeds that draw weights and order anew move both at once. A file of the same study confirmed with `confirm.vary = ["order"]`, and another one with
//! `["weights"]`, tell the two apart.

use super::confirmations::InPlay;
use super::confirmed::Reached;
use crate::analysis::studies::StudyResults;
use crate::readable::called;
use crate::records::{Cell, CellKey, Seeds};

/// Variances of log steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variances {
    /// Between the points, over the same seeds; none of a single point.
    pub points: Option<f64>,
    /// Between the seeds, at all points alike; none of a single point.
    pub seeds: Option<f64>,
    /// Of a seed at a point: of a single point all that its seeds scatter.
    pub left: f64,
}

impl Variances {
    /// Two-way analysis of variance of the trainings of each point, by seed. Failures are left out with their whole seed. None of fewer than two
    /// seeds.
    pub fn new(points: &[Vec<Reached>]) -> Option<Variances> {
        let seeds = points.iter().map(Vec::len).min()?;
        let is_whole = |seed: &usize| points.iter().all(|point| point[*seed].is_some());
        let whole: Vec<usize> = (0..seeds).filter(is_whole).collect();
        let (rows, columns) = (points.len() as f64, whole.len() as f64);
        if whole.len() < 2 {
            return None;
        }
        let log = |point: &Vec<Reached>, seed: usize| point[seed].map_or(f64::NAN, |(above, steps)| ((above + steps) / 2.0).ln());
        let of_point = |point: &Vec<Reached>| whole.iter().map(|&seed| log(point, seed)).sum::<f64>() / columns;
        let of_seed = |seed: usize| points.iter().map(|point| log(point, seed)).sum::<f64>() / rows;
        let mean = points.iter().map(of_point).sum::<f64>() / rows;
        let between_seeds = rows * whole.iter().map(|&seed| (of_seed(seed) - mean).powi(2)).sum::<f64>() / (columns - 1.0);
        if points.len() == 1 {
            return Some(Variances { points: None, seeds: None, left: between_seeds });
        }
        let between_points = columns * points.iter().map(|point| (of_point(point) - mean).powi(2)).sum::<f64>() / (rows - 1.0);
        let left = points.iter().flat_map(|point| whole.iter().map(move |&seed| (point, seed)));
        let left = left.map(|(point, seed)| (log(point, seed) - of_point(point) - of_seed(seed) + mean).powi(2)).sum::<f64>();
        let left = left / (rows - 1.0) / (columns - 1.0);
        let above = |between: f64, count: f64| Some(((between - left) / count).max(0.0));
        Some(Variances { points: above(between_points, columns), seeds: above(between_seeds, rows), left })
    }
}

called! {
    /// The random numbers that fresh seeds drew anew.
    Fresh {
        /// Initial weights, their mask, and the order of the examples.
        Both = "weights and order",
        /// Initial weights and their mask.
        Weights = "weights",
        /// The order of the examples.
        Order = "order",
    }
}

impl Fresh {
    fn of(seeds: Seeds) -> Fresh {
        match (seeds.weights >= Seeds::FIRST_FRESH, seeds.order >= Seeds::FIRST_FRESH) {
            (true, false) => Fresh::Weights,
            (false, true) => Fresh::Order,
            _ => Fresh::Both,
        }
    }
}

/// The scatter of a cell's confirmations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Parts of a training that its seeds drew anew.
    pub fresh: Fresh,
    /// Points that are confirmed.
    pub points: usize,
    /// Seeds of each point.
    pub seeds: usize,
    /// Where the scatter comes from.
    pub variances: Variances,
}

/// The scatter of every confirmed cell, by what its seeds drew anew, then in the study's order; of several files of a cell that drew the same, the
/// first.
pub fn scatter(study: &StudyResults) -> Vec<Scatter> {
    let mut found: Vec<Scatter> = Vec::new();
    for scatter in study.all_cells().filter_map(|cell| of_cell(cell, study)) {
        if !found.iter().any(|known| (known.key, known.fresh) == (scatter.key, scatter.fresh)) {
            found.push(scatter);
        }
    }
    found.sort_by_key(|scatter| scatter.fresh);
    found
}

fn of_cell(cell: &Cell, study: &StudyResults) -> Option<Scatter> {
    let fresh = Fresh::of(cell.confirmations.first()?.training.seeds);
    let trainings = InPlay::of(cell, study).trainings();
    let seeds = trainings.iter().map(Vec::len).min()?;
    Some(Scatter { key: cell.key, fresh, points: trainings.len(), seeds, variances: Variances::new(&trainings)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variances_are_told_apart() {
        let of = |point: f64, seed: f64, rest: f64| {
            let log = |row: i32, column: i32| {
                6.0 + point * f64::from(row) + seed * f64::from(column % 4) + rest * f64::from((row * column) % 3 - 1)
            };
            let training = |row: i32, column: i32| {
                let steps = log(row, column).exp();
                Some((steps, steps))
            };
            let row = |row: i32| (0..16).map(|column| training(row, column)).collect();
            Variances::new(&(0..3).map(row).collect::<Vec<Vec<Reached>>>()).unwrap()
        };
        let (points, seeds, rest) = (of(0.5, 0.0, 0.01), of(0.0, 0.5, 0.01), of(0.0, 0.0, 0.1));
        let near = |value: Option<f64>, least: f64, most: f64| value.is_some_and(|value| (least..=most).contains(&value));
        assert!(near(points.points, 0.24, 0.26) && near(points.seeds, 0.0, 0.001) && points.left < 0.001, "{points:?}");
        assert!(near(seeds.seeds, 0.2, 0.5) && near(seeds.points, 0.0, 0.01), "{seeds:?}");
        assert!(rest.points < Some(rest.left) && rest.seeds < Some(rest.left), "{rest:?}");
        let steps = |log: f64| Some((log.exp(), log.exp()));
        let alone = Variances::new(&[vec![steps(5.0), steps(6.0), None]]).unwrap();
        assert!(alone.points.is_none() && alone.seeds.is_none() && (alone.left - 0.5).abs() < 1e-9, "{alone:?}");
        assert_eq!(Variances::new(&[vec![steps(5.0), None]]), None);
    }
}
