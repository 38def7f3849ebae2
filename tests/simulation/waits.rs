//! Time and deadlines. Time passes a little with each call. Where no task can go on, it jumps to what happens next: a stuck process wakes, or a rank
//! has waited for the others as long as it was told to, and ends itself.

use std::time::Duration;

use super::state::{State, Status};
use super::world::Process;

/// Time of a call.
pub const CALL: Duration = Duration::from_millis(1);

/// How much longer than the deadline a wait may last: a process looks at its clock from time to time.
const LOOK: Duration = Duration::from_secs(1);

enum Next {
    Wakes,
    GivesUp,
}

impl State {
    /// Lets time pass up to what happens next. False: nothing ever does.
    pub fn pass_time(&mut self) -> bool {
        let Some((at, process, next)) = self.next() else { return false };
        let passed = at.saturating_sub(self.time);
        self.time += passed;
        self.worlds.iter_mut().flat_map(|world| &mut world.processes).for_each(|process| process.clock += passed);
        match next {
            _ if self.waits_too_long() => {}
            Next::Wakes => self.wakes(process),
            Next::GivesUp => self.gives_up(process),
        }
        true
    }

    /// Next end of a wait: when, of which process, and whether it wakes or gives up.
    fn next(&self) -> Option<(Duration, Process, Next)> {
        let next = |process: Process| {
            let state = self.process(process);
            match state.stuck {
                // Never.
                Some(Duration::MAX) => None,
                Some(at) => Some((at, process, Next::Wakes)),
                None => Some((self.waiting(process)?.saturating_add(state.limit?), process, Next::GivesUp)),
            }
        };
        self.running_processes().into_iter().filter_map(next).min_by_key(|(at, ..)| *at)
    }

    /// Processes that are alive and have a thread.
    fn running_processes(&self) -> Vec<Process> {
        let mut all: Vec<Process> = Vec::new();
        for task in 0..self.tasks.len() {
            let process = self.tasks[task].process;
            if self.tasks[task].status != Status::Ended && !self.is_dead(task) && !all.contains(&process) {
                all.push(process);
            }
        }
        all
    }

    /// Since when a process waits for other ranks, if it does.
    fn waiting(&self, process: Process) -> Option<Duration> {
        self.tasks.iter().filter(|task| task.process == process).find_map(|task| task.waits)
    }

    /// A process that was stuck gets turns again. Where it has waited too long meanwhile, it ends itself, unless what it waited for is there and it
    /// goes on before it looks at its clock.
    fn wakes(&mut self, process: Process) {
        let name = self.process_name(process);
        self.remember(None, format!("-- {name} wakes after {} s", self.time.as_secs()));
        self.process_mut(process).stuck = None;
        let Some((waits, limit)) = self.waiting(process).zip(self.process(process).limit) else { return };
        let could_go_on = self.tasks.iter().any(|task| task.process == process && task.waits.is_some() && task.status == Status::Ready);
        if self.time - waits > limit && !(could_go_on && self.apart.once_in(2)) {
            self.gives_up(process);
        }
    }

    /// A process has waited for other ranks as long as it was told to, and ends itself.
    fn gives_up(&mut self, process: Process) {
        let (name, deadline) = (self.process_name(process), self.worlds[process.world].deadline);
        let waited = self.time - self.waiting(process).unwrap_or(self.time);
        self.remember(None, format!("-- {name} gives up after {} s", waited.as_secs()));
        self.gave_up += 1;
        if waited < deadline {
            return self.fail(format!("{name} gave up after {} s, expected {} s", waited.as_secs(), deadline.as_secs()));
        }
        let length = self.apart.below(40) as u64;
        self.lose_rank(process, length);
    }

    /// Whether a rank has waited for the others for longer than the configuration allows, which fails the history. A stuck process cannot help it.
    fn waits_too_long(&mut self) -> bool {
        let late = self.running_processes().into_iter().find_map(|process| {
            let waited = self.time - self.waiting(process)?;
            let has_to_wait = self.tasks.iter().any(|task| task.process == process && matches!(task.status, Status::Meets(..)));
            let most = self.worlds[process.world].deadline + LOOK;
            (self.process(process).stuck.is_none() && has_to_wait && waited > most).then_some((process, waited))
        });
        if let Some((process, waited)) = late {
            let (name, deadline, account) = (self.process_name(process), self.worlds[process.world].deadline, self.account());
            let (waited, deadline) = (waited.as_secs(), deadline.as_secs());
            self.fail(format!("{name} waited {waited} s for other ranks, expected {deadline} s at most: {account}"));
        }
        late.is_some()
    }

    /// Worlds of which nothing is left but processes that are stuck for ever, for which nobody waits: a person ends them.
    pub fn forsaken(&self) -> Vec<usize> {
        let running = self.running_processes();
        let is_forsaken = |&world: &usize| {
            let mut theirs = running.iter().filter(|process| process.world == world).peekable();
            theirs.peek().is_some() && theirs.all(|process| self.process(*process).stuck.is_some())
        };
        (0..self.worlds.len()).filter(is_forsaken).collect()
    }
}
