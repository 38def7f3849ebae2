//! Numbers, tables and messages for people to read.

use std::path::Path;
use std::time::{Duration, SystemTime};

use indicatif::HumanCount;

/// A whole number with commas between thousands.
pub fn count(number: impl Into<u64>) -> String {
    HumanCount(number.into()).to_string()
}

/// Declares an enum by its values' meanings (their doc comments), identifiers and names.
macro_rules! called {
    ($(#[$about:meta])+ $kind:ident { $($(#[$meaning:meta])+ $value:ident = $name:literal),+ $(,)? }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $kind { $($(#[$meaning])+ $value),+ }

        impl $kind {
            /// Every value.
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$value),+];

            /// The value's name.
            pub const fn name(self) -> &'static str {
                match self { $($kind::$value => $name),+ }
            }
        }
    };
}

pub(crate) use called;

/// Letters of a line that a terminal shows, at most.
pub const LINE: usize = 80;

/// A number of things, the word in the singular or the plural.
pub fn some(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{} {word}s", count(number as u64)) }
}

/// The verb of so many things that have something.
pub fn have(number: usize) -> &'static str {
    if number == 1 { "has" } else { "have" }
}

/// A text in lines of at most `width` letters; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Four significant digits.
pub fn significant(value: f64) -> String {
    digits(value, 4)
}

/// `count` significant digits; ∞ of an infinite number, and a dash of what is none.
pub fn digits(value: f64, count: usize) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size.is_nan() => "–".to_owned(),
        size if size.is_infinite() => if value > 0.0 { "∞" } else { "−∞" }.to_owned(),
        size if (1e-3..1e4).contains(&size) => {
            let decimals = (count as i32 - 1 - size.log10().floor() as i32).max(0) as usize;
            format!("{value:.decimals$}")
        }
        _ => format!("{value:.0$e}", count - 1),
    }
}

/// Two significant digits, for a sentence: `1,200`, `160`, `0.72`.
pub fn rough(value: f64) -> String {
    if !(100.0..1e12).contains(&value.abs()) {
        return digits(value, 2);
    }
    let unit = 10_f64.powi(value.abs().log10().floor() as i32 - 1);
    let rounded = (value / unit).round() * unit;
    format!("{}{}", if value < 0.0 { "-" } else { "" }, count(rounded.abs() as u64))
}

/// Three significant digits with a decimal prefix: `1.23 GFLOP`.
pub fn si(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 9] = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
    // Rounded before the prefix is chosen: 999.6 is shown as 1.00 k.
    let value: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let last = PREFIXES.len() - 1;
    let thousands = if value >= 1.0 { ((value.log10() / 3.0) as usize).min(last) } else { 0 };
    format!("{} {}{unit}", digits(value / 1000_f64.powi(thousands as i32), 3), PREFIXES[thousands])
}

/// A duration in the two largest units that fit: `3h 20m`, `1 year 2 months`; under a minute in seconds with one decimal.
pub fn duration(seconds: f64) -> String {
    match seconds {
        unknown if !unknown.is_finite() || unknown < 0.0 => "unknown".to_owned(),
        short if short < 59.95 => format!("{short:.1}s"),
        long => {
            let all = humantime::format_duration(Duration::from_secs(long.round() as u64)).to_string();
            all.split(' ').take(2).map(spaced).collect::<Vec<_>>().join(" ")
        }
    }
}

/// The last second of the year 9999, after 1970 began: a moment after it has no text in ISO 8601.
const LAST_MOMENT: Duration = Duration::from_secs(253_402_300_799);

/// A moment in whole seconds, ISO 8601 in UTC; the nearest one from 1970 to 9999, as clocks and files may have any.
pub fn moment(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().min(LAST_MOMENT);
    humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since).to_string()
}

/// A number with its unit, which a space precedes where it is a word: `3h`, `10 days`.
fn spaced(part: &str) -> String {
    let (number, unit) = part.split_at(part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len()));
    if unit.len() == 1 { part.to_owned() } else { format!("{number} {unit}") }
}

/// Rows as lines that begin with `indent`, the first of them headings. Columns of words without a number are aligned to the left, others to
/// the right.
pub fn aligned(rows: &[Vec<String>], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |column: usize| {
        let texts = || rows.iter().filter_map(move |row| row.get(column)).skip(1).filter(|text| !text.is_empty());
        let has = |is_first: fn(char) -> bool| texts().any(|text| text.starts_with(is_first));
        let width = rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
        (width.unwrap_or(0), has(char::is_alphabetic) && !has(|letter| letter.is_ascii_digit()))
    };
    let columns: Vec<(usize, bool)> = (0..columns).map(column).collect();
    let field =
        |(text, &(width, words)): (&String, &(usize, bool))| if words { format!("{text:width$}") } else { format!("{text:>width$}") };
    let line = |row: &Vec<String>| {
        let fields: Vec<String> = row.iter().zip(&columns).map(field).collect();
        format!("{}\n", format!("{indent}{}", fields.join("  ")).trim_end())
    };
    rows.iter().map(line).collect()
}

/// Words as a shell would take them. No word has a NUL character, as neither arguments nor names of files have one.
pub fn shell(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

/// A path as a word of a command, which takes it for no option.
pub fn shell_path(path: &Path) -> String {
    let text = path.display().to_string();
    shell(&[if text.starts_with('-') { format!("./{text}") } else { text }])
}

/// Whether a letter steers the program that shows it: a control character, or one that changes the direction of writing, so that a text looks like
/// another one. Texts of files may hold any.
pub fn steers(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first line of a message, cut to 300 characters, without letters that steer.
pub fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|&letter| !steers(letter)).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0_u32, "0"), (999, "999"), (1_000, "1,000"), (14_000_000, "14,000,000"), (123_456, "123,456")] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn every_moment_has_a_text() {
        let [before, after] =
            [SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(1)), SystemTime::UNIX_EPOCH.checked_add(LAST_MOMENT * 9)];
        assert_eq!(moment(before.unwrap()), "1970-01-01T00:00:00Z");
        assert_eq!(moment(SystemTime::UNIX_EPOCH + Duration::from_millis(951_782_400_900)), "2000-02-29T00:00:00Z");
        assert_eq!(moment(after.unwrap()), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn words_begin_and_numbers_end_in_one_column() {
        let rows =
            [["layer", "parameters", "path"], ["dense", "7,850", ""], ["relu", "·", "plain loops"], ["global mean", "at most", "rows"]];
        let lines = [
            "  layer        parameters  path",
            "  dense             7,850",
            "  relu                  ·  plain loops",
            "  global mean     at most  rows",
        ];
        assert_eq!(aligned(&rows.map(|row| row.map(str::to_owned).to_vec()), "  "), lines.map(|line| format!("{line}\n")).concat());
        assert_eq!(aligned(&[], ""), "");
    }

    #[test]
    fn sentences_have_two_digits() {
        let numbers = [0.0, 0.004_96, 0.716, 1.04, 38.4, 99.6, 155.9, -1_249.0, 28_800.0, 3.2e13];
        assert_eq!(numbers.map(rough), ["0", "0.0050", "0.72", "1.0", "38", "100", "160", "-1,200", "29,000", "3.2e13"]);
    }

    #[test]
    fn three_digits_and_a_prefix() {
        for (value, text) in [
            (0.0, "0 B"),
            (5.0, "5.00 B"),
            (999.4, "999 B"),
            (999.6, "1.00 kB"),
            (62_346.0, "62.3 kB"),
            (9.996e9, "10.0 GB"),
            (1e27, "1000 YB"),
        ] {
            assert_eq!(si(value, "B"), text);
        }
    }

    #[test]
    fn durations_in_two_units() {
        for (seconds, text) in [
            (0.04, "0.0s"),
            (59.9, "59.9s"),
            (59.96, "1m"),
            (3_599.6, "1h"),
            (12_000.0, "3h 20m"),
            (86_400.0 * 10.0 + 7_200.0, "10 days 2h"),
            (86_400.0 * 437.0, "1 year 2 months"),
            (f64::INFINITY, "unknown"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
