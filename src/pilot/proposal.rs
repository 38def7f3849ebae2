//! A pilot's answer: a configuration with comments, the picture of why, and a summary.

use std::path::Path;

use super::choice::{Choice, choose};
use super::corner::{Corner, corners};
use super::design::Part;
use super::document::{Written, changed};
use crate::analysis::{Chart, Whole, whole_curves};
use crate::config::Override;
use crate::optimizer::{Metaparameter, Range, range_as_toml};
use crate::readable::{LINE, aligned, count, digits, some, wrapped};
use crate::records::Trial;
use crate::results::Results;
use crate::settings::{self, Configuration};

/// Letters of a line of comments.
const WIDTH: usize = 118;

/// A proposal.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The configuration, as TOML with comments.
    pub text: String,
    /// The curves, the best of each corner marked.
    pub chart: Chart,
    /// Text for a terminal: the corners, the proposal and notes.
    pub summary: String,
}

/// Proposal by the results of the pilot's studies, for a configuration that was read from `text` with the changes `overrides`. Guessing the most
/// common class misses `guessing` of the validation examples. The picture is called `picture` in the configuration.
///
/// # Errors
/// A sentence, with the picture of the curves, where they show no goal.
pub fn propose(
    configuration: &Configuration,
    (text, overrides): (&str, &[Override]),
    parts: &[Part],
    results: &[Results],
    guessing: u32,
    picture: &Path,
) -> Result<Proposal, (String, Box<Chart>)> {
    let study = &configuration.study;
    let examples = results.first().map_or(0, |results| results.workload.validation_examples);
    let corners = corners(results);
    let choice = choose(study, &corners, examples, guessing)
        .map_err(|problem| (problem, Box::new(chart(&configuration.name, &corners, examples, None))))?;
    let text = document(configuration, text, overrides, &choice, parts, picture);
    let chart = chart(&configuration.name, &corners, examples, Some(&choice));
    let summary = summary(&corners, examples, &choice);
    Ok(Proposal { text, chart, summary })
}

/// The configuration with the proposed values.
fn document(configuration: &Configuration, text: &str, overrides: &[Override], choice: &Choice, parts: &[Part], picture: &Path) -> String {
    let set = |key: &str, value: String| Override::new("dps-train pilot", key, value);
    let mut values: Vec<Written> = overrides.iter().map(|change| Written { change: change.clone(), why: String::new() }).collect();
    let proposed = proposed(choice).into_iter();
    values.extend(proposed.map(|(section, key, value, why)| Written { change: set(&format!("{section}.{key}"), value), why }));
    let sizes: Vec<String> = parts.iter().map(|part| format!("{} steps at batch size {}", count(part.steps), part.batch_size)).collect();
    let points = parts.first().map_or(0, |part| part.trials);
    let mut about = format!(
        "Proposed by dps-train pilot from {} (docs/pilot.md has the rules): goal_error, max_steps, evaluate_every and the ranges of [search], from the \
         curves of {} for {} at the least and the greatest sparsity. {} shows them.",
        configuration.source,
        some(points as usize, "Sobol point"),
        sizes.join(" and "),
        picture.file_name().unwrap_or_default().to_string_lossy()
    );
    choice.notes.iter().for_each(|note| about += &format!(" {note}"));
    let about: String = wrapped(&about.replace(char::is_control, " "), WIDTH).into_iter().map(|line| format!("# {line}\n")).collect();
    let changes: Vec<Override> = values.iter().map(|value| value.change.clone()).collect();
    let wanted = settings::parse(&configuration.name, text, &changes);
    let edited = changed(text, &values).map(|text| format!("{about}\n{text}"));
    // A text that cannot be edited so is written anew, without its comments.
    match (edited, wanted) {
        (Some(edited), Ok(wanted)) => match settings::parse(&configuration.name, &edited, &[]) {
            Ok(read) if read.text == wanted.text => edited,
            _ => format!("{about}\n{}", wanted.text),
        },
        (Some(edited), Err(_)) => edited,
        (None, Ok(wanted)) => format!("{about}\n{}", wanted.text),
        (None, Err(_)) => format!("{about}\n{}", configuration.text),
    }
}

/// The section, the key and the value of each proposal, and why.
fn proposed(choice: &Choice) -> Vec<(&'static str, &'static str, String, String)> {
    let Choice { goal, max_steps, evaluate_every, why: [why_goal, why_steps, why_every], ranges, .. } = choice.clone();
    let mut proposed = vec![
        ("workload", "goal_error", goal.to_string(), why_goal),
        ("workload", "max_steps", max_steps.to_string(), why_steps),
        ("workload", "evaluate_every", evaluate_every.to_string(), why_every),
    ];
    proposed.extend(ranges.into_iter().map(|(name, range, why)| ("search", name.name(), toml(&range), why)));
    proposed
}

/// A range as TOML.
fn toml(Range { min, max, scale }: &Range) -> String {
    let number = |value: f64| if value != 0.0 && value.abs() < 1e-3 { format!("{value:e}") } else { value.to_string() };
    range_as_toml((&number(*min), &number(*max), *scale))
}

/// A curve's metaparameters that differ among the curves of a corner, in words.
fn words(corner: &Corner, curve: &Trial) -> String {
    let differs = |name: Metaparameter| corner.curves.iter().any(|other| other.metaparameters.get(name) != curve.metaparameters.get(name));
    let word = |(name, value): (Metaparameter, f64)| {
        format!("{} {}", name.label(), if name.is_whole() { name.show(value) } else { digits(value, 3) })
    };
    let words: Vec<String> = curve.metaparameters.iter().filter(|(name, _)| differs(*name)).map(word).collect();
    if words.is_empty() { format!("point {}", curve.index) } else { words.join(", ") }
}

/// How the title of a pilot's picture ends.
pub const PICTURE_TITLE: &str = "curves of the pilot";

/// The picture.
fn chart(name: &str, corners: &[Corner], examples: u32, choice: Option<&Choice>) -> Chart {
    let error = |errors: u32| f64::from(errors) / f64::from(examples.max(1));
    let whole = |corner: &Corner| {
        let best = choice.and_then(|choice| {
            let (best, steps) = corner.best(choice.threshold)?;
            let place = corner.curves.iter().position(|curve| curve.index == best.index)?;
            let errors = best.curve.iter().find(|point| point.step == steps)?.errors;
            Some((place, (f64::from(steps), error(errors))))
        });
        let curve = |curve: &Trial| {
            let points = curve.curve.iter().map(|point| (f64::from(point.step), error(point.errors))).collect();
            (points, words(corner, curve))
        };
        Whole { key: corner.key, curves: corner.curves.iter().map(curve).collect(), best }
    };
    let whole: Vec<Whole> = corners.iter().map(whole).collect();
    whole_curves(format!("{name}: {PICTURE_TITLE}"), &whole, choice.map(|choice| choice.goal))
}

/// The corners as a table, then what is proposed.
fn summary(corners: &[Corner], examples: u32, choice: &Choice) -> String {
    let heading = ["batch size", "sparsity", "steps", "least error", "to the goal", "points", "best point"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for corner in corners {
        let best = corner.best(choice.threshold);
        rows.push(vec![
            count(corner.key.batch_size),
            corner.key.sparsity.to_string(),
            count(corner.steps),
            corner.reached_by(1).map_or("none".to_owned(), |errors| digits(f64::from(errors) / f64::from(examples.max(1)), 3)),
            best.map_or("never".to_owned(), |(_, steps)| count(steps)),
            format!("{} of {}", corner.reaching(choice.threshold), corner.curves.len()),
            best.map_or(String::new(), |(curve, _)| words(corner, curve)),
        ]);
    }
    let proposed = proposed(choice).into_iter().map(|(_, key, value, why)| format!("{key} = {value}: {why}"));
    let lines: Vec<String> = proposed.chain(choice.notes.iter().cloned()).collect();
    let lines: String = lines.iter().flat_map(|line| wrapped(line, LINE)).map(|line| line + "\n").collect();
    format!("{}\n{lines}", aligned(&rows, ""))
}
