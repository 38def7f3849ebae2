//! The threads of a rank, and what each of them works with.

use std::sync::{Mutex, PoisonError};

use super::context::{Context, Seat};
use super::team::Team;
use crate::backend::cpu::worker::Worker;
use crate::comm::Leaves;

/// Multiply-adds that are worth sharing among threads: those of a dense Simple-CNN at batch size 2 are three times as many, and two threads take
/// three quarters of one thread's time for them. Bits do not depend on this number.
const SHARED_WORK: f64 = 4e6;

/// The threads, with what all of them read.
pub(super) struct Threads<'a> {
    pub context: Context<'a>,
    /// The threads besides the calling one.
    team: Team,
    /// One a thread.
    seats: Vec<Mutex<Seat>>,
}

impl<'a> Threads<'a> {
    /// The given number of threads, at least one, for a network.
    pub(super) fn new(context: Context<'a>, threads: usize) -> Threads<'a> {
        let seat = || Seat {
            worker: Worker::new(&context.physical, context.unit, context.convolutions, Leaves::LONGEST),
            tangents: None,
            stack: Vec::new(),
            indices: Vec::new(),
        };
        Threads {
            // Fewer threads than that (no more are to be had) are no reason to stop: any number gives the same bits.
            team: Team::new(threads.saturating_sub(1)),
            seats: (0..threads.max(1)).map(|_| Mutex::new(seat())).collect(),
            context,
        }
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.seats.len()
    }

    /// Threads that are to share so many multiply-adds.
    pub(super) fn sharing(&self, work: f64) -> usize {
        if work < SHARED_WORK { 1 } else { self.seats.len() }
    }

    /// Gives every item to some thread. The calling one takes items from the start, the others as soon as they are awake: so little work is
    /// not slower on many threads than on one.
    pub(super) fn each<T: Send>(&mut self, items: Vec<T>, work: impl Fn(&Context, &mut Seat, T) + Sync) {
        self.each_of(self.seats.len(), items, work);
    }

    /// Runs `work` on each item as [`Threads::each`] does, on `threads` threads at most.
    pub(super) fn each_of<T: Send>(&mut self, threads: usize, items: Vec<T>, work: impl Fn(&Context, &mut Seat, T) + Sync) {
        let (context, seats) = (&self.context, &self.seats);
        let others = threads.min(items.len()).saturating_sub(1);
        let queue = Mutex::new(items.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let take = |index: usize| {
            let seat: &mut Seat = &mut seats[index].lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(item) = next() {
                work(context, seat, item);
            }
        };
        self.team.run(others, &take);
    }
}
