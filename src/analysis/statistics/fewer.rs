//! K* that fewer trials would have found. K* is a minimum over a cell's trials, so it falls with their number: what n of the N trials find is a
//! random number when the n are drawn at random, and its distribution follows from the trials that were run, by counting.

use crate::records::Cell;

/// How far rounding may put a chance from the share that it is equal to.
const ROUNDING: f64 = 1e-12;

/// The trials of a cell by the steps in which they reached the goal.
pub struct FewerTrials {
    /// Steps of those that reached it, ascending. The others took more than the longest of these: they were censored, or never reached it.
    steps: Vec<u32>,
    /// All trials.
    trials: usize,
}

impl FewerTrials {
    /// Counts a cell's trials, and sorts the steps of those that reached the goal.
    pub fn new(cell: &Cell) -> FewerTrials {
        let mut steps: Vec<u32> = cell.trials.iter().filter_map(|trial| trial.steps).collect();
        steps.sort_unstable();
        FewerTrials { steps, trials: cell.trials.len() }
    }

    /// The K* that a share `share` of all choices of `count` trials finds or undercuts. None where so many choices hold no trial that is known to
    /// reach the goal.
    pub fn quantile(&self, count: usize, share: f64) -> Option<u32> {
        let mut missed = 1.0;
        let is_reached = |&(fast, _): &(usize, &u32)| {
            missed *= self.left_out(count, fast);
            1.0 - missed >= share - ROUNDING
        };
        self.steps.iter().enumerate().find(is_reached).map(|(_, &steps)| steps)
    }

    /// The fewest trials of which a share `share` of all choices finds at most `most` steps. None where no trial does.
    pub fn needed(&self, most: f64, share: f64) -> Option<usize> {
        let fast = self.steps.iter().filter(|steps| f64::from(**steps) <= most).count();
        let found = |count: usize| 1.0 - (0..fast).map(|fast| self.left_out(count, fast)).product::<f64>();
        let counts: Vec<usize> = (1..=self.trials).collect();
        // The chance grows with the number of trials, so a binary search finds the first number that is enough.
        counts.get(counts.partition_point(|&count| found(count) < share - ROUNDING)).copied()
    }

    /// The chance that a choice of `count` trials leaves out the trial after the `fast` fastest ones, if the choice leaves out those `fast` trials:
    /// (N − count − fast) / (N − fast).
    fn left_out(&self, count: usize, fast: usize) -> f64 {
        self.trials.saturating_sub(count).saturating_sub(fast) as f64 / (self.trials - fast) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every choice of trials, counted one by one.
    #[test]
    fn quantiles_are_those_of_all_choices() {
        const NEVER: u32 = u32::MAX;
        let all = [48_u32, 32, NEVER, 64, 32, 96, NEVER];
        let mut steps: Vec<u32> = all.into_iter().filter(|&steps| steps != NEVER).collect();
        steps.sort_unstable();
        let trials = FewerTrials { steps, trials: all.len() };
        for count in 1..=all.len() {
            let choices = (0..1_u32 << all.len()).filter(|choice| choice.count_ones() as usize == count);
            let least = |choice: u32| (0..all.len()).filter(|bit| choice >> bit & 1 == 1).map(|bit| all[bit]).min().unwrap();
            let mut found: Vec<u32> = choices.map(least).collect();
            found.sort_unstable();
            for share in [0.025, 0.5, 0.75, 0.975, 1.0] {
                let expected = found[((share * found.len() as f64 - 1e-9).ceil() as usize).max(1) - 1];
                assert_eq!(trials.quantile(count, share), Some(expected).filter(|&steps| steps != NEVER), "{share} of {count}");
            }
            let within = |most: u32| found.iter().filter(|steps| **steps <= most).count() as f64 / found.len() as f64;
            for (most, share) in [(32, 0.5), (32, 0.95), (48, 0.95), (96, 0.99)] {
                let is_enough = within(most) >= share - 1e-9;
                assert_eq!(
                    trials.needed(f64::from(most), share).is_some_and(|needed| count >= needed),
                    is_enough,
                    "{most} {share} {count}"
                );
            }
        }
        assert_eq!(trials.needed(31.0, 0.5), None);
    }
}
