//! Faults of a run, and when they strike.

use super::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A rank dies, as by `kill -9`; the launcher ends the others, at once or a little later.
    RankDies,
    /// The launcher ends all ranks at once.
    JobDies,
    /// All ranks end at once, and what was not synced may be lost.
    PowerLoss,
    /// A signal to one rank asks the study to stop.
    SignalToOne,
    /// A signal to all ranks, which hear it one after the other.
    SignalToAll,
    /// A signal asks for a checkpoint.
    Urgent,
    /// A rank gets no turn for a while.
    LateRank,
    /// A rank's clock jumps forward.
    ClockJumps,
    /// No thread can be started, which a checkpoint would be written by.
    NoThread,
    /// The disk is full for some operations.
    DiskFull,
    /// Some operations of the disk fail.
    DiskError,
    /// Another job starts on the same study.
    SecondJob,
    /// A process gets no turn for so long that the other ranks reach their deadline, or almost, or for ever.
    StuckRank,
    /// The launcher does not end the other ranks once one is lost.
    LauncherHangs,
    /// The disk says of some syncs that they are done, and does not do them.
    DiskLies,
}

/// Which faults a history may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    First,
    All,
}

impl Kind {
    /// Kinds of faults that the simulation began with.
    pub const FIRST: [Kind; 12] = [
        Kind::RankDies,
        Kind::JobDies,
        Kind::PowerLoss,
        Kind::SignalToOne,
        Kind::SignalToAll,
        Kind::Urgent,
        Kind::LateRank,
        Kind::ClockJumps,
        Kind::NoThread,
        Kind::DiskFull,
        Kind::DiskError,
        Kind::SecondJob,
    ];

    /// Kinds of faults that came later. They are drawn apart, so that a seed has the same faults of the first kinds with and without them.
    pub const LATER: [Kind; 3] = [Kind::StuckRank, Kind::LauncherHangs, Kind::DiskLies];

    pub fn all() -> impl Iterator<Item = Kind> {
        Kind::FIRST.into_iter().chain(Kind::LATER)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::RankDies => "rank dies",
            Kind::JobDies => "job dies",
            Kind::PowerLoss => "power loss",
            Kind::SignalToOne => "signal to one rank",
            Kind::SignalToAll => "signal to all ranks",
            Kind::Urgent => "checkpoint asked for",
            Kind::LateRank => "late rank",
            Kind::ClockJumps => "clock jumps",
            Kind::NoThread => "no thread",
            Kind::DiskFull => "disk full",
            Kind::DiskError => "disk error",
            Kind::SecondJob => "second job",
            Kind::StuckRank => "stuck rank",
            Kind::LauncherHangs => "launcher that hangs",
            Kind::DiskLies => "sync not done",
        }
    }
}

/// When a fault strikes: at so many calls of the run's ranks, or at so many file operations.
#[derive(Debug, Clone, Copy)]
pub enum When {
    Call(u64),
    Operation(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub when: When,
    pub kind: Kind,
    /// The rank that it concerns.
    pub rank: usize,
    /// Number of calls or operations that the fault lasts.
    pub length: u64,
}

/// A refused lock is waited for 0.2 s of real time, so second jobs are rare.
const SECOND_JOB_ONCE_IN: usize = 4;

/// Disturbed runs that have one of the later faults: one in so many.
const LATER_ONCE_IN: usize = 4;

impl Fault {
    /// A fault of the first kinds, for a run of so many ranks.
    pub fn draw(random: &mut Random, ranks: usize) -> Fault {
        let kind = match random.pick(&Kind::FIRST) {
            Kind::SecondJob if !random.once_in(SECOND_JOB_ONCE_IN) => Kind::PowerLoss,
            kind => kind,
        };
        Fault::of(kind, random, ranks)
    }

    /// A later fault, in some runs, with one of the first kinds where it shows nothing alone.
    pub fn draw_later(random: &mut Random, ranks: usize) -> Vec<Fault> {
        if !random.once_in(LATER_ONCE_IN) {
            return Vec::new();
        }
        let mut fault = Fault::of(random.pick(&Kind::LATER), random, ranks);
        let other = match fault.kind {
            Kind::StuckRank => random.once_in(2).then_some(Fault { when: When::Call(0), kind: Kind::LauncherHangs, ..fault }),
            Kind::LauncherHangs => {
                fault.when = When::Call(0);
                Some(Fault::of(Kind::RankDies, random, ranks))
            }
            _ => {
                let begins = random.below(30) as u64;
                fault.when = When::Operation(begins);
                Some(Fault { when: When::Operation(begins + random.below(30) as u64), kind: Kind::PowerLoss, ..fault })
            }
        };
        [Some(fault), other].into_iter().flatten().collect()
    }

    fn of(kind: Kind, random: &mut Random, ranks: usize) -> Fault {
        // Runs have some hundreds of calls and some dozens of operations; each order of magnitude is as likely as the others.
        let spread = |random: &mut Random, most: f64| most.powf(random.fraction()) as u64;
        let when = if random.once_in(2) { When::Call(spread(random, 1500.0)) } else { When::Operation(random.below(50) as u64) };
        Fault { when, kind, rank: random.below(ranks), length: spread(random, 40.0) }
    }
}
