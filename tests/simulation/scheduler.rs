//! Threads of which one runs at a time. Every call that could reach another thread is a point at which the seed decides who goes on, and what goes
//! wrong.
//!
//! A task is a thread: a rank, or what a rank started beside itself. A world is a job: the ranks that one launcher started. A process is a rank with
//! its threads. Several worlds may run at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::faults::{Fault, Kind, When};
use super::meeting::{Groups, Message, Wants};
use super::random::Random;

/// What a thread unwinds with when its process is killed.
pub struct Killed;

/// Calls of one history; one with more does not end.
const MOST_CALLS: u64 = 300_000;

/// Calls that a problem's account goes back.
const TRACE: usize = 40;

pub struct Scheduler {
    state: Mutex<State>,
    all_ended: Condvar,
    /// What simulated clocks count from.
    base: Instant,
}

/// Starts another job on the study that is under way.
pub type SecondJob = Arc<dyn Fn(&Arc<Scheduler>) + Send + Sync>;

#[derive(Default)]
struct State {
    random: Option<Random>,
    tasks: Vec<Task>,
    worlds: Vec<World>,
    handles: Vec<JoinHandle<()>>,
    running: Option<usize>,
    groups: Groups,
    calls: u64,
    trace: VecDeque<(usize, String)>,
    /// A checksum of all that happened.
    digest: u64,
    problem: Option<String>,
    struck: BTreeMap<Kind, u64>,
    /// The error of the next operations of the disk, and how many they are.
    disk: Option<(ErrorKind, u64)>,
    second_job: Option<SecondJob>,
    /// The seconds that pass at most between two looks at a clock, and how many times out of ten the running task goes on.
    pace: f64,
    stickiness: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    pub world: usize,
    pub rank: usize,
}

struct Task {
    name: String,
    process: Process,
    thread: Option<Thread>,
    status: Status,
    /// Until which call it gets no turn while another task can go on.
    late: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    /// In a meeting: group, number, this member's wants.
    Meets(usize, u64, Wants),
    /// Until another task has ended.
    Joins(usize),
    Ended,
}

/// How a world is to be disturbed, and how it fares.
#[derive(Default)]
pub struct World {
    faults: Vec<Fault>,
    calls: u64,
    operations: u64,
    processes: Vec<ProcessState>,
    /// All of its processes are killed; before that, at which call they will be.
    is_dead: bool,
    dies_at: Option<u64>,
    pub is_disturbed: Disturbed,
}

/// What a world's end may be explained by.
#[derive(Default, Clone, Copy, Debug)]
pub struct Disturbed {
    pub killed: bool,
    pub power_lost: bool,
    pub signalled: bool,
    pub disk: bool,
}

#[derive(Default, Clone)]
struct ProcessState {
    is_dead: bool,
    is_signalled: bool,
    is_urgent: bool,
    clock: Duration,
}

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
    /// That of the calling thread; none of a thread that the scheduler does not know, which a task waits for itself.
    pub fn get() -> Option<Context> {
        CONTEXT.with_borrow(Clone::clone)
    }
}

/// What became of a history's threads.
pub struct Ended {
    pub problem: Option<String>,
    pub struck: BTreeMap<Kind, u64>,
    pub worlds: Vec<Disturbed>,
    pub calls: u64,
    pub digest: u64,
}

impl Scheduler {
    pub fn new(seed: u64) -> Arc<Scheduler> {
        let mut random = Random::new(seed);
        let pace = 10f64.powf(-6.0 + 6.0 * random.fraction());
        let stickiness = random.pick(&[0, 5, 9]);
        let state = State { random: Some(random), pace, stickiness, ..State::default() };
        Arc::new(Scheduler { state: Mutex::new(state), all_ended: Condvar::new(), base: Instant::now() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_second_job(&self, job: SecondJob) {
        self.lock().second_job = Some(job);
    }

    /// Adds a world of ranks; each runs `body` with the numbers of the world, the rank and the group of all ranks.
    pub fn start_world(self: &Arc<Self>, ranks: usize, faults: Vec<Fault>, body: impl Fn(usize, usize, usize) + Send + Sync + 'static) {
        let mut state = self.lock();
        let world = state.worlds.len();
        state.worlds.push(World { faults, processes: vec![ProcessState::default(); ranks], ..World::default() });
        let first = state.tasks.len();
        let group = state.groups.add((first..first + ranks).collect());
        let body = Arc::new(body);
        for rank in 0..ranks {
            let body = body.clone();
            let name = if world == 0 { format!("rank {rank}") } else { format!("rank {rank} of job {world}") };
            state.spawn(self, name, Process { world, rank }, Box::new(move || body(world, rank, group)));
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
        Some(state.spawn(self, name, process, work))
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
            state.worlds[world].operations += 1;
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
        *state.struck.entry(struck).or_default() += 1;
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
        loop {
            if let Some(messages) = state.groups.take(group, number, wants) {
                state.tasks[me].status = Status::Ready;
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

    /// The same, without a point.
    pub fn is_stopping(&self, me: usize) -> bool {
        self.lock().process(me).is_signalled
    }

    /// Whether a checkpoint was asked for.
    pub fn is_urgent(&self, me: usize) -> bool {
        std::mem::take(&mut self.lock().process(me).is_urgent)
    }

    /// The process's time, which passes at each look.
    pub fn now(&self, me: usize) -> Instant {
        let mut state = self.lock();
        let passed = state.pace * state.random().fraction();
        let process = state.process(me);
        process.clock += Duration::from_secs_f64(passed);
        self.base + process.clock
    }

    /// A choice that belongs to no task.
    pub fn below(&self, end: usize) -> usize {
        self.lock().random().below(end)
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
}

impl State {
    fn random(&mut self) -> &mut Random {
        self.random.get_or_insert_with(|| Random::new(0))
    }

    fn process(&mut self, task: usize) -> &mut ProcessState {
        let Process { world, rank } = self.tasks[task].process;
        &mut self.worlds[world].processes[rank]
    }

    fn is_dead(&self, task: usize) -> bool {
        let Process { world, rank } = self.tasks[task].process;
        let world = &self.worlds[world];
        world.is_dead || world.processes[rank].is_dead
    }

    fn spawn(&mut self, scheduler: &Arc<Scheduler>, name: String, process: Process, body: Box<dyn FnOnce() + Send>) -> usize {
        let me = self.tasks.len();
        let scheduler = scheduler.clone();
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
            state.wake();
            scheduler.pass(state, None);
        };
        let handle = thread::Builder::new().name(name.clone()).spawn(run).expect("a thread for a task");
        self.tasks.push(Task { name, process, thread: Some(handle.thread().clone()), status: Status::Ready, late: 0 });
        self.handles.push(handle);
        me
    }

    fn note(&mut self, me: usize, what: String) {
        self.calls += 1;
        for byte in what.bytes().chain((me as u64).to_le_bytes()) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back((me, what));
        if self.calls > MOST_CALLS {
            self.fail(format!("no end after {MOST_CALLS} calls"));
        }
    }

    /// Lets those faults strike that are due in the caller's world; the job to start, if one is.
    fn strike(&mut self, me: usize) -> Option<SecondJob> {
        let world = self.tasks[me].process.world;
        self.worlds[world].calls += 1;
        let World { calls, operations, dies_at, .. } = self.worlds[world];
        if dies_at.is_some_and(|at| calls >= at) {
            self.kill(world);
        }
        let is_due = |fault: &Fault| match fault.when {
            When::Call(at) => calls >= at,
            When::Operation(at) => operations >= at,
        };
        let mut job = None;
        // A world without threads of its own keeps this one for when it starts one.
        while let Some(place) = self.worlds[world].faults.iter().position(|fault| fault.kind != Kind::NoThread && is_due(fault)) {
            let fault = self.worlds[world].faults.remove(place);
            job = self.apply(world, fault).or(job);
        }
        job
    }

    fn take_fault(&mut self, world: usize, kind: Kind) -> bool {
        let place = self.worlds[world].faults.iter().position(|fault| fault.kind == kind);
        if let Some(place) = place {
            self.worlds[world].faults.remove(place);
            *self.struck.entry(kind).or_default() += 1;
        }
        place.is_some()
    }

    fn apply(&mut self, world: usize, fault: Fault) -> Option<SecondJob> {
        let Fault { kind, rank, length, .. } = fault;
        if self.worlds[world].is_dead {
            return None;
        }
        let calls = self.calls;
        // Counted when an operation fails.
        if !matches!(kind, Kind::DiskFull | Kind::DiskError) {
            *self.struck.entry(kind).or_default() += 1;
        }
        self.trace.push_back((0, format!("-- {} (rank {rank}, {length})", kind.name())));
        let state = &mut self.worlds[world];
        match kind {
            Kind::RankDies => {
                state.processes[rank].is_dead = true;
                state.is_disturbed.killed = true;
                // Open MPI asks the others to end before it kills them.
                if length.is_multiple_of(2) {
                    state.processes.iter_mut().for_each(|process| process.is_signalled = true);
                }
                let dies_at = state.calls + length;
                state.dies_at = Some(state.dies_at.map_or(dies_at, |earlier| earlier.min(dies_at)));
                self.wake();
            }
            Kind::JobDies => self.kill(world),
            Kind::PowerLoss => {
                for world in 0..self.worlds.len() {
                    self.worlds[world].is_disturbed.power_lost = true;
                    self.kill(world);
                }
            }
            Kind::SignalToOne => {
                state.processes[rank].is_signalled = true;
                state.is_disturbed.signalled = true;
            }
            Kind::SignalToAll => {
                state.processes[rank].is_signalled = true;
                state.is_disturbed.signalled = true;
                let (calls, ranks) = (state.calls, state.processes.len());
                for other in (0..ranks).filter(|&other| other != rank) {
                    let when = When::Call(calls + self.random().below(length as usize) as u64);
                    self.worlds[world].faults.push(Fault { when, kind: Kind::SignalToOne, rank: other, length });
                }
            }
            Kind::Urgent => state.processes[rank].is_urgent = true,
            Kind::LateRank => {
                let late = |task: &mut Task| task.late = calls + 5 * length;
                self.tasks.iter_mut().filter(|task| task.process == Process { world, rank }).for_each(late);
            }
            Kind::ClockJumps => state.processes[rank].clock += Duration::from_millis(100 * length),
            Kind::DiskFull => self.disk = Some((ErrorKind::StorageFull, length)),
            Kind::DiskError => self.disk = Some((ErrorKind::Other, length)),
            Kind::NoThread => {}
            Kind::SecondJob => {
                return self.second_job.clone();
            }
        }
        None
    }

    /// Ends all processes of a world.
    fn kill(&mut self, world: usize) {
        self.worlds[world].is_dead = true;
        self.worlds[world].is_disturbed.killed = true;
        self.wake();
    }

    fn fail(&mut self, problem: String) {
        if self.problem.is_none() {
            let line = |(me, what): &(usize, String)| match self.tasks.get(*me) {
                Some(task) => format!("\n  {}: {what}", task.name),
                None => format!("\n  {what}"),
            };
            let trace: String = self.trace.iter().map(line).collect();
            self.problem = Some(format!("{problem}\nThe last calls:{trace}"));
        }
        (0..self.worlds.len()).for_each(|world| self.kill(world));
    }

    /// Lets tasks go on that no longer have to wait.
    fn wake(&mut self) {
        for task in 0..self.tasks.len() {
            let may_go_on = match self.tasks[task].status {
                Status::Ready | Status::Ended => false,
                Status::Meets(group, number, wants) => self.is_dead(task) || self.groups.is_there(group, number, wants),
                // A dead process waits for its threads too.
                Status::Joins(other) => self.tasks[other].status == Status::Ended,
            };
            if may_go_on {
                self.tasks[task].status = Status::Ready;
            }
        }
    }

    /// Chooses who runs next.
    fn choose(&mut self, me: Option<usize>) {
        let ready =
            |state: &State| -> Vec<usize> { (0..state.tasks.len()).filter(|&task| state.tasks[task].status == Status::Ready).collect() };
        let mut able = ready(self);
        if able.is_empty() && self.tasks.iter().any(|task| task.status != Status::Ended) {
            // The launcher ends those that wait for a dead rank. Nobody ends others.
            let dying: Vec<usize> =
                (0..self.worlds.len()).filter(|&world| self.worlds[world].dies_at.is_some() && !self.worlds[world].is_dead).collect();
            if dying.is_empty() {
                let account = self.account();
                self.fail(format!("ranks wait for ever: {account}"));
            }
            dying.into_iter().for_each(|world| self.kill(world));
            able = ready(self);
        }
        let calls = self.calls;
        let punctual: Vec<usize> = able.iter().copied().filter(|&task| self.tasks[task].late <= calls).collect();
        let able = if punctual.is_empty() { able } else { punctual };
        let stickiness = self.stickiness;
        self.running = match me.filter(|me| able.contains(me)) {
            Some(me) if self.random().below(10) < stickiness => Some(me),
            _ if able.is_empty() => None,
            _ => Some(self.random().pick(&able)),
        };
    }

    /// Who waits for what.
    fn account(&self) -> String {
        let one = |task: &Task| {
            let what = match task.status {
                Status::Ready => "could go on".into(),
                Status::Ended => "has ended".into(),
                Status::Joins(other) => format!("waits for the {}", self.tasks[other].name),
                Status::Meets(group, number, _) => {
                    let missing = self.groups.missing(group, number);
                    let missing: Vec<&str> = missing.into_iter().map(|task| self.tasks[task].name.as_str()).collect();
                    format!("waits in call {number} of group {group}, {}, for {}", self.groups.kind(group, number), missing.join(", "))
                }
            };
            format!("{} {what}", task.name)
        };
        self.tasks.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn names(&self, group: usize) -> String {
        self.groups.members(group).iter().map(|&task| self.tasks[task].name.as_str()).collect::<Vec<_>>().join(", ")
    }
}
