//! Record of a start of a study: when, where and by what program it was, and how the start before it had ended.

use serde::{Deserialize, Serialize};

use crate::exit;
use crate::settings::each_once;

/// One start of a study. It decides no result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Start {
    /// The time of the start, in microseconds since 1970 in UTC; 0 where the time is not known. The microseconds tell starts of one second apart
    /// where files are merged.
    pub began: u64,
    /// Number of this start among the study's starts, from 0.
    pub number: u32,
    /// How the start before it had ended.
    pub before: Ending,
    /// Ranks; 0 where that is not known, as of a start by a program that did not record it.
    pub ranks: u32,
    /// Threads a rank.
    pub threads: u32,
    /// Hosts that the ranks were on; 0 where that is not known.
    pub hosts: u32,
    /// Names of the hosts, in order of ranks, with commas between; of many the first ones.
    pub host_names: String,
    /// Version and commit of the program.
    pub program: String,
}

/// Exit code of Open MPI's mpirun that lost a host.
const HOST_LOST: u8 = 205;

/// How a start of a study ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Ending {
    /// There was no start.
    First,
    /// The start measured all that was asked for.
    Finished,
    /// A signal, or the loss of its launcher, stopped it, and it saved what it had.
    Stopped,
    /// A rank or its host was lost, or a rank was stuck, or the ranks disagreed.
    RankLost,
    /// A signal of this number killed its launcher or one of its processes.
    Killed(u8),
    /// The start failed with this exit code.
    Failed(u8),
    /// Nothing says how: it was killed, or its machine was lost, and nobody saw it.
    #[default]
    Unknown,
}

impl Ending {
    /// How a command ended, by the exit code that a shell would have: of a signal's death 128 and its number.
    pub fn of_code(code: u8) -> Ending {
        match code {
            exit::DONE => Ending::Finished,
            exit::STOPPED => Ending::Stopped,
            exit::COMMUNICATION | HOST_LOST => Ending::RankLost,
            // 64 is the highest signal; ssh and Open MPI's mpirun also end with 255.
            129..=192 => Ending::Killed(code - 128),
            _ => Ending::Failed(code),
        }
    }

    /// The ending's name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Ending::First => "first",
            Ending::Finished => "finished",
            Ending::Stopped => "stopped",
            Ending::RankLost => "rank_lost",
            Ending::Killed(_) => "killed",
            Ending::Failed(_) => "failed",
            Ending::Unknown => "unknown",
        }
    }
}

/// Describes an ending in words that follow "after".
impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::First => f.write_str("nothing"),
            Ending::Finished => f.write_str("it was finished"),
            Ending::Stopped => f.write_str("a stop"),
            Ending::RankLost => f.write_str("the loss of a rank"),
            Ending::Killed(signal) => write!(f, "signal {signal} killed it"),
            Ending::Failed(code) => write!(f, "exit code {code}"),
            Ending::Unknown => f.write_str("an end that nobody saw"),
        }
    }
}

/// Causes of starts in words, each once and in the order in which they come first, with how often it comes.
pub fn counted(causes: &[String]) -> Vec<String> {
    let counted = |cause: &String| match causes.iter().filter(|other| *other == cause).count() {
        1 => cause.clone(),
        times => format!("{cause} ({times} times)"),
    };
    each_once(causes.iter().map(counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once_each() {
        let causes = ["a stop", "it was finished", "a stop", "a stop"].map(str::to_owned);
        assert_eq!(counted(&causes), ["a stop (3 times)", "it was finished"]);
        assert_eq!((counted(&causes[..1]), counted(&[])), (vec!["a stop".to_owned()], Vec::new()));
    }
}
