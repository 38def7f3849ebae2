//! The rules by which a pilot's curves decide what is proposed. docs/pilot.md states them, with the constants of this file.

use super::corner::{Corner, least_within};
use crate::analysis::share;
use crate::optimizer::{Metaparameter, Range, Scale};
use crate::readable::{count, some};
use crate::settings::Study;

/// Part of each corner's points that reach the goal, at least.
const POINTS: f64 = 1.0 / 3.0;

/// Share of a corner's steps: a goal that the best curve of the corner reaches earlier is too easy.
const EARLIEST: f64 = 0.3;

/// Part of the errors of guessing the most common class above which a curve has learned nothing.
const LEARNED: f64 = 0.9;

/// Evaluations until the least expected steps-to-result of the largest batch size, about.
const EVALUATIONS: u32 = 50;

/// Fewest steps between two evaluations, unless fewer than [`FEWEST_EVALUATIONS`] evaluations would be left.
const CLOSEST: u32 = 8;

/// Evaluations until the least expected steps-to-result, at least.
const FEWEST_EVALUATIONS: u32 = 8;

/// `max_steps` as a multiple of the expected steps-to-result of the slowest corner.
const SPARE: u32 = 4;

/// Share of a range at each end in which a best point widens it. Eight Sobol points leave an eighth at each end.
const EDGE: f64 = 0.15;

/// How far a range on a logarithmic scale is widened.
const FACTOR: f64 = 10.0;

/// Most digits of a goal.
const MOST_DIGITS: i32 = 6;

/// Proposal of goal, steps, interval and ranges, with reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The goal error.
    pub goal: f64,
    /// Most validation errors with which it is reached.
    pub threshold: u32,
    /// The step budget.
    pub max_steps: u32,
    /// Steps between evaluations.
    pub evaluate_every: u32,
    /// Why these three, a sentence each.
    pub why: [String; 3],
    /// Each searched range as proposed, and why.
    pub ranges: Vec<(Metaparameter, Range, String)>,
    /// Problems that the proposal could not solve, a sentence each.
    pub notes: Vec<String>,
}

/// Proposal for `study` by the curves of `corners`, on so many validation examples of which guessing the most common class misses `guessing`.
///
/// # Errors
/// A sentence, where a corner has no curve that learned anything, or no goal lies below what its curves begin with.
pub(super) fn choose(study: &Study, corners: &[Corner], examples: u32, guessing: u32) -> Result<Choice, String> {
    let mut notes = Vec::new();
    let learned = (LEARNED * f64::from(guessing)).floor() as u32;
    let mut hardest = 0;
    for corner in corners {
        let wanted = ((POINTS * corner.curves.len() as f64).ceil() as usize).max(1);
        // Fewer points, where so many have not learned anything.
        let reached = |number: usize| corner.reached_by(number).filter(|&errors| errors <= learned).map(|errors| (number, errors));
        let Some((number, errors)) = (1..=wanted).rev().find_map(reached) else {
            return Err(format!(
                "expected a curve with an error of at most {:.2} at {}, found none within {} steps, where guessing has {:.2}; give more --steps or \
                 --trials, or other search ranges, with --fresh",
                f64::from(learned) / f64::from(examples.max(1)),
                corner.key,
                count(corner.steps),
                f64::from(guessing) / f64::from(examples.max(1)),
            ));
        };
        if number < wanted {
            let (of, reach) = (corner.curves.len(), if number == 1 { "reaches" } else { "reach" });
            notes.push(format!(
                "At {} only {number} of {} {reach} the goal, fewer than a third: search ranges nearer to the best points find more.",
                corner.key,
                some(of, "point")
            ));
        }
        hardest = hardest.max(errors);
    }
    let before = |corner: &Corner| corner.curves.iter().filter_map(|curve| least_within(curve, EARLIEST * f64::from(corner.steps))).min();
    let easiest = corners.iter().filter_map(before).min().unwrap_or(u32::MAX);
    let (goal, threshold) = rounded(study, hardest, easiest, examples);

    let (mut expected, mut early) = (Vec::new(), Vec::new());
    for corner in corners {
        let Some((_, steps)) = corner.best(threshold) else { continue };
        expected.push((corner.key, steps));
        let share = f64::from(steps) / f64::from(corner.steps.max(1));
        if share <= EARLIEST {
            early.push(format!("{} ({:.0} % of {})", corner.key, 100.0 * share, count(corner.steps)));
        }
    }
    if !early.is_empty() {
        notes.push(format!(
            "Early, within {:.0} % of its steps, the best curve reaches the goal at {}. Too few points elsewhere reach a harder one: more --steps, or ranges \
             nearer to the best points, may show one, with --fresh.",
            100.0 * EARLIEST,
            early.join("; ")
        ));
    }
    let largest = corners.iter().map(|corner| corner.key.batch_size).max();
    let quickest = expected.iter().filter(|(key, _)| Some(key.batch_size) == largest).min_by_key(|(_, steps)| *steps);
    let slowest = expected.iter().max_by_key(|(_, steps)| *steps);
    let (Some(&(quick, least)), Some(&(slow, most))) = (quickest, slowest) else {
        return Err("expected curves that reach a goal, found none; give more --steps or --trials, with --fresh".to_owned());
    };
    let evaluate_every = interval(least);
    let max_steps = most.saturating_mul(SPARE).div_ceil(evaluate_every).saturating_mul(evaluate_every);
    let share = corners.iter().map(|corner| format!("{} of {}", corner.reaching(threshold), corner.curves.len()));
    let why = [
        format!(
            "At most {} of {} errors. Points that reach it, by corner: {}.",
            count(threshold),
            count(examples),
            share.collect::<Vec<_>>().join(", ")
        ),
        format!("{SPARE} times the {} steps that {slow} is expected to take.", count(most)),
        format!(
            "{} until the {} steps that {quick} is expected to take.",
            some((least / evaluate_every) as usize, "evaluation"),
            count(least)
        ),
    ];
    Ok(Choice { goal, threshold, max_steps, evaluate_every, why, ranges: ranges(study, corners, threshold, max_steps), notes })
}

/// The goal, and its threshold. The goal is the shortest decimal from two significant digits on whose threshold is at least `hardest` errors and
/// below `easiest`, which curves reach too early. Where no decimal is so, the goal is the shortest that allows `hardest` errors.
fn rounded(study: &Study, hardest: u32, easiest: u32, examples: u32) -> (f64, u32) {
    let (total, hardest) = (f64::from(examples.max(1)), hardest.max(1));
    let exact = f64::from(hardest) / total;
    let power = exact.log10().floor() as i32;
    let goal = |digits: i32| {
        let places = digits - 1 - power;
        let scale = 10f64.powi(places);
        // The division's rounding may not lift a goal by a digit.
        format!("{:.*}", places.max(0) as usize, (exact * scale - 1e-9).ceil() / scale).parse::<f64>().unwrap_or(exact)
    };
    let threshold = |goal: f64| {
        let workload = crate::settings::Workload { goal_error: goal, ..study.workload.clone() };
        workload.goal_threshold(examples.into()) as u32
    };
    let candidates = (2..=MOST_DIGITS).map(goal).filter(|goal| *goal < 1.0).map(|goal| (goal, threshold(goal)));
    let candidates: Vec<(f64, u32)> = candidates.filter(|&(_, errors)| errors >= hardest).collect();
    let within = candidates.iter().find(|&&(_, errors)| errors < easiest);
    within.or(candidates.first()).copied().unwrap_or_else(|| {
        // One error more makes up for a comparison that rounds.
        let goal = (f64::from(hardest) + 1.0) / (total + 1.0);
        (goal, threshold(goal))
    })
}

/// Steps between evaluations, where the quickest corner is expected to take so many.
fn interval(least: u32) -> u32 {
    let about = (f64::from(least) / f64::from(EVALUATIONS)).round() as u32;
    about.max(CLOSEST.min(least / FEWEST_EVALUATIONS)).max(1)
}

/// The searched ranges, widened where the best point of a corner lies at their edge; and whether ranges of steps lie beyond those of a trial.
fn ranges(study: &Study, corners: &[Corner], threshold: u32, max_steps: u32) -> Vec<(Metaparameter, Range, String)> {
    let proposed = |(name, range): (Metaparameter, Range)| {
        let best: Vec<f64> =
            corners.iter().filter_map(|corner| corner.best(threshold)).filter_map(|(curve, _)| curve.metaparameters.get(name)).collect();
        let at = |is_edge: &dyn Fn(f64) -> bool| best.iter().any(|&value| share(&range, value).is_some_and(is_edge));
        let (low, high) = (at(&|share| share < EDGE), at(&|share| share > 1.0 - EDGE));
        let Range { min, max, scale } = range;
        let (below, above) = beyond(&range);
        let limit = |is_edge: bool, limit: f64, wider: f64| if is_edge { name.nearest(wider).unwrap_or(limit) } else { limit };
        let wider = Range { min: limit(low, min, below), max: limit(high, max, above), scale };
        let values: Vec<String> = best.iter().map(|&value| name.show(value)).collect();
        let why = match (low || high, wider == range) {
            (false, _) => "kept",
            (true, true) => "at an edge, but nothing lies beyond it",
            (true, false) => "widened, as a best point lies at an edge",
        };
        let is_beyond = scale == Scale::Integer && wider.min >= f64::from(max_steps);
        let too_long = if is_beyond {
            format!("; all of the range lies beyond a trial's {} steps, lower it", count(max_steps))
        } else {
            String::new()
        };
        (name, wider, format!("Best points, by corner: {}; {why}{too_long}.", values.join(", ")))
    };
    study.search.ranges().map(proposed).collect()
}

/// The limits of a range that reaches further at both ends.
fn beyond(range: &Range) -> (f64, f64) {
    let Range { min, max, scale } = *range;
    // Without the last digits, in which factors of ten leave rounding errors.
    let tidy = |value: f64| format!("{value:.6e}").parse().unwrap_or(value);
    let near_one = |distance: f64| 1.0 - tidy(distance);
    match scale {
        Scale::Log => (tidy(min / FACTOR), tidy(max * FACTOR)),
        Scale::ReverseLog => (tidy(near_one((1.0 - min) * FACTOR)), near_one((1.0 - max) / FACTOR)),
        Scale::Linear => (tidy(min - (max - min) / 2.0), tidy(max + (max - min) / 2.0)),
        Scale::Integer => ((min - (max - min) / 2.0).round(), (max + (max - min) / 2.0).round()),
    }
}
