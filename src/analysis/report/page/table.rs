//! Tables of the page, and estimates as their fields.

use maud::{Markup, html};

use crate::analysis::statistics::Estimate;
use crate::readable::{count, digits};

/// Stands for a number that does not exist.
pub const ABSENT: &str = "–";

/// A table that may be wider than the page. A line break in a field is one on the page.
pub fn table<H: AsRef<str>>(heading: &[H], rows: &[Vec<String>]) -> Markup {
    html! {
        div.wide {
            table {
                thead { tr { @for name in heading { th { (name.as_ref()) } } } }
                tbody {
                    @for row in rows { tr { @for field in row { td { (lines(field)) } } } }
                }
            }
        }
    }
}

fn lines(field: &str) -> Markup {
    html! {
        @for (number, line) in field.split('\n').enumerate() {
            @if number > 0 { br; }
            (line)
        }
    }
}

/// An estimate in four significant digits, with its interval on a second line.
pub fn interval(estimate: Estimate) -> String {
    rounded(estimate, 4)
}

/// An estimate in three digits, for the many columns of what the theory predicts; its intervals do not say more.
pub fn brief(estimate: Estimate) -> String {
    rounded(estimate, 3)
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
