//! State that all threads of a history share: its tasks, what each waits for, and whose turn it is.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use super::faults::Kind;
use super::meeting::{Groups, Wants};
use super::random::Random;
use super::scheduler::SecondJob;
use super::waits::CALL;
use super::world::{Process, ProcessState, World};

/// Calls of one history; one with more does not end.
const MOST_CALLS: u64 = 300_000;

/// Calls that a problem's account goes back.
const TRACE: usize = 40;

#[derive(Default)]
pub struct State {
    pub random: Random,
    /// Choices beside them.
    pub apart: Random,
    pub tasks: Vec<Task>,
    pub worlds: Vec<World>,
    pub handles: Vec<JoinHandle<()>>,
    pub running: Option<usize>,
    pub groups: Groups,
    pub calls: u64,
    /// The time since the beginning, by a clock that nothing disturbs.
    pub time: Duration,
    trace: VecDeque<(Option<usize>, String)>,
    /// A checksum of all that happened.
    pub digest: u64,
    pub problem: Option<String>,
    pub struck: BTreeMap<Kind, u64>,
    /// The error of the next operations of the disk, and how many they are.
    pub disk: Option<(ErrorKind, u64)>,
    /// How many of the next syncs are not done.
    pub lies: u64,
    /// Processes that ended themselves at their deadline.
    pub gave_up: u64,
    pub second_job: Option<SecondJob>,
    /// The seconds that pass at most between two looks at a clock, and how many times out of ten the running task goes on.
    pub pace: f64,
    pub stickiness: usize,
}

pub struct Task {
    pub name: String,
    pub process: Process,
    pub thread: Option<Thread>,
    pub status: Status,
    /// Number of the call until which the task gets no turn while another task can go on.
    pub late: u64,
    /// Time since which the task waits for other ranks, until it goes on.
    pub waits: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ready,
    /// In a meeting: group, number, this member's wants.
    Meets(usize, u64, Wants),
    /// Until another task has ended.
    Joins(usize),
    Ended,
}

impl State {
    pub fn new(seed: u64) -> State {
        let mut random = Random::new(seed);
        let pace = 10f64.powf(-6.0 + 6.0 * random.fraction());
        let stickiness = random.pick(&[0, 5, 9]);
        State { random, apart: Random::apart(seed), pace, stickiness, ..State::default() }
    }

    pub fn process(&self, process: Process) -> &ProcessState {
        &self.worlds[process.world].processes[process.rank]
    }

    pub fn process_mut(&mut self, process: Process) -> &mut ProcessState {
        &mut self.worlds[process.world].processes[process.rank]
    }

    pub fn process_of(&mut self, task: usize) -> &mut ProcessState {
        let process = self.tasks[task].process;
        self.process_mut(process)
    }

    pub fn is_dead(&self, task: usize) -> bool {
        let Process { world, rank } = self.tasks[task].process;
        let world = &self.worlds[world];
        world.is_dead || world.processes[rank].is_dead
    }

    /// A call of the task `me`.
    pub fn note(&mut self, me: usize, what: String) {
        self.calls += 1;
        self.time += CALL;
        for byte in what.bytes().chain((me as u64).to_le_bytes()) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.remember(Some(me), what);
        if self.calls > MOST_CALLS {
            self.fail(format!("no end after {MOST_CALLS} calls"));
        }
    }

    /// Keeps what a task did, or what happened to tasks, for the account of a problem.
    pub fn remember(&mut self, task: Option<usize>, what: String) {
        while self.trace.len() >= TRACE {
            self.trace.pop_front();
        }
        self.trace.push_back((task, what));
    }

    pub fn fail(&mut self, problem: String) {
        if self.problem.is_none() {
            let line = |(task, what): &(Option<usize>, String)| match task {
                Some(task) => format!("\n  {}: {what}", self.tasks[*task].name),
                None => format!("\n  {what}"),
            };
            let trace: String = self.trace.iter().map(line).collect();
            self.problem = Some(format!("{problem}\nThe last calls:{trace}"));
        }
        (0..self.worlds.len()).for_each(|world| self.kill(world));
    }

    /// Lets tasks go on that no longer have to wait.
    pub fn wake(&mut self) {
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
    pub fn choose(&mut self, me: Option<usize>) {
        let mut able = self.able();
        while able.is_empty() && self.tasks.iter().any(|task| task.status != Status::Ended) {
            self.let_something_happen();
            able = self.able();
        }
        let calls = self.calls;
        let punctual: Vec<usize> = able.iter().copied().filter(|&task| self.tasks[task].late <= calls).collect();
        let able = if punctual.is_empty() { able } else { punctual };
        let stickiness = self.stickiness;
        self.running = match me.filter(|me| able.contains(me)) {
            Some(me) if self.random.below(10) < stickiness => Some(me),
            _ if able.is_empty() => None,
            _ => Some(self.random.pick(&able)),
        };
    }

    /// Tasks that can go on.
    fn able(&self) -> Vec<usize> {
        let is_stuck = |task: usize| !self.is_dead(task) && self.process(self.tasks[task].process).stuck.is_some();
        (0..self.tasks.len()).filter(|&task| self.tasks[task].status == Status::Ready && !is_stuck(task)).collect()
    }

    /// No task can go on.
    fn let_something_happen(&mut self) {
        // The launcher ends those that wait for a dead rank.
        let dying: Vec<usize> =
            (0..self.worlds.len()).filter(|&world| self.worlds[world].dies_at.is_some() && !self.worlds[world].is_dead).collect();
        if !dying.is_empty() {
            dying.into_iter().for_each(|world| self.kill(world));
        } else if !self.pass_time() {
            let forsaken = self.forsaken();
            if forsaken.is_empty() {
                // Nobody ends others.
                let account = self.account();
                self.fail(format!("ranks wait for ever: {account}"));
            }
            forsaken.into_iter().for_each(|world| self.kill(world));
        }
    }

    /// Describes which task waits for what.
    pub fn account(&self) -> String {
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

    pub fn process_name(&self, Process { world, rank }: Process) -> String {
        if world == 0 { format!("rank {rank}") } else { format!("rank {rank} of job {world}") }
    }

    /// The names of a group's members.
    pub fn names(&self, group: usize) -> String {
        self.groups.members(group).iter().map(|&task| self.tasks[task].name.as_str()).collect::<Vec<_>>().join(", ")
    }
}
