//! The race: how long the trials of a cell go on once one of them has reached the goal.

use serde::{Serialize, Serializer};

use crate::config::kind::Kind;
use crate::config::tree::Value;
use crate::settings::goal::decimal;

/// When the race of a cell's trials ends them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Race {
    /// There is none: each trial runs to its own end.
    Off,
    /// At so many times the cell's steps-to-result; at least 1.
    Until(f64),
}

/// Most times a cell's steps-to-result.
const MOST: f64 = 1e6;

impl Race {
    /// The step at which trials end that have not ended by themselves, where the fewest steps to the goal are `best` and evaluations come every
    /// `every` steps: the first evaluation at the race's length or after it. None without a race.
    pub fn last_step(self, best: u32, every: u32) -> Option<u32> {
        let Race::Until(factor) = self else { return None };
        // A factor from 1 to a million has at most 16 places, and six zeros.
        let (digits, places) = decimal(factor);
        let power = |places: i64| 10u128.pow(places.clamp(0, 16) as u32);
        let evaluations = (digits * power(-places) * u128::from(best)).div_ceil(power(places) * u128::from(every));
        Some(u32::try_from(evaluations).unwrap_or(u32::MAX).saturating_mul(every).max(best))
    }

    /// How many times a cell's steps-to-result its trials go on for. None without a race.
    pub fn factor(self) -> Option<f64> {
        if let Race::Until(factor) = self { Some(factor) } else { None }
    }
}

/// Writes the race as TOML has it.
impl Serialize for Race {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Race::Off => serializer.serialize_bool(false),
            Race::Until(1.0) => serializer.serialize_bool(true),
            Race::Until(factor) => serializer.serialize_f64(factor),
        }
    }
}

/// The values that a race may have.
pub(super) struct RaceLength;

impl Kind for RaceLength {
    type Value = Race;

    fn expected(&self) -> String {
        format!("true, false or a number from 1 to {MOST}")
    }

    fn accept(&self, value: &Value) -> Option<Race> {
        let factor = match value {
            Value::Flag(race) => return Some(if *race { Race::Until(1.0) } else { Race::Off }),
            Value::Integer(integer) => *integer as f64,
            Value::Number(number) => *number,
            _ => return None,
        };
        (1.0..=MOST).contains(&factor).then_some(Race::Until(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_ends_at_an_evaluation() {
        assert_eq!(Race::Off.last_step(32, 16), None);
        assert_eq!(Race::Until(1.0).last_step(32, 16), Some(32));
        assert_eq!(Race::Until(1.5).last_step(32, 16), Some(48));
        assert_eq!(Race::Until(1.6).last_step(32, 16), Some(64));
        assert_eq!(Race::Until(1.1).last_step(50, 1), Some(55));
        assert_eq!(Race::Until(1.1).last_step(200, 20), Some(220));
        assert_eq!(Race::Until(2.2).last_step(100, 1), Some(220));
        assert_eq!(Race::Until(1.1 + 1e-9).last_step(50, 1), Some(56));
        assert_eq!(Race::Until(1e6).last_step(u32::MAX / 2, 1), Some(u32::MAX));
    }
}
