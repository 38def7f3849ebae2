//! What studies say of the paper's claims, as a page in Markdown.

use super::section::Section;
use super::table::{Table, escaped};
use crate::analysis::claims::{Claim, Finding, PAPERS_SPARSITIES, Verdict, by_chance, papers_batch_sizes, words};
use crate::analysis::statistics::{ConfirmedCell, ConfirmedFit, FewerTrials, computed, half_width, papers_steps, to_end};
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::config::{Metaparameter, OptimizerName};
use crate::forecast::{Forecast, Measured};
use crate::readable::{count, digits, some};
use crate::records::{Cell, CellKey};

/// A number of trials that might have been enough.
const FEWER: usize = 30;

/// Share of the choices of fewer trials that find the larger number or fewer steps.
const MOST_CHOICES: f64 = 0.95;

/// The optimizers of the paper.
const PAPERS_OPTIMIZERS: [OptimizerName; 3] = [OptimizerName::Sgd, OptimizerName::Momentum, OptimizerName::Nesterov];

/// Stands for a number that does not exist.
const ABSENT: &str = "–";

/// Stands for one that was not measured.
const NOT_MEASURED: &str = "·";

/// A part for each study: its steps-to-result, its claims, its cells with their work, and what is missing; at last the rules.
pub fn summary(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let study = section.study;
        text += &format!("## {}\n\n", plain(&study.name()));
        let sentences: String = section.answer.iter().map(|sentence| format!("- {}\n", sentence.replace('*', "\\*"))).collect();
        if !sentences.is_empty() {
            text += &format!("{sentences}\n");
        }
        text += &beginning(study);
        text += &format!("\n### Steps-to-result\n\n{}", steps_to_result(study).markdown());
        text += &format!("\nThe fewest steps over a cell's trials. {ABSENT}: no trial reached the goal. {NOT_MEASURED}: not measured.\n");
        if !section.confirmed.is_empty() {
            text += &format!("\n### Confirmed steps\n\n{}\n{CONFIRMED}", confirmed(&section.confirmed).markdown());
        }
        if !section.confirmed_fits.is_empty() {
            text += &format!("\n{}\n{FITTED}", fitted(&section.confirmed_fits).markdown());
        }
        text += &format!("\n### Claims\n\n{}", claims(&section.claims));
        // The work of others' cells is not known.
        if is_of_dps(&study.results) {
            text += &format!("\n### Cells\n\n{}\n{}", cells(study, &section.confirmed).markdown(), words_on_cells(study));
            text += &missing(study);
        }
        text += "\n";
    }
    text + &rules(sections)
}

/// A text whose letters mean nothing in Markdown.
fn plain(text: &str) -> String {
    escaped(text).chars().flat_map(|letter| "*`[]".contains(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// The goal, and how much of the study is measured.
fn beginning(study: &StudyResults) -> String {
    let measured = study.results.cells.len();
    let all = measured + if is_of_dps(&study.results) { missing_cells(study).len() } else { 0 };
    let numbers = || study.results.cells.iter().map(|cell| cell.trials.len());
    let trials = match (numbers().min(), numbers().max()) {
        (Some(least), Some(most)) if has_trials(&study.results) => {
            format!(", with {}{} each", some(least, "trial"), if least < most { " or more" } else { "" })
        }
        _ => String::new(),
    };
    format!(
        "Goal: {}. {} of {} measured{trials}; {}.\n",
        study.goal(),
        count(measured as u64),
        some(all, "cell"),
        some(study.sources.len(), "file")
    )
}

fn steps_to_result(study: &StudyResults) -> Table {
    let grid = study.grid();
    let heading = std::iter::once("batch size".to_owned()).chain(grid.sparsities.iter().map(|sparsity| format!("sparsity {sparsity}")));
    let steps = |size: u32, sparsity: f64| match grid.cell(size, sparsity) {
        Some(cell) => cell.steps_to_result().map_or(ABSENT.to_owned(), count),
        None => NOT_MEASURED.to_owned(),
    };
    let row = |&size: &u32| std::iter::once(count(size)).chain(grid.sparsities.iter().map(|&sparsity| steps(size, sparsity))).collect();
    Table { name: "steps-to-result", heading: heading.collect(), rows: grid.batch_sizes.iter().map(row).collect() }
}

/// What the table of confirmed steps has.
const CONFIRMED: &str = "The best points of the search, trained again with fresh seeds: the point that one half of the seeds chooses is measured by the other \
                         half. In brackets 95 % intervals. Failed: not there within the limit.\n";

fn confirmed(cells: &[ConfirmedCell]) -> Table {
    let heading = ["batch size", "sparsity", "geometric mean", "median", "9 of 10 are there", "failed", "K* over the mean"];
    let row = |cell: &ConfirmedCell| {
        let ConfirmedCell { key, confirmed, luck, .. } = cell;
        let numbers = [confirmed.mean, confirmed.median, confirmed.nine_of_ten, confirmed.failures].map(words);
        let of_cell = [count(key.batch_size), key.sparsity.to_string()];
        of_cell.into_iter().chain(numbers).chain([luck.map_or(ABSENT.to_owned(), words)]).collect()
    };
    Table { name: "confirmed", heading: heading.map(str::to_owned).to_vec(), rows: cells.iter().map(row).collect() }
}

/// What the table of their fits has.
const FITTED: &str = "The law c1/B + c2 fitted to the means, by their errors; all cells share their seeds, which are drawn again together. Goodness: how often \
                      means with these errors would lie as far from the law, if it held.\n";

fn fitted(fits: &[ConfirmedFit]) -> Table {
    let heading =
        ["sparsity", "batch sizes", "critical batch size", "that over the dense one's", "half-width of its logarithm", "goodness"];
    let row = |confirmed: &ConfirmedFit| {
        let ratio = confirmed.fitted.critical_ratio;
        vec![
            confirmed.fitted.sparsity.to_string(),
            confirmed.fitted.points.len().to_string(),
            confirmed.fit().map_or(ABSENT.to_owned(), |fit| words(fit.critical)),
            ratio.map_or(ABSENT.to_owned(), words),
            ratio.map_or(ABSENT.to_owned(), |ratio| digits(half_width(ratio), 2)),
            digits(confirmed.goodness, 2),
        ]
    };
    Table { name: "confirmed-fits", heading: heading.map(str::to_owned).to_vec(), rows: fits.iter().map(row).collect() }
}

fn claims(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "None can be decided: no sparsity has a result at three batch sizes.\n".to_owned();
    }
    let mut rows = Vec::new();
    for claim in Claim::ALL {
        for (number, finding) in findings.iter().filter(|finding| finding.claim == claim).enumerate() {
            let words = if number == 0 { format!("{} ({})", claim.words(), claim.place()) } else { String::new() };
            rows.push(vec![words, finding.sparsity.to_string(), finding.measured.clone(), finding.says()]);
        }
    }
    let heading = ["claim", "sparsity", "measured", "verdict"].map(str::to_owned).to_vec();
    Table { name: "claims", heading, rows }.markdown()
}

/// A row a cell: what was found, what fewer trials would have found, and the work.
fn cells(study: &StudyResults, confirmed: &[ConfirmedCell]) -> Table {
    let workload = &study.results.workload;
    let trials = || study.results.cells.iter().flat_map(|cell| &cell.trials);
    // Metaparameters that were searched: all others are the same everywhere.
    let differs = |name: Metaparameter| {
        let mut values = trials().filter_map(|trial| trial.metaparameters.get(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let shown: Vec<Metaparameter> = Metaparameter::ALL.iter().copied().filter(|&name| differs(name)).collect();
    let budget = papers_steps(workload).unwrap_or(workload.max_steps);
    let mut heading: Vec<String> = ["batch size", "sparsity", "K*", "best trial"].map(str::to_owned).to_vec();
    if !confirmed.is_empty() {
        heading.insert(3, "confirmed steps".to_owned());
    }
    heading.extend(shown.iter().map(|name| name.title().to_owned()));
    let has_more = has_more_trials(study);
    heading.extend(has_more.then(|| format!("{FEWER} trials find")));
    heading.extend(["example-gradients".to_owned(), format!("all trials to step {}", count(budget)), "seconds".to_owned()]);
    let row = |cell: &Cell| {
        let best = cell.best();
        let mut row = vec![count(cell.key.batch_size), cell.key.sparsity.to_string()];
        row.push(cell.steps_to_result().map_or(ABSENT.to_owned(), count));
        if !confirmed.is_empty() {
            let again = confirmed.iter().find(|confirmed| confirmed.key == cell.key);
            row.push(again.map_or(NOT_MEASURED.to_owned(), |again| words(again.confirmed.mean)));
        }
        row.push(best.map_or(ABSENT.to_owned(), |trial| trial.index.to_string()));
        row.extend(
            shown.iter().map(|name| best.and_then(|trial| Some(name.show(trial.metaparameters.get(*name)?))).unwrap_or(ABSENT.to_owned())),
        );
        row.extend(has_more.then(|| fewer(study, cell)));
        let cells = std::slice::from_ref(cell);
        let (done, end) = (computed(cells).gradients, to_end(workload, cells, budget).high.gradients);
        row.push(count(done));
        row.push(format!("{} times", digits(end as f64 / done.max(1) as f64, 2)));
        row.push(format!("{:.0}", cell.seconds));
        row
    };
    let mut sorted: Vec<&Cell> = study.results.cells.iter().collect();
    sorted.sort_by(|a, b| a.key.sparsity.total_cmp(&b.key.sparsity).then(a.key.batch_size.cmp(&b.key.batch_size)));
    Table { name: "cells", heading, rows: sorted.into_iter().map(row).collect() }
}

/// Whether a cell has so many trials that choices of fewer can be drawn.
fn has_more_trials(study: &StudyResults) -> bool {
    study.results.cells.iter().any(|cell| cell.trials.len() >= FEWER)
}

/// The K* that half and nearly all choices of fewer trials find.
fn fewer(study: &StudyResults, cell: &Cell) -> String {
    if study.hides_others(cell) || cell.trials.len() < FEWER || cell.best().is_none() {
        return ABSENT.to_owned();
    }
    let trials = FewerTrials::new(cell);
    let beyond = study.race_of(cell).factor().map_or("none".to_owned(), |factor| format!("beyond {factor} K*"));
    let [half, most] = [0.5, MOST_CHOICES].map(|share| trials.quantile(FEWER, share).map_or(beyond.clone(), count));
    format!("{half}; {most}")
}

fn words_on_cells(study: &StudyResults) -> String {
    let seconds = study.results.cells.iter().fold(0.0, |sum, cell| sum + cell.seconds);
    let end = papers_steps(&study.results.workload).unwrap_or(study.results.workload.max_steps);
    let work = to_end(&study.results.workload, &study.results.cells, end).high.gradients as f64;
    let done = computed(&study.results.cells).gradients.max(1) as f64;
    let choices = if has_more_trials(study) {
        format!(
            "{FEWER} trials find: of all choices of {FEWER} of a cell's trials, half find the first number of steps or fewer, and 95 of 100 the second. \
             \"beyond\": more steps than that, where the race ended the other trials. "
        )
    } else {
        String::new()
    };
    format!(
        "{choices}All trials to step {}: the example-gradients of the rule by which the paper counts its cost, over those that were computed. All \
         cells: {:.1} hours, {} of the work of that rule.\n",
        count(end),
        seconds / 3600.0,
        if done < work { format!("1/{:.0}", work / done) } else { "all".to_owned() },
    )
}

/// The cells that are not measured: of the paper's grid where the study has a data set, network, optimizer and step budget of the paper, else of the
/// configured grid.
fn missing_cells(study: &StudyResults) -> Vec<CellKey> {
    let workload = &study.results.workload;
    if papers_steps(workload) != Some(workload.max_steps)
        || !PAPERS_OPTIMIZERS.map(OptimizerName::name).contains(&workload.optimizer.as_str())
    {
        return study.missing();
    }
    let grid = study.grid();
    let row = |sparsity: f64| papers_batch_sizes().map(move |batch_size| CellKey { batch_size, sparsity });
    PAPERS_SPARSITIES.into_iter().flat_map(row).filter(|key| grid.cell(key.batch_size, key.sparsity).is_none()).collect()
}

/// The paper's cells that the study does not have, and the time that they would probably take.
fn missing(study: &StudyResults) -> String {
    let missing = missing_cells(study);
    if missing.is_empty() {
        return String::new();
    }
    let mut text = "\n### Not measured\n\n".to_owned();
    let mut sparsities: Vec<f64> = missing.iter().map(|key| key.sparsity).collect();
    sparsities.dedup();
    for sparsity in sparsities {
        let keys: Vec<CellKey> = missing.iter().copied().filter(|key| key.sparsity == sparsity).collect();
        let sizes: Vec<String> = keys.iter().map(|key| count(key.batch_size)).collect();
        text += &format!("- Sparsity {sparsity}: batch size {}.\n", sizes.join(", "));
    }
    let measured: Vec<Measured> = study.results.cells.iter().map(Measured::of).collect();
    let trials = study.results.cells.iter().map(|cell| cell.trials.len()).max().unwrap_or(0);
    if let Some(forecast) = Forecast::new(&measured, &missing.iter().map(|&key| (key, 0.0)).collect::<Vec<_>>(), trials, None) {
        text +=
            &format!("\nBy the seconds of the measured cells, with the same race and on the same machine, they take {}.\n", forecast.left);
    }
    text
}

fn rules(sections: &[Section]) -> String {
    let is_used = |claim: &Claim| sections.iter().flat_map(|section| &section.claims).any(|finding| finding.claim == *claim);
    let rules: String = Claim::ALL
        .into_iter()
        .filter(is_used)
        .map(|claim| format!("- **{}**: {}.\n", claim.words(), claim.rule().replace('*', "\\*")))
        .collect();
    format!(
        "## The rules\n\nEach claim is decided by a rule from 95 % intervals, in brackets above, of the cells that were measured. In all other cases it says \"{}\": the intervals allow \
         both, or what the rule needs was not measured. {}\n\n{rules}",
        Verdict::Undecided.name(),
        by_chance(sections.iter().flat_map(|section| &section.claims))
    )
}
