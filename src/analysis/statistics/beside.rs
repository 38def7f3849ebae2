//! A study's curves beside those of another study, at the batch sizes that both have.

use super::confirmations::{ConfirmedCell, means};
use super::fit::{Estimate, Fit};
use super::fits::measured_points;
use super::means::{Middle, fit_means};
use crate::analysis::studies::StudyResults;
use crate::records::CellKey;
use crate::settings::ascending;

/// The curves of a sparsity in two studies, at the batch sizes that both have.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// The batch sizes.
    pub sizes: Vec<f64>,
    /// The laws of the first and of the second study, fitted together; or why one is not fitted, as a clause.
    pub fits: Result<[Fit; 2], String>,
}

impl Beside {
    /// Steps of the first study over those of the second one by their laws, in the geometric mean over the batch sizes; none without fits.
    pub fn steps(&self) -> Option<Estimate> {
        let [own, other] = self.fits.as_ref().ok()?;
        Some(own.mean_over(other, self.sizes.iter().copied()))
    }

    /// The critical batch size of the first study over that of the second one; none without fits.
    pub fn critical(&self) -> Option<Estimate> {
        let [own, other] = self.fits.as_ref().ok()?;
        Some(own.critical_over(other))
    }
}

/// The curves of K* of a study beside those of another one.
pub fn least_beside(own: &StudyResults, other: &StudyResults) -> Vec<Beside> {
    let (own, other) = (own.grid(), other.grid());
    let sparsities = own.sparsities.iter().copied().filter(|sparsity| other.sparsities.contains(sparsity));
    let curves = sparsities.map(|sparsity| (sparsity, [&own, &other].map(|grid| measured_points(grid, sparsity))));
    of_curves(curves, |point| point.batch_size, |curves| Fit::together(curves))
}

/// The curves of confirmed steps beside those of another study with the same seeds: of each sparsity beside that which `of` says.
pub fn confirmed_beside(own: &[ConfirmedCell], other: &[ConfirmedCell], of: impl Fn(f64) -> f64) -> Vec<Beside> {
    let sparsities = ascending(own.iter().map(|cell| cell.key.sparsity), f64::total_cmp);
    let sparsities = sparsities.into_iter().filter(|&sparsity| other.iter().any(|cell| cell.key.sparsity == of(sparsity)));
    let curves = sparsities.map(|sparsity| (sparsity, [means(own, sparsity, Middle::Mean), means(other, of(sparsity), Middle::Mean)]));
    of_curves(curves, |mean| mean.batch_size, |curves| fit_means(curves).0.into_iter().map(|fit| Ok(fit?.fit)).collect())
}

/// The geometric mean of a cell's confirmed steps over that of a cell of another study with the same seeds; none where one has none.
pub fn cell_beside(own: &ConfirmedCell, others: &[ConfirmedCell], key: CellKey) -> Option<Estimate> {
    own.confirmed.over(&others.iter().find(|other| other.key == key)?.confirmed)
}

/// Two curves of each sparsity, without the batch sizes that one of them lacks, and their laws.
fn of_curves<T: Copy>(
    curves: impl Iterator<Item = (f64, [Vec<T>; 2])>,
    size: fn(&T) -> f64,
    fit: impl Fn(&[&[T]]) -> Vec<Result<Fit, String>>,
) -> Vec<Beside> {
    let common = |curves: [Vec<T>; 2]| {
        let sizes = curves.each_ref().map(|curve| curve.iter().map(size).collect::<Vec<f64>>());
        curves.map(|curve| curve.into_iter().filter(|of| sizes.iter().all(|sizes| sizes.contains(&size(of)))).collect())
    };
    let found: Vec<(f64, [Vec<T>; 2])> = curves.map(|(sparsity, curves)| (sparsity, common(curves))).collect();
    let fits = fit(&found.iter().flat_map(|(_, curves)| curves).map(Vec::as_slice).collect::<Vec<_>>());
    let mut fits = fits.into_iter();
    let mut found_fits = || fits.next().unwrap_or_else(|| Err("a curve is missing".to_owned()));
    let of_sparsity = |(sparsity, [own, _]): (f64, [Vec<T>; 2])| {
        let (own_fit, other_fit) = (found_fits(), found_fits());
        let fits = own_fit.and_then(|own_fit| Ok([own_fit, other_fit?]));
        Beside { sparsity, sizes: own.iter().map(size).collect(), fits }
    };
    found.into_iter().map(of_sparsity).collect()
}
