//! Threads of which one runs at a time. Every call that could reach another thread is a point at which the seed decides who goes on, and what goes
//! wrong.
//!
//! A task is a thread: a rank, or what a rank started beside itself. A world is a job: the ranks that one launcher started. A process is a rank with
//! its threads. Several worlds may run at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::faults::{Fault, Kind};
use super::meeting::{Message, Wants};
use super::state::{State, Status, Task};
use super::world::{Disturbed, Process, World};

/// Payload with which a thread unwinds when its process is killed.
pub struct Killed;

pub struct Scheduler {
    state: Mutex<State>,
    all_ended: Condvar,
    /// Time that simulated clocks count from.
    base: Instant,
}

/// Starts another job on the study that is under way.
pub type SecondJob = Arc<dyn Fn(&Arc<Scheduler>) + Send + Sync>;

thread_local! {
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Which task the calling thread is.
#[derive(Clone)]
pub struct Context {
    pub scheduler: Arc<Scheduler>,
    pub me: usize,
}

impl Context {
    /// The context of the calling thread; none of a thread that the scheduler does not know, which a task waits for itself.
    pub fn get() -> Option<Context> {
        CONTEXT.with_borrow(Clone::clone)
    }
}

/// Result of a history's threads.
pub struct Ended {
    pub problem: Option<String>,
    pub struck: BTreeMap<Kind, u64>,
    pub worlds: Vec<Disturbed>,
    pub calls: u64,
    /// Ranks that ended themselves at their deadline.
    pub gave_up: u64,
    pub digest: u64,
}

impl Scheduler {
    pub fn new(seed: u64) -> Arc<Scheduler> {
        Arc::new(Scheduler { state: Mutex::new(State::new(seed)), all_ended: Condvar::new(), base: Instant::now() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_second_job(&self, job: SecondJob) {
        self.lock().second_job = Some(job);
    }

    /// Adds a world of ranks that may wait for each other until `deadline`; each runs `body` with the numbers of the world, the rank and the group of
    /// all ranks.
    pub fn start_world(
        self: &Arc<Self>,
        ranks: usize,
        deadline: Duration,
        faults: Vec<Fault>,
        body: impl Fn(usize, usize, usize) + Send + Sync + 'static,
    ) {
        let mut state = self.lock();
        let world = state.worlds.len();
        state.worlds.push(World::new(ranks, deadline, faults));
        let first = state.tasks.len();
        let group = state.groups.add((first..first + ranks).collect());
        let body = Arc::new(body);
        for rank in 0..ranks {
            let body = body.clone();
            let process = Process { world, rank };
            let name = state.process_name(process);
            self.spawn(&mut state, name, process, Box::new(move || body(world, rank, group)));
        }
    }

    /// Starts a thread of the calling task's process; none where none can be had.
    pub fn start_beside(self: &Arc<Self>, me: usize, work: Box<dyn FnOnce() + Send>) -> Option<usize> {
        self.point(me, "starts a thread");
        let mut state = self.lock();
        let process = state.tasks[me].process;
        if state.take_fault(process.world, Kind::NoThread) {
            return None;
        }
        let name = format!("writer of {}", state.tasks[me].name);
        Some(self.spawn(&mut state, name, process, work))
    }

    /// Lets the tasks run until all have ended.
    pub fn run(&self) -> Ended {
        let mut state = self.lock();
        state.choose(None);
        let next = state.running.and_then(|task| state.tasks[task].thread.clone());
        if let Some(next) = next {
            next.unpark();
        }
        while state.tasks.iter().any(|task| task.status != Status::Ended) {
            state = self.all_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
        let state = self.lock();
        Ended {
            problem: state.problem.clone(),
            struck: state.struck.clone(),
            worlds: state.worlds.iter().map(|world| world.is_disturbed).collect(),
            calls: state.calls,
            gave_up: state.gave_up,
            digest: state.digest,
        }
    }

    /// A call of the task `me`: others may go on before it, and faults strike. Unwinds where they killed its process.
    pub fn point(self: &Arc<Self>, me: usize, what: impl Into<String>) {
        if self.is_unwinding(me) {
            return;
        }
        let job = {
            let mut state = self.lock();
            state.note(me, what.into());
            state.strike(me)
        };
        if let Some(job) = job {
            job(self);
        }
        let state = self.lock();
        self.pass(state, Some(me));
        self.leave_if_dead(me);
    }

    /// A file operation of the task `me`: a point, and the error that the operation has, if it has one.
    pub fn operation(self: &Arc<Self>, me: usize, what: &'static str, fails_when_full: bool) -> Option<ErrorKind> {
        if self.is_unwinding(me) {
            return Some(ErrorKind::BrokenPipe);
        }
        {
            let mut state = self.lock();
            let world = state.tasks[me].process.world;
            state.worlds[world].count_operation();
        }
        self.point(me, what);
        let mut state = self.lock();
        let (kind, left) = state.disk?;
        if kind == ErrorKind::StorageFull && !fails_when_full {
            return None;
        }
        state.disk = (left > 1).then_some((kind, left - 1));
        let (struck, world) =
            (if kind == ErrorKind::StorageFull { Kind::DiskFull } else { Kind::DiskError }, state.tasks[me].process.world);
        state.has_struck(struck);
        state.worlds[world].is_disturbed.disk = true;
        Some(kind)
    }

    /// Puts a message into a meeting of a group and returns those of its members, once those are there that are wanted.
    pub fn meet(
        self: &Arc<Self>,
        me: usize,
        group: usize,
        number: u64,
        kind: &'static str,
        wants: Wants,
        message: Message,
    ) -> Vec<Message> {
        self.point(me, kind);
        let mut state = self.lock();
        if let Err(problem) = state.groups.put(group, number, kind, me, message) {
            let names = state.names(group);
            state.fail(format!("{problem} (members: {names})"));
        }
        state.wake();
        state.tasks[me].waits = Some(state.time);
        loop {
            if let Some(messages) = state.groups.take(group, number, wants) {
                state.tasks[me].status = Status::Ready;
                state.tasks[me].waits = None;
                return messages;
            }
            state.tasks[me].status = Status::Meets(group, number, wants);
            self.pass(state, Some(me));
            self.leave_if_dead(me);
            state = self.lock();
        }
    }

    /// The group of those members of a group that passed the same color, and the caller's rank and their number in it.
    pub fn split(&self, me: usize, group: usize, number: u64, color: usize, colors: &[usize]) -> (usize, usize, usize) {
        self.lock().groups.split(me, group, number, color, colors)
    }

    /// Waits until another task has ended.
    pub fn join(&self, me: usize, task: usize) {
        loop {
            let mut state = self.lock();
            if state.tasks[task].status == Status::Ended {
                return;
            }
            state.tasks[me].status = Status::Joins(task);
            self.pass(state, Some(me));
            if !thread::panicking() {
                self.leave_if_dead(me);
            }
        }
    }

    pub fn has_ended(&self, task: usize) -> bool {
        self.lock().tasks[task].status == Status::Ended
    }

    /// Whether a signal asked the process to stop.
    pub fn is_signalled(self: &Arc<Self>, me: usize) -> bool {
        self.point(me, "listens");
        self.is_stopping(me)
    }

    /// Whether the task is being stopped, without a point.
    pub fn is_stopping(&self, me: usize) -> bool {
        self.lock().process_of(me).is_signalled
    }

    /// Whether a checkpoint was asked for.
    pub fn is_urgent(&self, me: usize) -> bool {
        std::mem::take(&mut self.lock().process_of(me).is_urgent)
    }

    /// Limits the later waits of the process for other ranks; 0 sets no limit.
    pub fn limit_waits(&self, me: usize, seconds: u32) {
        self.lock().process_of(me).limit = (seconds > 0).then_some(Duration::from_secs(seconds.into()));
    }

    /// Whether the disk says that the sync of the task `me` is done, and does not do it.
    pub fn lies(&self, me: usize) -> bool {
        let mut state = self.lock();
        let lies = state.lies > 0 && !state.is_dead(me);
        if lies {
            state.lies -= 1;
            state.has_struck(Kind::DiskLies);
            state.remember(Some(me), "-- the sync is not done".into());
        }
        lies
    }

    /// The process's time, which passes at each look.
    pub fn now(&self, me: usize) -> Instant {
        let mut state = self.lock();
        let passed = state.pace * state.random.fraction();
        let process = state.process_of(me);
        process.clock += Duration::from_secs_f64(passed);
        self.base + process.clock
    }

    /// A choice that belongs to no task.
    pub fn below(&self, end: usize) -> usize {
        self.lock().random.below(end)
    }

    /// Ends the world of the task `me`.
    pub fn abort(&self, me: usize, code: i32) -> ! {
        let mut state = self.lock();
        state.note(me, format!("aborts with {code}"));
        let world = state.tasks[me].process.world;
        state.kill(world);
        drop(state);
        resume_unwind(Box::new(Killed))
    }

    /// Records what should never be, and ends the history.
    pub fn fail(&self, problem: String) {
        self.lock().fail(problem);
    }

    fn is_unwinding(&self, me: usize) -> bool {
        thread::panicking() && self.lock().is_dead(me)
    }

    fn leave_if_dead(&self, me: usize) {
        if !thread::panicking() && self.lock().is_dead(me) {
            resume_unwind(Box::new(Killed));
        }
    }

    /// Lets the seed's choice go on, and returns when it is the turn of `me` again.
    fn pass(&self, mut state: MutexGuard<State>, me: Option<usize>) {
        state.choose(me);
        if state.running == me && me.is_some() {
            return;
        }
        let next = state.running.and_then(|task| state.tasks[task].thread.clone());
        if state.running.is_none() {
            self.all_ended.notify_all();
        }
        drop(state);
        if let Some(next) = next {
            next.unpark();
        }
        if let Some(me) = me {
            self.wait_for_turn(me);
        }
    }

    fn wait_for_turn(&self, me: usize) {
        while self.lock().running != Some(me) {
            thread::park();
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut State, name: String, process: Process, body: Box<dyn FnOnce() + Send>) -> usize {
        let me = state.tasks.len();
        let scheduler = self.clone();
        let run = move || {
            CONTEXT.set(Some(Context { scheduler: scheduler.clone(), me }));
            scheduler.wait_for_turn(me);
            let end = catch_unwind(AssertUnwindSafe(|| {
                scheduler.leave_if_dead(me);
                body();
            }));
            CONTEXT.set(None);
            let mut state = scheduler.lock();
            if let Err(panic) = end
                && !panic.is::<Killed>()
            {
                let said = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|said| said.to_string()));
                let name = state.tasks[me].name.clone();
                state.fail(format!("{name} panicked: {}", said.unwrap_or_default()));
            }
            state.tasks[me].status = Status::Ended;
            state.tasks[me].waits = None;
            state.wake();
            scheduler.pass(state, None);
        };
        let handle = thread::Builder::new().name(name.clone()).spawn(run).expect("a thread for a task");
        let thread = Some(handle.thread().clone());
        state.tasks.push(Task { name, process, thread, status: Status::Ready, late: 0, waits: None });
        state.handles.push(handle);
        me
    }
}
