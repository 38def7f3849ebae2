//! Numbers for people to read.

/// A whole number with commas between thousands.
pub fn count(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, the word in the singular or the plural.
pub fn some(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{} {word}s", count(number as u128)) }
}

/// Four significant digits, the way a metaparameter is read aloud.
pub fn significant(value: f64) -> String {
    digits(value, 4)
}

/// So many significant digits.
pub fn digits(value: f64, count: usize) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e-3..1e4).contains(&size) => {
            let decimals = (count as i32 - 1 - size.log10().floor() as i32).max(0) as usize;
            format!("{value:.decimals$}")
        }
        _ => format!("{value:.0$e}", count - 1),
    }
}

/// Three significant digits with a decimal prefix: `1.23 GFLOP`.
pub fn si(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 9] = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
    let mut value = value;
    let mut prefixes = PREFIXES.iter();
    let mut prefix = prefixes.next().unwrap_or(&"");
    // 999.5 would be shown as 1000.
    while value >= 999.5
        && let Some(next) = prefixes.next()
    {
        value /= 1000.0;
        prefix = next;
    }
    // 9.995 would be shown as 10.00, 99.95 as 100.0.
    let digits = if value == 0.0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {prefix}{unit}")
}

/// A duration in the two largest units that fit: `3 h 20 min`, `1 year 72 days`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    const UNITS: [(&str, u64); 5] = [("year", 365 * 86_400), ("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = seconds.round() as u64;
    let first = UNITS.iter().position(|(_, length)| seconds >= *length).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let parts = UNITS.iter().skip(first).take(2).map(|(unit, length)| {
        let whole = rest / length;
        rest %= length;
        if unit.len() > 3 || *unit == "day" { some(whole as usize, unit) } else { format!("{whole} {unit}") }
    });
    parts.collect::<Vec<String>>().join(" ")
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
    fn three_digits_and_a_prefix() {
        for (value, text) in [
            (0.0, "0 B"),
            (5.0, "5.00 B"),
            (999.4, "999 B"),
            (999.6, "1.00 kB"),
            (62_346.0, "62.3 kB"),
            (9.996e9, "10.0 GB"),
            (1e30, "1000000 YB"),
        ] {
            assert_eq!(si(value, "B"), text);
        }
    }

    #[test]
    fn durations_in_two_units() {
        for (seconds, text) in [
            (0.04, "0.0 s"),
            (59.9, "59.9 s"),
            (59.96, "1 min 0 s"),
            (3_599.6, "1 h 0 min"),
            (12_000.0, "3 h 20 min"),
            (86_400.0 * 162.0, "162 days 0 h"),
            (86_400.0 * 437.0, "1 year 72 days"),
            (365.0 * 86_400.0 * 3.5, "3 years 182 days"),
            (f64::INFINITY, "unknown"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
