//! The fits of K ≈ c1/B + c2, with what to know of them.

use maud::{Markup, html};

use super::table::{ABSENT, interval, table};
use crate::analysis::statistics::{
    ConfirmedFit, EnoughTrials, Fit, Fitted, LINEAR_EXPONENTS, NEAR, RESAMPLES, Regime, Rival, Shift, beyond_chi_squared,
};
use crate::analysis::studies::StudyResults;
use crate::readable::{count, digits, significant};

const HEADING: [&str; 10] =
    ["sparsity", "points", "c1", "c2", "critical batch size", "exponent", "enough trials", "deviation", "c1 / dense c1", "measured shift"];

/// The fits of a study's sparsities, and what scaling they say.
pub fn fits(study: &StudyResults, fits: &[Fitted]) -> Markup {
    if fits.is_empty() {
        return html! { p { "Nothing to fit yet." } };
    }
    let rows: Vec<Vec<String>> = fits.iter().filter_map(row).collect();
    html! {
        p {
            "K ≈ c1/B + c2 with c1, c2 ≥ 0 by the likelihood of log K, known between two evaluations; in brackets 95 % intervals by parametric bootstrap "
            "(" (count(RESAMPLES)) " resamples of a normal scatter of log K, of which half is that of the other sparsities, stretched by Student's t for few "
            "points). The " b { "critical batch size" }
            " is c1/c2: there the two terms are equal and K is twice its floor. By the fit's local slope d log K / d log B, scaling is "
            b { "linear" } " below −0.95 (B under a 19th of the critical batch size), data parallelism " b { "maximal" }
            " above −0.05 (B over 19 times it), and returns diminish between. The law makes K fall in proportion to small B whatever it does, so "
            "scaling is said to be linear only where the " b { "exponent" } " a of c1/B^a + c2, fitted beside it, lies within " (LINEAR_EXPONENTS.0) " to "
            (LINEAR_EXPONENTS.1) " with its whole interval (profile likelihood)." (rounding(study).unwrap_or_default())
        }
        @if !rows.is_empty() {
            (table(&HEADING, &rows))
            p.faint {
                "Measured shift: geometric mean of K* sparse / K* dense over the batch sizes where both have one, with the smallest and the "
                "largest ratio. The theory predicts c1 / dense c1 for it where scaling is linear. Enough trials: with so many trials a cell, drawn at "
                "random, 95 of 100 fits give a critical batch size at most " (100.0 * NEAR) " % above or below that of all trials; more than 8, say: 8 were "
                "not enough, and of more the trials that were run cannot tell; " (ABSENT) ": a race that ended at K* hides it, or there is none."
            }
        }
        ul {
            @for fitted in fits {
                li {
                    "Sparsity " (fitted.sparsity) ": "
                    @match &fitted.fit {
                        Err(why) => { "no fit; " (why) "." }
                        Ok(fit) => { (regimes(study, fitted, fit)) "." }
                    }
                }
                @if !fitted.left_out.is_empty() {
                    li {
                        "Sparsity " (fitted.sparsity) ": left out, as no trial reached the goal: batch size "
                        (fitted.left_out.iter().map(|size| count(*size)).collect::<Vec<_>>().join(", ")) "."
                    }
                }
            }
        }
    }
}

/// The law beside others; nothing of fewer than six batch sizes.
pub fn laws(fits: &[Fitted], confirmed: &[ConfirmedFit]) -> Markup {
    let by_least = |rival: Rival| fits.iter().filter_map(|fitted| rival.criterion(&fitted.points)).reduce(|a, b| a + b);
    // Criterion, squares and their degrees of freedom, over all sparsities.
    let by_means = |rival: Rival| {
        let of = |one: &ConfirmedFit| {
            let (criterion, squares) = rival.criterion_of_means(&one.fitted.points, &one.variances)?;
            Some((criterion, squares, rival.freedom(one.fitted.points.len())))
        };
        confirmed.iter().filter_map(of).reduce(|a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
    };
    let (paper, paper_of_means) = (by_least(Rival::Paper), by_means(Rival::Paper));
    let over = |criterion: f64, paper: f64| format!("{:+.1}", criterion - paper).replace('-', "−");
    let row = |rival: &Rival| {
        let least = paper.zip(by_least(*rival)).map(|(paper, criterion)| over(criterion, paper));
        let means = paper_of_means
            .zip(by_means(*rival))
            .map(|((paper, ..), (criterion, squares, freedom))| [over(criterion, paper), digits(beyond_chi_squared(squares, freedom), 2)]);
        std::iter::once(rival.name().to_owned()).chain(least).chain(means.into_iter().flatten()).collect::<Vec<_>>()
    };
    let of_means = ["confirmed steps", "goodness of the fit"].into_iter().filter(|_| paper_of_means.is_some());
    let heading: Vec<&str> = std::iter::once("law").chain(paper.map(|_| "K*")).chain(of_means).collect();
    html! {
        @if heading.len() > 1 {
            p {
                "The law beside others: Akaike's criterion for few points (AICc), all sparsities together, less that of c1/B + c2. Where it is above 0 the paper's law "
                "explains the steps better, for the numbers that each fits; by 10 it leaves the other no support."
                @if paper_of_means.is_some() {
                    " Means of confirmed steps have errors, which the criterion takes for the least that they scatter. " b { "Goodness of the fit" }
                    ": how often means with these errors would lie as far from the law, if it held and points were tuned alike."
                }
            }
            (table(&heading, &Rival::ALL.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

/// How coarsely K* is known.
fn rounding(study: &StudyResults) -> Option<String> {
    let every = Some(study.results.workload.evaluate_every).filter(|&every| every > 0)?;
    let lowest = study.results.cells.iter().filter_map(|cell| cell.steps_to_result()).min()?;
    let share = 100.0 * f64::from(every) / f64::from(lowest.max(1));
    Some(format!(
        " K* is known to the next multiple of {every} steps above it, up to {share:.0} % of the lowest K* here: the fit and its intervals take K* as known between two \
         evaluations."
    ))
}

fn row(fitted: &Fitted) -> Option<Vec<String>> {
    let fit = fitted.fit.as_ref().ok()?;
    Some(vec![
        fitted.sparsity.to_string(),
        fit.points.to_string(),
        interval(fit.c1),
        interval(fit.c2),
        interval(fit.critical),
        fitted.exponent.map_or(ABSENT.to_owned(), interval),
        fitted.enough_trials.map_or(ABSENT.to_owned(), EnoughTrials::name),
        format!("{:.1} %", 100.0 * fit.deviation),
        fitted.c1_ratio.map_or(ABSENT.to_owned(), interval),
        fitted.shift.map_or(ABSENT.to_owned(), shift),
    ])
}

fn shift(shift: Shift) -> String {
    format!("{} (n = {})\n[{} … {}]", significant(shift.mean), shift.points, significant(shift.low), significant(shift.high))
}

/// What is said of batch sizes whose regime the interval does not decide.
const UNDECIDED: &str = "undecided";

/// The measured batch sizes of each regime, and whether the critical one was measured.
fn regimes(study: &StudyResults, fitted: &Fitted, fit: &Fit) -> String {
    let sizes: Vec<u32> = study.grid().measured(fitted.sparsity).into_iter().map(|point| point.0).collect();
    let mut parts: Vec<(&str, u32, u32)> = Vec::new();
    for &size in &sizes {
        let name = fitted.regime(size).map_or(UNDECIDED, Regime::name);
        match parts.last_mut().filter(|part| part.0 == name) {
            Some(part) => part.2 = size,
            None => parts.push((name, size, size)),
        }
    }
    let range = |&(name, low, high): &(&str, u32, u32)| match low == high {
        true => format!("{name} at {}", count(low)),
        false => format!("{name} from {} to {}", count(low), count(high)),
    };
    let (low, high) = (sizes.first().copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let critical = fit.critical.value;
    let outside = if (f64::from(low)..=f64::from(high)).contains(&critical) {
        ""
    } else {
        "; the critical batch size lies outside what was measured, so it is an extrapolation"
    };
    let undecided = if parts.iter().any(|part| part.0 == UNDECIDED) {
        "; undecided is where the interval of the critical batch size allows more than one of the three, or that of the exponent a scaling that is not linear"
    } else {
        ""
    };
    parts.iter().map(range).collect::<Vec<_>>().join(", ") + undecided + outside
}
