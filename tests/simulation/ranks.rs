//! Ranks that are threads: a communicator whose calls are the scheduler's, and what a rank hears of its process.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dps::comm::Communicator;
use dps::study::{FileWork, Started, Surroundings};
use dps::{Error, Result};

use super::meeting::{Message, Wants};
use super::scheduler::{Context, Scheduler};

/// A rank's view of a group.
pub struct Ranks {
    context: Context,
    group: usize,
    rank: usize,
    size: usize,
    calls: Cell<u64>,
    /// Floats that this rank has received.
    pub received: Cell<usize>,
}

impl Ranks {
    /// The world of the calling task.
    pub fn of_world(group: usize, rank: usize, size: usize) -> Ranks {
        Ranks { context: Context::get().expect("a task"), group, rank, size, calls: Cell::new(0), received: Cell::new(0) }
    }

    fn meet(&self, kind: &'static str, wants: Wants, message: Message) -> Vec<Message> {
        let number = self.calls.replace(self.calls.get() + 1);
        self.context.scheduler.meet(self.context.me, self.group, number, kind, wants, message)
    }

    fn wrong(&self, problem: &str) {
        self.context.scheduler.fail(format!("rank {} of group {}: {problem}", self.rank, self.group));
    }
}

impl Communicator for Ranks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, send: &[f32], counts: &[usize], receive: &mut Vec<f32>) {
        let all = self.meet("all_gather", Wants::All, Message::Floats(send.to_vec()));
        receive.clear();
        for (message, &count) in all.into_iter().zip(counts) {
            match message {
                Message::Floats(floats) if floats.len() == count => receive.extend(floats),
                _ => self.wrong("all_gather gets other counts than were sent"),
            }
        }
        self.received.set(self.received.get() + receive.len());
    }

    fn all_to_all(&self, send: &[f32], sent: &[usize], received: &[usize], receive: &mut Vec<f32>) {
        let lengths = sent.iter().map(|&len| len as u64).collect();
        let floats = self.meet("all_to_all", Wants::All, Message::Floats(send.to_vec()));
        let lengths = self.meet("all_to_all", Wants::All, Message::Words(lengths));
        receive.clear();
        for ((floats, lengths), &count) in floats.into_iter().zip(lengths).zip(received) {
            let (Message::Floats(floats), Message::Words(lengths)) = (floats, lengths) else { continue };
            let before: u64 = lengths[..self.rank].iter().sum();
            match floats.get(before as usize..).and_then(|rest| rest.get(..count)) {
                Some(run) if lengths[self.rank] == count as u64 && lengths.iter().sum::<u64>() == floats.len() as u64 => {
                    receive.extend(run)
                }
                _ => self.wrong("all_to_all gets other counts than were sent"),
            }
        }
        self.received.set(self.received.get() + receive.len());
    }

    fn all_gather_words(&self, send: &[u64]) -> Vec<u64> {
        let all = self.meet("all_gather_words", Wants::All, Message::Words(send.to_vec()));
        all.into_iter().flat_map(|message| if let Message::Words(words) = message { words } else { Vec::new() }).collect()
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.meet("broadcast", Wants::First, Message::Bytes(bytes)).pop() {
            Some(Message::Bytes(bytes)) => bytes,
            _ => Vec::new(),
        }
    }

    fn gather(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let all = self.meet("gather", Wants::All, Message::Bytes(bytes.to_vec()));
        let bytes = |message| if let Message::Bytes(bytes) = message { bytes } else { Vec::new() };
        if self.rank == 0 { all.into_iter().map(bytes).collect() } else { Vec::new() }
    }

    fn split(&self, color: usize) -> Box<dyn Communicator> {
        let number = self.calls.get();
        let all = self.meet("split", Wants::All, Message::Words(vec![color as u64]));
        let color_of = |message| if let Message::Words(words) = message { words[0] as usize } else { usize::MAX };
        let colors: Vec<usize> = all.into_iter().map(color_of).collect();
        let Context { scheduler, me } = &self.context;
        let (group, rank, size) = scheduler.split(*me, self.group, number, color, &colors);
        Box::new(Ranks { context: self.context.clone(), group, rank, size, calls: Cell::new(0), received: Cell::new(0) })
    }

    fn limit_waits(&self, seconds: u32) {
        self.context.scheduler.limit_waits(self.context.me, seconds);
    }

    fn abort(&self, code: i32) {
        self.context.scheduler.abort(self.context.me, code)
    }
}

/// Signals, clock and threads of a rank's simulated process.
pub const SURROUNDINGS: Surroundings = Surroundings {
    stop: || Context::get().is_some_and(|Context { scheduler, me }| scheduler.is_signalled(me)),
    urgent: || Context::get().is_some_and(|Context { scheduler, me }| scheduler.is_urgent(me)),
    now: || Context::get().map_or_else(Instant::now, |Context { scheduler, me }| scheduler.now(me)),
    start,
};

type Outcome = Arc<Mutex<Option<Result<Duration>>>>;

/// A task beside a rank.
struct Beside {
    scheduler: Arc<Scheduler>,
    task: usize,
    outcome: Outcome,
}

fn start(work: FileWork) -> io::Result<Box<dyn Started>> {
    let Context { scheduler, me } = Context::get().expect("a task");
    let outcome = Outcome::default();
    let theirs = outcome.clone();
    let run = move || {
        let done = work();
        *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    };
    match scheduler.start_beside(me, Box::new(run)) {
        Some(task) => Ok(Box::new(Beside { scheduler, task, outcome })),
        None => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Started for Beside {
    fn is_finished(&self) -> bool {
        self.scheduler.has_ended(self.task)
    }

    fn join(self: Box<Self>) -> std::thread::Result<Result<Duration>> {
        if let Some(Context { me, .. }) = Context::get() {
            self.scheduler.join(me, self.task);
        }
        // Nothing is there where the process was killed, and the caller unwinds.
        Ok(self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Err(Error::Interrupted)))
    }
}
