//! An optimizer beside SGD.

use super::super::fit::{Fit, Point};
use super::super::fits::Fitted;
use super::super::studies::StudyResults;
use super::claim::Claim;
use super::finding::{Finding, above, below, times, words};
use crate::readable::count;

/// What each sparsity that was measured with both optimizers says, by fits over the batch sizes measured with both: curves of other batch sizes would
/// differ by what these say of the law.
pub fn findings(study: &StudyResults, sgd: (&StudyResults, &[Fitted])) -> Vec<Finding> {
    let (own, of_sgd) = (study.grid(), sgd.0.grid());
    let sparsities: Vec<f64> = own.sparsities.iter().copied().filter(|sparsity| of_sgd.sparsities.contains(sparsity)).collect();
    let common = |sparsity: f64| {
        let [own, of_sgd] = [own.points(sparsity), of_sgd.points(sparsity)];
        let with = |points: &[Point], others: &[Point]| {
            let is_common = |point: &&Point| others.iter().any(|other| other.batch_size == point.batch_size);
            points.iter().filter(is_common).copied().collect::<Vec<_>>()
        };
        [with(&own, &of_sgd), with(&of_sgd, &own)]
    };
    let points: Vec<[Vec<Point>; 2]> = sparsities.iter().map(|&sparsity| common(sparsity)).collect();
    let curves: Vec<&[Point]> = points.iter().flatten().map(Vec::as_slice).collect();
    let fits = Fit::together(&curves);
    let pairs = sparsities.into_iter().zip(&points).zip(fits.chunks(2));
    pairs.flat_map(|((sparsity, [points, _]), fits)| compared(sparsity, points, &fits[0], &fits[1])).collect()
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
