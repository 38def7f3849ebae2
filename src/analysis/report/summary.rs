//! The studies' verdicts on the paper's claims, as a page in Markdown.

use super::document::{Block, markdown};
use super::numbers::{ABSENT, NOT_MEASURED, brief};
use super::parts::{confirmed_steps, control, fitted, rules, shaped, steps_to_result, to_come, verdicts};
use super::rows::Rows;
use super::section::Section;
use super::table::Table;
use crate::analysis::claims::{PAPERS_OPTIMIZERS, PAPERS_SPARSITIES, Verdict, by_chance, is_papers, papers_batch_sizes};
use crate::analysis::statistics::{ConfirmedCell, FewerTrials, computed, papers_steps, to_end};
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::optimizer::{Metaparameter, OptimizerName};
use crate::readable::{count, digits, some};
use crate::records::{Cell, CellKey};
use crate::settings::ascending;

/// A number of trials that might have been enough.
const FEWER: usize = 30;

/// Share of the choices of fewer trials that find the larger number or fewer steps.
const MOST_CHOICES: f64 = 0.95;

/// A part for each study: its steps-to-result, its claims, its cells with their work, and what is missing; at last the rules.
pub fn summary(sections: &[Section]) -> String {
    let mut blocks: Vec<Block> = sections.iter().flat_map(of_study).collect();
    let findings = || sections.iter().flat_map(|section| &section.claims);
    blocks.push(Block::Heading(2, "The rules".to_owned()));
    blocks.push(Block::Text(format!(
        "Each claim is decided by a rule from 95 % intervals, in brackets above, of the cells that were measured. In all other cases it says \"{}\": the intervals allow \
         both, or what the rule needs was not measured. {}",
        Verdict::Undecided.name(),
        by_chance(findings())
    )));
    blocks.push(Block::List(rules(findings())));
    markdown(&blocks)
}

fn of_study<'a>(section: &'a Section) -> Vec<Block<'a>> {
    let study = section.study;
    let part = |heading: &str| Block::Heading(3, heading.to_owned());
    let mut blocks = vec![Block::Heading(2, study.name())];
    if !section.answer.sentences.is_empty() {
        blocks.push(Block::List(section.answer.sentences.clone()));
    }
    let legend = format!("The fewest steps over a cell's trials. {ABSENT}: no trial reached the goal. {NOT_MEASURED}: not measured.");
    blocks.extend([
        Block::Text(beginning(study)),
        part("Steps-to-result"),
        Block::Table(steps_to_result(&study.grid(), &[])),
        Block::Note(legend),
    ]);
    if !section.confirmed.is_empty() {
        blocks.extend([part("Confirmed steps"), Block::Table(confirmed(&section.confirmed)), Block::Note(CONFIRMED.to_owned())]);
    }
    blocks.extend(fitted(&section.confirmed_fits, brief));
    blocks.extend(shaped(&section.confirmed_fits, brief));
    if let Some(beside) = &section.control {
        blocks.push(part("Beside the study that it is a control of"));
        blocks.extend(control(study, beside, brief));
    }
    let none = || {
        let why = match is_papers(&study.results) {
            true => "None can be decided: no sparsity has a result at three batch sizes.",
            false => "The paper says nothing of this workload.",
        };
        Block::Text(why.to_owned())
    };
    blocks.push(part("Claims"));
    blocks.push(if section.claims.is_empty() { none() } else { Block::Words(verdicts(&section.claims)) });
    // The work of others' cells is not known.
    if is_of_dps(&study.results) {
        blocks.extend([part("Cells"), Block::Table(cells(study, &section.confirmed)), Block::Note(words_on_cells(study))]);
        blocks.extend(missing(study));
    }
    blocks
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
        "Goal: {}. {} of {} measured{trials}; {}.",
        study.goal(),
        count(measured as u64),
        some(all, "cell"),
        some(study.sources.len(), "file")
    )
}

/// The note below the table of confirmed steps.
const CONFIRMED: &str = "The best points of the search, trained again with fresh seeds: the point that one half of the seeds chooses is measured by the other \
                         half. In brackets 95 % intervals. Failed: not there within the limit.";

fn confirmed(cells: &[ConfirmedCell]) -> Table {
    confirmed_steps(Rows::new("confirmed", cells).keyed(|cell| cell.key), brief).table()
}

/// A row a cell: what was found, what fewer trials would have found, and the work.
fn cells(study: &StudyResults, confirmed: &[ConfirmedCell]) -> Table {
    let workload = &study.results.workload;
    // Metaparameters that were searched: all others are the same everywhere.
    let differs = |name: Metaparameter| {
        let mut values = study.results.trials().filter_map(|trial| trial.metaparameters.get(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let shown: Vec<Metaparameter> = Metaparameter::ALL.iter().copied().filter(|&name| differs(name)).collect();
    let budget = papers_steps(workload).unwrap_or(workload.max_steps);
    let has_more = has_more_trials(study);
    let work = |cell: &Cell| {
        let cells = std::slice::from_ref(cell);
        (computed(cells).gradients, to_end(workload, cells, budget).high.gradients)
    };
    let times = |(done, end): (u64, u64)| format!("{} times", digits(end as f64 / done.max(1) as f64, 2));
    let mut rows = Rows::new("cells", &study.results.cells).keyed(|cell| cell.key);
    rows = rows.column("K*", |cell| cell.steps_to_result().map_or(ABSENT.to_owned(), count));
    if !confirmed.is_empty() {
        let again = |cell: &Cell| confirmed.iter().find(|confirmed| confirmed.key == cell.key).map(|again| again.confirmed.mean);
        rows = rows.column("confirmed steps", |cell| again(cell).map_or(NOT_MEASURED.to_owned(), brief));
    }
    rows = rows.best("best trial", &shown);
    if has_more {
        rows = rows.column(&format!("{FEWER} trials find"), |cell| fewer(study, cell));
    }
    rows.column("example-gradients", |cell| count(work(cell).0))
        .column(&format!("all trials to step {}", count(budget)), |cell| times(work(cell)))
        .column("seconds", |cell| format!("{:.0}", cell.seconds))
        .table()
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
         cells: {:.1} hours, {} of the work of that rule.",
        count(end),
        seconds / 3600.0,
        match work / done {
            all if all < 1.05 => "all".to_owned(),
            few if few < 9.95 => format!("1/{few:.1}"),
            many => format!("1/{many:.0}"),
        },
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

/// The cells of [`missing_cells`], and the time that they would probably take.
fn missing(study: &StudyResults) -> Vec<Block<'static>> {
    let missing = missing_cells(study);
    if missing.is_empty() {
        return Vec::new();
    }
    let sizes = |sparsity: f64| {
        let keys = missing.iter().filter(move |key| key.sparsity == sparsity);
        keys.map(|key| count(key.batch_size)).collect::<Vec<_>>().join(", ")
    };
    let sparsities = ascending(missing.iter().map(|key| key.sparsity), f64::total_cmp);
    let items = sparsities.into_iter().map(|sparsity| format!("Sparsity {sparsity}: batch size {}.", sizes(sparsity)));
    let mut blocks = vec![Block::Heading(3, "Not measured".to_owned()), Block::List(items.collect())];
    blocks.extend(to_come(study, &missing).map(|left| Block::Text(format!("They take {left}."))));
    blocks
}
