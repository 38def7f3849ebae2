//! The fits of K ≈ c1/B + c2, with what to know of them.

use super::super::document::Block;
use super::super::numbers::{ABSENT, interval};
use super::super::rows::Rows;
use crate::analysis::statistics::{
    ConfirmedFit, EnoughTrials, Fit, Fitted, LINEAR_EXPONENTS, NEAR, RESAMPLES, Regime, Rival, Shift, beyond_chi_squared,
};
use crate::analysis::studies::StudyResults;
use crate::readable::{count, digits, significant};

/// The fits of a study's sparsities, and what scaling they say.
pub fn fits(study: &StudyResults, fits: &[Fitted]) -> Vec<Block<'static>> {
    if fits.is_empty() {
        return vec![Block::Text("Nothing to fit yet.".to_owned())];
    }
    let mut blocks = vec![Block::Text(format!(
        "K ≈ c1/B + c2 with c1, c2 ≥ 0 by the likelihood of log K, known between two evaluations; in brackets 95 % intervals by parametric bootstrap ({} \
         resamples of a normal scatter of log K, of which half is that of the other sparsities, stretched by Student's t for few points). The __critical batch \
         size__ is c1/c2: there the two terms are equal and K is twice its floor. By the fit's local slope d log K / d log B, scaling is __linear__ below \
         −0.95 (B under a 19th of the critical batch size), data parallelism __maximal__ above −0.05 (B over 19 times it), and returns diminish between. The \
         law makes K fall in proportion to small B whatever it does, so scaling is said to be linear only where the __exponent__ a of c1/B^a + c2, fitted \
         beside it, lies within {} to {} with its whole interval (profile likelihood).{}",
        count(RESAMPLES),
        LINEAR_EXPONENTS.0,
        LINEAR_EXPONENTS.1,
        rounding(study).unwrap_or_default()
    ))];
    let fitted: Vec<(&Fitted, &Fit)> = fits.iter().filter_map(|fitted| Some((fitted, fitted.fit.as_ref().ok()?))).collect();
    if !fitted.is_empty() {
        let table = Rows::new("fits", fitted)
            .column("sparsity", |(fitted, _)| fitted.sparsity.to_string())
            .column("points", |(_, fit)| fit.points.to_string())
            .shown("c1", interval, |(_, fit)| Some(fit.c1))
            .shown("c2", interval, |(_, fit)| Some(fit.c2))
            .shown("critical batch size", interval, |(_, fit)| Some(fit.critical))
            .shown("exponent", interval, |(fitted, _)| fitted.exponent)
            .column("enough trials", |(fitted, _)| fitted.enough_trials.map_or(ABSENT.to_owned(), EnoughTrials::name))
            .column("deviation", |(_, fit)| format!("{:.1} %", 100.0 * fit.deviation))
            .shown("c1 / dense c1", interval, |(fitted, _)| fitted.c1_ratio)
            .column("measured shift", |(fitted, _)| fitted.shift.map_or(ABSENT.to_owned(), shift));
        let note = format!(
            "Measured shift: geometric mean of K* sparse / K* dense over the batch sizes where both have one, with the smallest and the largest ratio. The theory \
             predicts c1 / dense c1 for it where scaling is linear. Enough trials: with so many trials a cell, drawn at random, 95 of 100 fits give a critical \
             batch size at most {} % above or below that of all trials; more than 8, say: 8 were not enough, and of more the trials that were run cannot tell; \
             {ABSENT}: a race that ended at K* hides it, or there is none.",
            100.0 * NEAR
        );
        blocks.extend([Block::Table(table.table()), Block::Note(note)]);
    }
    let mut items = Vec::new();
    for fitted in fits {
        let says = fitted.fit.as_ref().map_or_else(|why| format!("no fit; {why}"), |fit| regimes(study, fitted, fit));
        items.push(format!("Sparsity {}, by K*: {says}.", fitted.sparsity));
        if !fitted.left_out.is_empty() {
            let sizes = fitted.left_out.iter().map(|size| count(*size)).collect::<Vec<_>>().join(", ");
            items.push(format!("Sparsity {}: left out, as no trial reached the goal: batch size {sizes}.", fitted.sparsity));
        }
    }
    blocks.push(Block::List(items));
    blocks
}

/// Text on the table of laws.
const LAWS: &str = "The law beside others: Akaike's criterion for few points (AICc), all sparsities together, less that of c1/B + c2. Where it is above 0 the \
                    paper's law explains the steps better, for the numbers that each fits; by 10 it leaves the other no support.";

/// Text added where laws are fitted to confirmed steps.
const LAWS_OF_MEANS: &str = " Means of confirmed steps have standard errors, which the criterion takes for the least that they scatter. __Goodness of the fit__: how often \
                             means with these standard errors would lie as far from the law, if it held and points were tuned alike.";

/// The law beside others; nothing of fewer than six batch sizes.
pub fn laws(fits: &[Fitted], confirmed: &[ConfirmedFit]) -> Vec<Block<'static>> {
    let by_least = |rival: Rival| fits.iter().filter_map(|fitted| rival.criterion(&fitted.points)).reduce(|a, b| a + b);
    // Criterion, squares and their degrees of freedom, over all sparsities.
    let by_means = |rival: Rival| {
        let of = |one: &ConfirmedFit| {
            let (criterion, squares) = rival.criterion_of_means(&one.fitted.points)?;
            Some((criterion, squares, rival.freedom(one.fitted.points.len())))
        };
        confirmed.iter().filter_map(of).reduce(|a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
    };
    let over = |criterion: f64, paper: f64| format!("{:+.1}", criterion - paper).replace('-', "−");
    let mut table = Rows::new("laws", Rival::ALL).column("law", |rival| rival.name().to_owned());
    let mut text = LAWS.to_owned();
    let (paper, paper_of_means) = (by_least(Rival::Paper), by_means(Rival::Paper));
    if let Some(paper) = paper {
        table = table.column("K*", |&rival| by_least(rival).map_or(String::new(), |criterion| over(criterion, paper)));
    }
    if let Some((paper, ..)) = paper_of_means {
        let goodness = |(_, squares, freedom)| digits(beyond_chi_squared(squares, freedom), 2);
        table = table
            .column("confirmed steps", |&rival| by_means(rival).map_or(String::new(), |(criterion, ..)| over(criterion, paper)))
            .column("goodness of the fit", |&rival| by_means(rival).map_or(String::new(), goodness));
        text += LAWS_OF_MEANS;
    }
    if paper.is_none() && paper_of_means.is_none() {
        return Vec::new();
    }
    vec![Block::Text(text), Block::Table(table.table())]
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

fn shift(Shift { ratio, points }: Shift) -> String {
    format!("{} (n = {points})\n[{} … {}]", significant(ratio.value), significant(ratio.low), significant(ratio.high))
}

/// Name in place of a regime for batch sizes whose regime the interval does not decide.
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
