//! What may go wrong in a run, and when.

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
}

impl Kind {
    pub const ALL: [Kind; 12] = [
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
    /// For how many calls or operations.
    pub length: u64,
}

/// A refused lock is waited for 0.2 s of real time, so second jobs are rare.
const SECOND_JOB_ONCE_IN: usize = 4;

impl Fault {
    /// A fault of a run of so many ranks.
    pub fn draw(random: &mut Random, ranks: usize) -> Fault {
        let kind = match random.pick(&Kind::ALL) {
            Kind::SecondJob if !random.once_in(SECOND_JOB_ONCE_IN) => Kind::PowerLoss,
            kind => kind,
        };
        // Runs have some hundreds of calls and some dozens of operations; each order of magnitude is as likely as the others.
        let spread = |random: &mut Random, most: f64| most.powf(random.fraction()) as u64;
        let when = if random.once_in(2) { When::Call(spread(random, 1500.0)) } else { When::Operation(random.below(50) as u64) };
        Fault { when, kind, rank: random.below(ranks), length: spread(random, 40.0) }
    }
}
