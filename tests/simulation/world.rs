//! A world: a job, which is the ranks that one launcher started, with what goes wrong in it.

use std::io::ErrorKind;
use std::time::Duration;

use super::faults::{Fault, Kind, When};
use super::scheduler::SecondJob;
use super::state::{State, Task};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    pub world: usize,
    pub rank: usize,
}

/// How a world is to be disturbed, and how it fares.
#[derive(Default)]
pub struct World {
    faults: Vec<Fault>,
    calls: u64,
    operations: u64,
    pub processes: Vec<ProcessState>,
    /// How long a rank may wait for the others, as the study's configuration says.
    pub deadline: Duration,
    /// Whether the launcher leaves the other ranks alone when one is lost.
    launcher_hangs: bool,
    /// All of its processes are killed; before that, at which call they will be.
    pub is_dead: bool,
    pub dies_at: Option<u64>,
    pub is_disturbed: Disturbed,
}

/// Disturbances that may explain a world's end.
#[derive(Default, Clone, Copy, Debug)]
pub struct Disturbed {
    pub killed: bool,
    pub power_lost: bool,
    pub signalled: bool,
    pub disk: bool,
}

#[derive(Default, Clone)]
pub struct ProcessState {
    pub is_dead: bool,
    pub is_signalled: bool,
    pub is_urgent: bool,
    pub clock: Duration,
    /// How long it waits for other ranks, as it was told.
    pub limit: Option<Duration>,
    /// Time until which the process gets no turn.
    pub stuck: Option<Duration>,
}

/// How long a stuck rank is stuck: less than the deadline of a study, more, or for ever.
const STUCK_FOR: [Duration; 3] = [Duration::from_secs(600), Duration::from_secs(2400), Duration::MAX];

impl World {
    pub fn new(ranks: usize, deadline: Duration, faults: Vec<Fault>) -> World {
        World { faults, deadline, processes: vec![ProcessState::default(); ranks], ..World::default() }
    }

    pub fn count_operation(&mut self) {
        self.operations += 1;
    }
}

impl State {
    /// Lets those faults strike that are due in the caller's world; the job to start, if one is.
    pub fn strike(&mut self, me: usize) -> Option<SecondJob> {
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

    pub fn take_fault(&mut self, world: usize, kind: Kind) -> bool {
        let place = self.worlds[world].faults.iter().position(|fault| fault.kind == kind);
        if let Some(place) = place {
            self.worlds[world].faults.remove(place);
            self.has_struck(kind);
        }
        place.is_some()
    }

    fn apply(&mut self, world: usize, fault: Fault) -> Option<SecondJob> {
        let Fault { kind, rank, length, .. } = fault;
        if self.worlds[world].is_dead {
            return None;
        }
        let (calls, time) = (self.calls, self.time);
        // Counted when an operation fails or is not done, and when a rank is lost.
        if !matches!(kind, Kind::DiskFull | Kind::DiskError | Kind::DiskLies | Kind::LauncherHangs) {
            self.has_struck(kind);
        }
        self.remember(None, format!("-- {} ({}, {length})", kind.name(), self.process_name(Process { world, rank })));
        let state = &mut self.worlds[world];
        match kind {
            Kind::RankDies => self.lose_rank(Process { world, rank }, length),
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
                    let when = When::Call(calls + self.random.below(length as usize) as u64);
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
            Kind::DiskLies => self.lies = length,
            Kind::NoThread => {}
            Kind::SecondJob => {
                return self.second_job.clone();
            }
            Kind::StuckRank => state.processes[rank].stuck = Some(time.saturating_add(STUCK_FOR[length as usize % STUCK_FOR.len()])),
            Kind::LauncherHangs => state.launcher_hangs = true,
        }
        None
    }

    /// A rank is lost. The launcher ends the others after so many calls, unless it hangs.
    pub fn lose_rank(&mut self, Process { world, rank }: Process, length: u64) {
        let state = &mut self.worlds[world];
        state.processes[rank].is_dead = true;
        state.is_disturbed.killed = true;
        if state.launcher_hangs {
            self.has_struck(Kind::LauncherHangs);
        } else {
            // Open MPI asks the others to end before it kills them.
            if length.is_multiple_of(2) {
                state.processes.iter_mut().for_each(|process| process.is_signalled = true);
            }
            let dies_at = state.calls + length;
            state.dies_at = Some(state.dies_at.map_or(dies_at, |earlier| earlier.min(dies_at)));
        }
        self.wake();
    }

    pub fn has_struck(&mut self, kind: Kind) {
        *self.struck.entry(kind).or_default() += 1;
    }

    /// Ends all processes of a world.
    pub fn kill(&mut self, world: usize) {
        self.worlds[world].is_dead = true;
        self.worlds[world].is_disturbed.killed = true;
        self.wake();
    }
}
