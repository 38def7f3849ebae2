//! The seconds of a cell: steps-to-result, which follow c1/B + c2, times the seconds of a step, which follow α + β·B.
//!
//! A cell's seconds are s·(1 + B/b)·(1 + o/B): b is the critical batch size c1/c2, and o = α/β the batch size whose examples take as long as what a
//! step takes by itself. A cell of a sparse network takes (1 − sparsity)^−ρ times as many seconds, times a factor of the sparsity. The
//! logarithms of s, b, o and the factors, and ρ, are normal at first; the measured cells make them narrower (a Gaussian approximation about their
//! most likely values, by Gauss-Newton steps).

use super::left::Left;
use crate::random::{Numbers, Purpose};
use crate::records::CellKey;

/// Means and standard deviations before any cell is measured: log b, log o and ρ. On the quickstart's, the sample's and MNIST's cells b was 100 to
/// 400.
const CRITICAL: (f64, f64) = (5.5, 1.4);
const OVERHEAD: (f64, f64) = (2.1, 1.4);
const SHIFT: (f64, f64) = (0.3, 0.3);

/// Standard deviation of log s about what is assumed, and where nothing is.
const SCALE: (f64, f64) = (1.4, 20.0);

/// Standard deviation of a sparsity's own factor.
const OWN: f64 = 0.2;

/// Standard deviation of a cell about the law, and how many cells this first guess counts for.
const SCATTER: (f64, f64) = (0.2, 4.0);

/// Most sparsities that have a factor of their own.
const MOST_FACTORS: usize = 12;

/// Gauss-Newton steps.
const ITERATIONS: usize = 30;

/// Studies drawn for the limits; fewer where they have so many cells that drawing takes long.
const DRAWS: usize = 400;
const FEWEST_DRAWS: usize = 40;
const MOST_DRAWN: usize = 10_000_000;

/// Longest time that is told apart from longer ones, in seconds: 3,000 years.
const LONGEST: f64 = 1e11;

/// log s, log b, log o and ρ come before the sparsities' factors.
const COMMON: usize = 4;

pub(super) struct Model {
    /// Sparsities that have a factor of their own.
    factors: Vec<f64>,
    /// The most likely parameters.
    best: Vec<f64>,
    /// The Cholesky factor of their precision, the lower triangle.
    precision: Vec<Vec<f64>>,
    /// Standard deviation of a cell about the law.
    scatter: f64,
}

/// Prediction of a cell's seconds by the most likely parameters.
struct Law {
    /// The logarithm of its seconds.
    log: f64,
    /// The gradient of that with respect to the parameters.
    gradient: Vec<f64>,
    /// The place of the cell's sparsity among the sparsities without a factor in the model.
    unknown: Option<usize>,
}

impl Model {
    /// Learnt from the seconds of cells; and from what is assumed of s, where something is.
    pub(super) fn new(measured: &[(CellKey, f64)], assumed: Option<f64>) -> Model {
        let mut factors: Vec<f64> = Vec::new();
        for (key, _) in measured {
            if key.sparsity > 0.0 && !factors.contains(&key.sparsity) && factors.len() < MOST_FACTORS {
                factors.push(key.sparsity);
            }
        }
        let logs: Vec<f64> = measured.iter().map(|cell| bounded(cell.1).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let scale = assumed.map_or((mean, SCALE.1), |seconds| (bounded(seconds).ln(), SCALE.0));
        let priors: Vec<(f64, f64)> = [scale, CRITICAL, OVERHEAD, SHIFT].into_iter().chain(factors.iter().map(|_| (0.0, OWN))).collect();
        let mut model = Model { factors, best: priors.iter().map(|prior| prior.0).collect(), precision: Vec::new(), scatter: SCATTER.0 };
        let mut damping = 1.0;
        let mut cost = model.cost(&priors, measured, &logs);
        for _ in 0..ITERATIONS {
            let (precision, gradient) = model.equations(&priors, measured, &logs, damping);
            let step = solve(&cholesky(precision), &gradient);
            let last = model.best.clone();
            model.best.iter_mut().zip(&step).for_each(|(value, step)| *value += step);
            let next = model.cost(&priors, measured, &logs);
            if next <= cost {
                (cost, damping) = (next, damping / 4.0);
            } else {
                (model.best, damping) = (last, damping * 4.0);
            }
        }
        let squares: f64 = measured.iter().zip(&logs).map(|(cell, log)| (log - model.log_seconds(cell.0).0).powi(2)).sum();
        let count = (measured.len() as f64 - COMMON as f64).max(0.0);
        model.scatter = ((SCATTER.1 * SCATTER.0 * SCATTER.0 + squares) / (SCATTER.1 + count)).sqrt();
        model.precision = cholesky(model.equations(&priors, measured, &logs, 0.0).0);
        model
    }

    /// Seconds that the cells will take, each less those that it has taken.
    pub(super) fn left(&self, cells: &[(CellKey, f64)]) -> Left {
        // Sparsities without a factor in the model.
        let is_unknown = |sparsity: &f64| *sparsity > 0.0 && !self.factors.contains(sparsity);
        let mut unknown: Vec<f64> = cells.iter().map(|(key, _)| key.sparsity).filter(is_unknown).collect();
        unknown.sort_by(f64::total_cmp);
        unknown.dedup();
        let law = |&(key, _): &(CellKey, f64)| {
            let (log, gradient) = self.log_seconds(key);
            Law { log, gradient, unknown: unknown.binary_search_by(|sparsity| sparsity.total_cmp(&key.sparsity)).ok() }
        };
        let laws: Vec<Law> = cells.iter().map(law).collect();
        let parameters = self.best.len();
        let numbers = Numbers::new(0, Purpose::Forecast);
        let mut normals = vec![0.0; parameters + unknown.len() + cells.len()];
        let draws = (MOST_DRAWN / cells.len().max(1)).clamp(FEWEST_DRAWS, DRAWS);
        let mut totals: Vec<f64> = (0..draws)
            .map(|draw| {
                numbers.normals((draw * normals.len()) as u64, &mut normals);
                let (own, rest) = normals.split_at(parameters);
                let (factors, scatters) = rest.split_at(unknown.len());
                let off = backward(&self.precision, own);
                let seconds = |(law, scatter): (&Law, &f64)| {
                    let moved: f64 = law.gradient.iter().zip(&off).map(|(gradient, off)| gradient * off).sum();
                    let factor = law.unknown.map_or(0.0, |place| OWN * factors[place]);
                    bounded((law.log + moved + factor + self.scatter * scatter).exp())
                };
                let all = laws.iter().zip(scatters).map(seconds).zip(cells);
                // A cell that takes longer than was thought goes on for a while.
                all.map(|(whole, (_, elapsed))| if *elapsed == 0.0 { whole } else { (whole - elapsed).max(0.1 * whole) }).sum()
            })
            .collect();
        totals.sort_by(f64::total_cmp);
        let quantile = |share: f64| totals[(share * (draws - 1) as f64).round() as usize];
        Left { seconds: quantile(0.5), low: quantile(0.1), high: quantile(0.9) }
    }

    /// The logarithm of a cell's seconds, and its gradient.
    fn log_seconds(&self, key: CellKey) -> (f64, Vec<f64>) {
        let [scale, critical, overhead, shift] = [0, 1, 2, 3].map(|at| self.best[at]);
        let size = f64::from(key.batch_size.max(1));
        let (floor, alone) = (size / critical.exp(), overhead.exp() / size);
        let kept = -(1.0 - key.sparsity).max(1e-9).ln();
        let mut gradient = vec![1.0, -floor / (1.0 + floor), alone / (1.0 + alone), kept];
        gradient.extend(self.factors.iter().map(|sparsity| f64::from(u8::from(*sparsity == key.sparsity))));
        let own: f64 = gradient[COMMON..].iter().zip(&self.best[COMMON..]).map(|(is_own, factor)| is_own * factor).sum();
        (scale + floor.ln_1p() + alone.ln_1p() + shift * kept + own, gradient)
    }

    /// Half of the squares that are left: of the parameters about their priors, and of the cells about the law.
    fn cost(&self, priors: &[(f64, f64)], measured: &[(CellKey, f64)], logs: &[f64]) -> f64 {
        let of_parameters: f64 = priors.iter().zip(&self.best).map(|((mean, deviation), value)| ((value - mean) / deviation).powi(2)).sum();
        let of_cells: f64 = measured.iter().zip(logs).map(|(cell, log)| ((log - self.log_seconds(cell.0).0) / self.scatter).powi(2)).sum();
        (of_parameters + of_cells) / 2.0
    }

    /// The normal equations: the matrix, to whose diagonal a part is added, and the downward gradient.
    fn equations(&self, priors: &[(f64, f64)], measured: &[(CellKey, f64)], logs: &[f64], damping: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let count = priors.len();
        let mut matrix = vec![vec![0.0; count]; count];
        let mut down = vec![0.0; count];
        for (row, (mean, deviation)) in priors.iter().enumerate() {
            matrix[row][row] = 1.0 / (deviation * deviation);
            down[row] = (mean - self.best[row]) / (deviation * deviation);
        }
        for ((key, _), log) in measured.iter().zip(logs) {
            let (law, gradient) = self.log_seconds(*key);
            let weight = 1.0 / (self.scatter * self.scatter);
            for row in 0..count {
                down[row] += weight * gradient[row] * (log - law);
                for column in 0..=row {
                    matrix[row][column] += weight * gradient[row] * gradient[column];
                }
            }
        }
        (0..count).for_each(|row| matrix[row][row] *= 1.0 + damping);
        (matrix, down)
    }
}

/// Seconds that have a logarithm and whose sum is finite.
fn bounded(seconds: f64) -> f64 {
    if seconds.is_nan() { LONGEST } else { seconds.clamp(1e-9, LONGEST) }
}

/// The lower triangle L of L·Lᵀ = `matrix`, of which the lower triangle is read. The matrix is positive definite: its priors are.
fn cholesky(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for row in 0..matrix.len() {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let left = matrix[row][column] - sum;
            matrix[row][column] = if row == column { left.max(1e-12).sqrt() } else { left / matrix[column][column] };
        }
    }
    matrix
}

/// x of L·Lᵀ·x = `right`.
fn solve(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; right.len()];
    for row in 0..right.len() {
        let sum: f64 = (0..row).map(|k| lower[row][k] * found[k]).sum();
        found[row] = (right[row] - sum) / lower[row][row];
    }
    backward(lower, &found)
}

/// x of Lᵀ·x = `right`. From standard normal numbers the function makes normal numbers whose precision matrix is L·Lᵀ.
fn backward(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; right.len()];
    for row in (0..right.len()).rev() {
        let sum: f64 = (row + 1..right.len()).map(|k| lower[k][row] * found[k]).sum();
        found[row] = (right[row] - sum) / lower[row][row];
    }
    found
}
