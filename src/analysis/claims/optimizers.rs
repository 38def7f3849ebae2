//! An optimizer beside SGD.

use super::claim::Claim;
use super::finding::{Finding, Tails, times, words};
use crate::analysis::statistics::Beside;
use crate::readable::count;

/// The two claims at one sparsity, by fits over the batch sizes that both optimizers have. Fits over different batch sizes would also differ where
/// the measured curves depart from the law.
pub fn findings(both: &Beside) -> [Finding; 2] {
    let [steps, critical] = match &both.fits {
        Err(why) => [0, 1].map(|_| Err(format!("no fit over the batch sizes of both: {why}"))),
        Ok([own, sgd]) => {
            let size = both.sizes.iter().copied().fold(0.0, f64::max);
            let (steps, critical) = (own.steps_over(sgd, size), own.critical_over(sgd));
            let tails = Tails::of_both(own, sgd);
            let measured = format!("{} times as many at batch size {}", words(steps), count(size as u64));
            [
                Ok((measured, tails.below(steps, 1.0), tails.above(steps, 1.0))),
                Ok((times(critical, "SGD's"), tails.above(critical, 1.0), tails.below(critical, 1.0))),
            ]
        }
    };
    [Finding::new(Claim::FewerThanSgd, both.sparsity, steps), Finding::new(Claim::BeyondSgd, both.sparsity, critical)]
}
