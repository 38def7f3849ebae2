//! Numbers as fields of tables.

use crate::analysis::statistics::Estimate;
use crate::readable::{count, digits};

/// In place of a number that does not exist: no trial reached the goal.
pub const ABSENT: &str = "–";

/// In place of a number that has not been measured yet.
pub const NOT_MEASURED: &str = "·";

/// An estimate in four significant digits, with its interval on a second line.
pub fn interval(estimate: Estimate) -> String {
    rounded(estimate, 4)
}

/// An estimate in three digits, for the many columns of what the theory predicts; its intervals do not say more.
pub fn brief(estimate: Estimate) -> String {
    rounded(estimate, 3)
}

/// The interval of a ratio beside 1 in words, by what a ratio above 1 and one below 1 are called.
pub fn compared(ratio: Estimate, more: &str, fewer: &str) -> String {
    match ratio {
        Estimate { low, .. } if low > 1.0 => format!("so {more}"),
        Estimate { high, .. } if high < 1.0 => format!("so {fewer}"),
        _ => format!("so it may be {more} or {fewer}"),
    }
}

fn rounded(estimate: Estimate, significant: usize) -> String {
    let number = |value: f64| match value {
        infinite if infinite.is_infinite() => "∞".to_owned(),
        whole if (1e3..1e9).contains(&whole) => count(whole.round() as u32),
        value => digits(value, significant),
    };
    match estimate {
        Estimate { value, .. } if value.is_nan() => ABSENT.to_owned(),
        Estimate { value, low, high } if low.is_nan() || high.is_nan() => number(value),
        Estimate { value, low, high } => format!("{}\n[{} … {}]", number(value), number(low), number(high)),
    }
}
