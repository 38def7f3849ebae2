//! An optimizer beside SGD.

use super::claim::Claim;
use super::finding::{Finding, above, below, times, words};
use crate::analysis::statistics::{ConfirmedCell, Fit, Mean, Point, fit_means, means, measured_points};
use crate::analysis::studies::StudyResults;
use crate::readable::count;
use crate::settings::ascending;

/// What each sparsity that was measured with both optimizers says, by fits over the batch sizes measured with both: curves of other batch sizes would
/// differ by what these say of the law.
pub fn findings(study: &StudyResults, sgd: &StudyResults) -> Vec<Finding> {
    let (own, of_sgd) = (study.grid(), sgd.grid());
    let sparsities: Vec<f64> = own.sparsities.iter().copied().filter(|sparsity| of_sgd.sparsities.contains(sparsity)).collect();
    let points: Vec<[Vec<Point>; 2]> = sparsities
        .iter()
        .map(|&sparsity| common([measured_points(&own, sparsity), measured_points(&of_sgd, sparsity)], |point| point.batch_size))
        .collect();
    let fits = Fit::together(&points.iter().flatten().map(Vec::as_slice).collect::<Vec<_>>());
    let pairs = sparsities.into_iter().zip(&points).zip(fits.chunks(2));
    pairs.flat_map(|((sparsity, [points, _]), fits)| compared(sparsity, points, &fits[0], &fits[1])).collect()
}

/// The optimizers compared by cells that were confirmed with both.
pub fn confirmed(own: &[ConfirmedCell], sgd: &[ConfirmedCell]) -> Vec<Finding> {
    let sparsities = ascending(own.iter().map(|cell| cell.key.sparsity), f64::total_cmp);
    let means: Vec<[Vec<Mean>; 2]> =
        sparsities.iter().map(|&sparsity| common([means(own, sparsity), means(sgd, sparsity)], |mean| mean.batch_size)).collect();
    let (fits, _) = fit_means(&means.iter().flatten().map(Vec::as_slice).collect::<Vec<_>>());
    let fits: Vec<Result<Fit, String>> = fits.into_iter().map(|fit| fit.map(|fit| fit.fit)).collect();
    let points = means.iter().map(|[own, _]| own.iter().map(|mean| mean.point()).collect::<Vec<_>>());
    let pairs = sparsities.into_iter().zip(points).zip(fits.chunks(2));
    pairs.flat_map(|((sparsity, points), fits)| compared(sparsity, &points, &fits[0], &fits[1])).collect()
}

/// Points of two curves at the batch sizes that both have.
fn common<T: Copy>(curves: [Vec<T>; 2], size: fn(&T) -> f64) -> [Vec<T>; 2] {
    let sizes = curves.each_ref().map(|curve| curve.iter().map(size).collect::<Vec<f64>>());
    let is_common = |of: &T| sizes.iter().all(|sizes| sizes.contains(&size(of)));
    curves.map(|curve| curve.into_iter().filter(is_common).collect())
}

fn compared(sparsity: f64, points: &[Point], own: &Result<Fit, String>, sgd: &Result<Fit, String>) -> [Finding; 2] {
    let claims = [Claim::FewerThanSgd, Claim::BeyondSgd];
    let (own, sgd) = match (own, sgd) {
        (Ok(own), Ok(sgd)) => (own, sgd),
        (Err(why), _) | (_, Err(why)) => {
            return claims.map(|claim| Finding::undecided(claim, sparsity, format!("no fit over the batch sizes of both: {why}")));
        }
    };
    let size = points.iter().map(|point| point.batch_size).fold(0.0, f64::max);
    let (steps, critical) = (own.steps_over(sgd, size), own.critical_over(sgd));
    let measured = format!("{} times as many at batch size {}", words(steps), count(size as u64));
    [
        Finding::new(claims[0], sparsity, measured, below(steps, 1.0), above(steps, 1.0)),
        Finding::new(claims[1], sparsity, times(critical, "SGD's"), above(critical, 1.0), below(critical, 1.0)),
    ]
}
