//! The goal error as a question about whole numbers: with how many validation errors a trial is complete.

/// T = ⌊goal · examples⌋: the most validation errors with which a trial is complete.
///
/// The goal means the decimal number a person wrote (0.12), not the nearest binary fraction, so that 0.12 of 6,000 is 720 whatever
/// the floating-point product rounds to. The shortest decimal that reads back as the same `f64` is that number. A goal that is
/// not in (0, 1), which validation refuses, is cut to 0 or `examples`.
pub fn exact_threshold(goal_error: f64, examples: u64) -> u64 {
    if goal_error.is_nan() || goal_error <= 0.0 {
        return 0;
    }
    if goal_error >= 1.0 {
        return examples;
    }
    // At most 17 digits: digits · examples < 10^17 · 2^64 < 2^121.
    let (digits, places) = decimal(goal_error);
    // A power beyond u128 exceeds every product of digits and examples.
    let Some(divisor) = u32::try_from(places).ok().and_then(|places| 10u128.checked_pow(places)) else { return 0 };
    u64::try_from(digits * u128::from(examples) / divisor).unwrap_or(examples)
}

/// The decimal number that a person wrote for a positive `value`: up to 17 digits, and how many of them are behind the point. A negative number of
/// places is so many zeros before it.
pub fn decimal(value: f64) -> (u128, i64) {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}").parse::<u128>().unwrap_or(0);
    (digits, fraction.len() as i64 - exponent.parse::<i64>().unwrap_or(0))
}

/// The most errors that reach the goal by the public code's test, 1 − accuracy ≤ goal, with the accuracy and the difference in 32-bit floating point.
pub fn float32_threshold(goal_error: f64, examples: u64) -> u64 {
    let reached = |errors: u64| f64::from(1.0 - ((examples - errors) as f64 / examples as f64) as f32) <= goal_error;
    // Bisection: the compared error never falls as errors rise. `most` errors always reach the goal, as 0 errors do; `missed` errors never do.
    let (mut most, mut missed) = (0, examples + 1);
    while missed - most > 1 {
        let errors = most + (missed - most) / 2;
        *(if reached(errors) { &mut most } else { &mut missed }) = errors;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_goals_of_the_paper_are_exact() {
        for (goal, examples, threshold) in [(0.02, 6000, 120), (0.12, 6000, 720), (0.14, 6000, 840), (0.4, 5000, 2000), (0.1, 6000, 600)] {
            assert_eq!(exact_threshold(goal, examples), threshold, "{goal} of {examples}");
        }
        // 0.29 · 100 = 28.999999999999996 and 0.57 · 100 = 56.99999999999999 in f64.
        assert_eq!([0.29, 0.57].map(|goal| exact_threshold(goal, 100)), [29, 57]);
    }

    #[test]
    fn the_public_codes_test_accepts_an_error_less_at_one_of_the_papers_goals() {
        for (goal, examples, threshold) in [(0.02, 6000, 120), (0.12, 6000, 719), (0.14, 6000, 840), (0.4, 5000, 2000)] {
            assert_eq!(float32_threshold(goal, examples), threshold, "{goal} of {examples}");
        }
        assert_eq!((float32_threshold(1e-6, 6000), float32_threshold(0.999, 1), float32_threshold(0.5, 0)), (0, 0, 0));
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(exact_threshold(f64::MIN_POSITIVE, u64::MAX), 0);
        assert_eq!(exact_threshold(1.0 - f64::EPSILON / 2.0, u64::MAX), 18_446_744_073_709_549_770);
        assert_eq!([1.0, f64::INFINITY, -0.5, f64::NAN].map(|goal| exact_threshold(goal, 7)), [7, 7, 0, 0]);
    }

    proptest! {
        #[test]
        fn a_written_decimal_means_itself(numerator in 1u64..10_000_000, places in 7u32..15, examples in 0u64..1_000_000_000) {
            let goal = format!("{numerator}e-{places}").parse::<f64>().unwrap();
            let exact = u128::from(numerator) * u128::from(examples) / 10u128.pow(places);
            prop_assert_eq!(u128::from(exact_threshold(goal, examples)), exact);
        }

        #[test]
        fn never_more_than_the_examples(goal in any::<f64>(), examples: u64) {
            prop_assert!(exact_threshold(goal, examples) <= examples);
            prop_assert!(float32_threshold(goal, examples.min(1 << 40)) <= examples);
        }
    }
}
