//! The critical batch size by several definitions.

use super::fit::Estimate;
use super::fits::Fitted;
use super::smoothness::Smooth;
use super::studies::StudyResults;
use crate::readable::{count, significant};

/// By how much of the minimum the examples may grow up to the critical batch size of Zhang et al.
const OVERHEAD: f64 = 0.2;

/// A definition of the critical batch size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// c1/c2 of the fit.
    Fit,
    /// E_min/S_min of the trade-off between examples and steps.
    TradeOff,
    /// E_min/S_min of the least examples and the least steps that were measured.
    Measured,
    /// Where the examples exceed their minimum by a fifth.
    Overhead,
    /// The gradient's noise scale.
    NoiseScale,
}

impl Definition {
    /// Every definition.
    pub const ALL: [Definition; 5] =
        [Definition::Fit, Definition::TradeOff, Definition::Measured, Definition::Overhead, Definition::NoiseScale];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Definition::Fit => "fit",
            Definition::TradeOff => "trade-off",
            Definition::Measured => "measured ends",
            Definition::Overhead => "20 % overhead",
            Definition::NoiseScale => "noise scale",
        }
    }

    /// What it says, and where it is from.
    pub fn source(self) -> &'static str {
        match self {
            Definition::Fit => "c1/c2 of K* = c1/B + c2 (Lee et al., 2021)",
            Definition::TradeOff => {
                "E_min/S_min of (S/S_min − 1)(E/E_min − 1) = 1 with steps S and examples E = S·B (McCandlish et al., 2018)"
            }
            Definition::Measured => "the fewest examples of any batch size over the fewest steps of any (after McCandlish et al., 2018)",
            Definition::Overhead => "the batch size at which examples K*·B exceed 1.2 times their minimum (Zhang et al., 2024)",
            Definition::NoiseScale => "tr Σ/‖∇f‖², the median along the training (McCandlish et al., 2018)",
        }
    }
}

/// A critical batch size.
#[derive(Debug, Clone)]
pub struct Critical {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// By which definition.
    pub definition: Definition,
    /// In examples. Infinite: not within the batch sizes that were measured.
    pub estimate: Estimate,
    /// What it was computed from.
    pub from: String,
}

/// The critical batch sizes of a study, by sparsity, then definition. Intervals of what is not fitted are those of the fit's residual bootstrap, which needs a
/// fit.
pub fn critical(study: &StudyResults, fits: &[Fitted], smooth: &[Smooth]) -> Vec<Critical> {
    let mut found = Vec::new();
    for fitted in fits {
        let sparsity = fitted.sparsity;
        let mut add = |definition, estimate, from| found.push(Critical { sparsity, definition, estimate, from });
        if let Ok(fit) = &fitted.fit {
            let points = study.grid().measured(sparsity);
            let sizes: Vec<String> = points.iter().map(|point| count(point.0)).collect();
            let measured = format!("K* at batch size {}", sizes.join(", "));
            add(Definition::Fit, fit.critical, measured.clone());
            let ends = format!(
                "the fit, which is the same curve: E_min = c1 = {}, S_min = c2 = {}",
                significant(fit.c1.value),
                significant(fit.c2.value)
            );
            add(Definition::TradeOff, fit.critical, ends);
            add(Definition::Measured, fit.of_points(measured_ends), measured.clone());
            add(Definition::Overhead, fit.of_points(overhead), measured);
        }
        let is_known = |smooth: &&Smooth| smooth.key.sparsity == sparsity && !smooth.noise_scale[1].value.is_nan();
        for smooth in smooth.iter().filter(is_known) {
            let from =
                format!("{} measurements of {} trials at batch size {}", smooth.measurements, smooth.trials, count(smooth.key.batch_size));
            add(Definition::NoiseScale, smooth.noise_scale[1], from);
        }
    }
    found
}

/// The least B·K over the least K of (B, K) points.
fn measured_ends(points: &[(f64, f64)]) -> f64 {
    let least = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
    least(|(size, steps)| size * steps) / least(|(_, steps)| *steps)
}

/// Where B·K first exceeds its minimum by [`OVERHEAD`] beyond the batch size that has the minimum, of (B, K) points by B; between points log (B·K) is taken
/// as straight over log B. Infinite where it never does.
fn overhead(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, steps)| (size.ln(), (size * steps).ln())).collect();
    let Some(least) = (0..logs.len()).min_by(|&a, &b| logs[a].1.total_cmp(&logs[b].1)) else { return f64::NAN };
    let most = logs[least].1 + (1.0 + OVERHEAD).ln();
    let crossing = logs[least..].windows(2).find(|pair| pair[1].1 > most);
    crossing.map_or(f64::INFINITY, |pair| {
        let [(from, below), (to, above)] = [pair[0], pair[1]];
        (from + (to - from) * (most - below) / (above - below)).exp()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_and_ends_are_those_of_the_points() {
        // Examples 1,000, 1,000, 1,100, 1,600: 1.2 times the minimum lies between the last two.
        let points = [(1.0, 1000.0), (10.0, 100.0), (100.0, 11.0), (1000.0, 1.6)];
        let expected = 100.0 * 10f64.powf((1.2_f64 / 1.1).ln() / (1.6_f64 / 1.1).ln());
        assert!((overhead(&points) / expected - 1.0).abs() < 1e-12);
        assert_eq!(overhead(&points[..3]), f64::INFINITY);
        assert!(overhead(&[]).is_nan());
        assert!((measured_ends(&points) - 1000.0 / 1.6).abs() < 1e-9);
    }
}
