//! Threads that share short pieces of work with the thread that calls them.
//!
//! A training step of few examples takes some hundred microseconds, and waking a sleeping thread takes up to fifty. So a thread that waits for work
//! looks for it without sleeping for [`AWAKE`]: in the steps of a training it is there at once.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a thread looks for what it waits for before it sleeps: longer than the work between two rounds of a training step.
const AWAKE: Duration = Duration::from_micros(100);

/// Bits of [`Shared::round`] that hold the number of members.
const MEMBER_BITS: u32 = 16;

/// Threads besides the calling one.
pub(super) struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The caller's.
    patience: Patience,
}

/// State that the threads of a team and its caller share.
struct Shared {
    /// The number of the round, and in its last [`MEMBER_BITS`] how many threads are members of the round: those with the indices 1, 2, …
    round: AtomicU64,
    /// Members of the round that have not finished.
    busy: AtomicUsize,
    /// The work of the round and the thread that waits for it.
    task: Mutex<Option<(Work, Thread)>>,
    /// Whether a member's work panicked.
    panicked: AtomicBool,
    /// Whether the threads are to end.
    is_over: AtomicBool,
}

/// The work of a round, which is given the index of the thread that runs it.
type Work = &'static (dyn Fn(usize) + Sync);

impl Team {
    /// A team of so many threads, or of as many as the system grants.
    pub fn new(threads: usize) -> Team {
        let shared = Arc::new(Shared {
            round: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            task: Mutex::new(None),
            panicked: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let spawn = |index: usize| {
            let shared = shared.clone();
            thread::Builder::new().spawn(move || shared.serve(index)).ok()
        };
        let threads = (1..=threads.min((1 << MEMBER_BITS) - 1)).map_while(spawn).collect();
        Team { shared, threads, patience: Patience::new() }
    }

    /// Runs `work(0)` on the calling thread and `work(index)` on `others` threads at most, from index 1 on; returns when all have ended.
    ///
    /// # Panics
    /// If the work panics on any thread.
    pub fn run(&mut self, others: usize, work: &(dyn Fn(usize) + Sync)) {
        let others = others.min(self.threads.len());
        if others == 0 {
            return work(0);
        }
        // SAFETY: the reference is used by members of this round alone, and each of them has let go of it before it counts itself out of `busy`.
        // `Round`, when dropped, waits until all are counted out, also where `work(0)` panics: the reference is never used after this call.
        let lasting = unsafe { mem::transmute::<&(dyn Fn(usize) + Sync), Work>(work) };
        *self.shared.task() = Some((lasting, thread::current()));
        self.shared.busy.store(others, Ordering::Relaxed);
        let number = (self.shared.round.load(Ordering::Relaxed) >> MEMBER_BITS) + 1;
        self.shared.round.store(number << MEMBER_BITS | others as u64, Ordering::Release);
        self.threads[..others].iter().for_each(|thread| thread.thread().unpark());
        let round = Round { shared: &self.shared, patience: &mut self.patience };
        work(0);
        drop(round);
        assert!(!self.shared.panicked.swap(false, Ordering::Relaxed), "a thread's work panicked; its message is above");
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A panic of a thread's work has been passed on by `run`.
            let _ = thread.join();
        }
    }
}

/// A round that other threads work for; dropping it waits for them.
struct Round<'a> {
    shared: &'a Shared,
    patience: &'a mut Patience,
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.patience.wait(|| (self.shared.busy.load(Ordering::Acquire) == 0).then_some(()));
        *self.shared.task() = None;
    }
}

impl Shared {
    fn task(&self) -> MutexGuard<'_, Option<(Work, Thread)>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the thread of an index until the team ends: its part of every round of which it is a member.
    fn serve(&self, index: usize) {
        let (mut last, mut patience) = (0, Patience::new());
        loop {
            let round = patience.wait(|| {
                let round = self.round.load(Ordering::Acquire);
                (round != last || self.is_over.load(Ordering::Acquire)).then_some(round)
            });
            if round == last {
                return;
            }
            last = round;
            if index as u64 > round & ((1 << MEMBER_BITS) - 1) {
                continue;
            }
            let Some((work, caller)) = self.task().clone() else { continue };
            if catch_unwind(AssertUnwindSafe(|| work(index))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
                caller.unpark();
            }
        }
    }
}

/// Waits, and how long it looks before it sleeps.
struct Patience(Duration);

impl Patience {
    fn new() -> Patience {
        Patience(AWAKE)
    }

    /// Waits until `look` finds something: looks again and again at first, then sleeps until the thread is unparked.
    ///
    /// Looking keeps a processor busy. Where others want it, as on a machine with more threads than processors, that makes them and so the wait
    /// itself longer; so after a long wait the next one looks half as long, and after a short one as long as ever.
    fn wait<T>(&mut self, look: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        let found = loop {
            if let Some(found) = look() {
                break found;
            }
            if begun.elapsed() < self.0 {
                std::hint::spin_loop();
            } else {
                thread::park();
            }
        };
        self.0 = if begun.elapsed() < 2 * AWAKE { AWAKE } else { self.0 / 2 };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_of_a_round_works_once() {
        let mut team = Team::new(3);
        for round in 0..2_000 {
            let others = round % 5;
            let counts: Vec<AtomicUsize> = (0..=others).map(|_| AtomicUsize::new(0)).collect();
            team.run(others, &|index| {
                counts[index].fetch_add(1, Ordering::Relaxed);
            });
            let counts: Vec<usize> = counts.into_iter().map(AtomicUsize::into_inner).collect();
            let expected: Vec<usize> = (0..=others).map(|index| usize::from(index <= 3)).collect();
            assert_eq!(counts, expected);
            if round % 500 == 0 {
                // Long enough for the threads to sleep.
                thread::sleep(2 * AWAKE);
            }
        }
    }

    #[test]
    fn a_panic_on_any_thread_is_passed_on_and_the_team_works_on() {
        let mut team = Team::new(2);
        for bad in 0..3 {
            let ended = AtomicUsize::new(0);
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                team.run(2, &|index| {
                    ended.fetch_add(1, Ordering::Relaxed);
                    assert_ne!(index, bad);
                });
            }));
            assert!(panicked.is_err());
            assert_eq!(ended.into_inner(), 3);
        }
        let sum = AtomicUsize::new(0);
        team.run(2, &|index| {
            sum.fetch_add(index, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 3);
    }
}
