//! The time that is left.

use std::fmt;

use serde::Serialize;

use crate::readable::duration;

/// The time that is left, in seconds: a median with limits between which it lies in 8 of 10 cases, if the cells are like the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Left {
    /// The time left is as likely more as less.
    pub seconds: f64,
    /// Less in one case of ten.
    pub low: f64,
    /// More in one case of ten.
    pub high: f64,
}

impl Left {
    /// This time with no number above a bound.
    pub fn at_most(self, bound: f64) -> Left {
        Left { seconds: self.seconds.min(bound), low: self.low.min(bound), high: self.high.min(bound) }
    }
}

/// `about 2h 10m (1h 5m to 4h)`.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {} ({} to {})", duration(self.seconds), duration(self.low), duration(self.high))
    }
}
