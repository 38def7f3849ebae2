//! Votes of all ranks on whether to stop, in the middle of what each does at its own pace.

use super::conductor::Conductor;
use crate::{Error, Result};

/// Votes that are still to be cast, as many on every rank. A vote waits for all ranks, so a rank that has less to do between them than others
/// casts the rest when it is done.
pub struct Votes<'a> {
    left: usize,
    conductor: &'a mut dyn Conductor,
}

impl<'a> Votes<'a> {
    /// `count` votes; the number must be the same on every rank.
    pub fn new(count: usize, conductor: &'a mut dyn Conductor) -> Votes<'a> {
        Votes { left: count, conductor }
    }

    /// Casts one vote.
    ///
    /// # Errors
    /// [`Error::Interrupted`] where the study is to stop: on all ranks at the same vote, which is the last one.
    pub fn cast(&mut self) -> Result<()> {
        self.left -= 1;
        if self.conductor.stop() {
            self.left = 0;
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Casts the votes that are left after some work, and returns the work's result. Where the work was interrupted, which may be so on some
    /// ranks alone, the others hear of it by the next vote.
    ///
    /// # Errors
    /// [`Error::Interrupted`] where the study is to stop, on all ranks. An error of the work that is not an interruption, without any vote.
    pub fn cast_rest<T>(mut self, work: Result<T>) -> Result<T> {
        if matches!(work, Ok(_) | Err(Error::Interrupted)) {
            while self.left > 0 {
                self.cast()?;
            }
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::super::conductor::{Decision, Moment};
    use super::*;

    /// Counts the votes, and says to stop at one of them.
    struct Counter {
        votes: usize,
        stop_at: usize,
    }

    impl Conductor for Counter {
        fn moment(&mut self, _moment: &Moment) -> Result<Decision> {
            unreachable!()
        }

        fn stop(&mut self) -> bool {
            self.votes += 1;
            self.votes >= self.stop_at
        }
    }

    /// Votes cast, and whether the study stopped, where a rank casts `own` of 5 votes itself and then ends its work with `work`.
    fn votes(stop_at: usize, own: usize, work: Result<()>) -> (usize, bool) {
        let mut counter = Counter { votes: 0, stop_at };
        let mut votes = Votes::new(5, &mut counter);
        let mine: Result<()> = (0..own).try_for_each(|_| votes.cast());
        let end = votes.cast_rest(mine.and(work));
        (counter.votes, matches!(end, Err(Error::Interrupted)))
    }

    #[test]
    fn every_rank_casts_the_same_votes_whatever_it_does_between_them() {
        for own in 0..=5 {
            assert_eq!(votes(usize::MAX, own, Ok(())), (5, false));
            for stop_at in 1..=5 {
                assert_eq!(votes(stop_at, own, Ok(())), (stop_at, true));
            }
            for stop_at in own + 1..=5 {
                assert_eq!(votes(stop_at, own, Err(Error::Interrupted)), (stop_at, true));
            }
        }
        let broken = || Error::Communication { rank: 1, problem: "something else".into() };
        assert_eq!(votes(1, 0, Err(broken())), (0, false));
    }
}
