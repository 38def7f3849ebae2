//! An optimizer beside SGD.

use super::claim::Claim;
use super::finding::{Finding, Tails, times, words};
use crate::analysis::statistics::Beside;
use crate::readable::count;

/// The two claims at one sparsity, by fits over the batch sizes that both optimizers have. Fits over different batch sizes would also differ where
/// the measured curves depart from the law.
pub fn findings(both: &Beside) -> [Finding; 2] {
    let (claims, sparsity) = ([Claim::FewerThanSgd, Claim::BeyondSgd], both.sparsity);
    let [own, sgd] = match &both.fits {
        Ok(fits) => fits,
        Err(why) => return claims.map(|claim| Finding::undecided(claim, sparsity, format!("no fit over the batch sizes of both: {why}"))),
    };
    let size = both.points.iter().map(|point| point.batch_size).fold(0.0, f64::max);
    let (steps, critical) = (own.steps_over(sgd, size), own.critical_over(sgd));
    let tails = Tails::of_both(own, sgd);
    let measured = format!("{} times as many at batch size {}", words(steps), count(size as u64));
    [
        Finding::new(claims[0], sparsity, measured, tails.below(steps, 1.0), tails.above(steps, 1.0)),
        Finding::new(claims[1], sparsity, times(critical, "SGD's"), tails.above(critical, 1.0), tails.below(critical, 1.0)),
    ]
}
