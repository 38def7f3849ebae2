//! Studies, their cells and fits.

use std::collections::BTreeMap;

use super::super::numbers::NOT_MEASURED;
use super::super::rows::{Rows, optional};
use super::super::section::Section;
use super::super::table::Table;
use crate::analysis::statistics::{ConfirmedCell, EnoughTrials, Estimate, Fit, Fitted, Regime, answering};
use crate::analysis::studies::{StudyResults, has_trials, is_of_dps};
use crate::optimizer::Metaparameter;
use crate::records::{Cell, CellKey};
use crate::results::{CellRow, Environment};
use crate::settings::each_once;

/// Workloads of studies, and where they were run; several places are joined by semicolons. A row a study.
pub(super) fn studies(sections: &[Section], digests: &BTreeMap<String, String>) -> Table {
    let sums =
        |study: &StudyResults| study.sources.iter().map(|source| digests.get(source).cloned().unwrap_or_default()).collect::<Vec<_>>();
    // In others' measurements 0 stands for what they do not say.
    let known = |study: &StudyResults, number: u32| optional(Some(number).filter(|&number| number > 0 || is_of_dps(&study.results)));
    let configured = |study: &StudyResults| study.configuration.as_ref().ok().cloned();
    let races = |study: &StudyResults| {
        let races = study.races.iter().map(|race| race.factor().map_or("false".to_owned(), |factor| factor.to_string()));
        races.collect::<Vec<_>>().join("; ")
    };
    Rows::new("studies", sections.iter().map(|section| section.study))
        .column("study", |study| study.slug.clone())
        .column("files", |study| study.sources.join("; "))
        .column("files_sha256", |study| sums(study).join("; "))
        .column("dataset", |study| study.results.workload.dataset.clone())
        .column("network", |study| study.results.workload.network.clone())
        .column("optimizer", |study| study.results.workload.optimizer.clone())
        .column("schedule", |study| study.results.workload.schedule.clone())
        .column("goal_error", |study| study.results.workload.goal_error.to_string())
        .column("goal_threshold", |study| known(study, study.results.workload.goal_threshold))
        .column("validation_examples", |study| known(study, study.results.workload.validation_examples))
        .column("test_examples", |study| known(study, study.results.workload.test_examples))
        .column("max_steps", |study| known(study, study.results.workload.max_steps))
        .column("evaluate_every", |study| known(study, study.results.workload.evaluate_every))
        .column("parameters", |study| known(study, study.results.workload.parameters))
        .column("criterion", |study| optional(configured(study).map(|study| study.pruning.criterion)))
        .column("shuffle", |study| optional(configured(study).map(|study| study.pruning.shuffle)))
        .column("reinitialise", |study| optional(configured(study).map(|study| study.pruning.reinitialise)))
        .column("race", |study| races(study))
        .column("data_sha256", |study| of_all(study, |environment| &environment.data_digest))
        .column("program_version", |study| of_all(study, |environment| &environment.program_version))
        .column("device", |study| of_all(study, |environment| &environment.device))
        .table()
}

/// The distinct texts of all environments of a study.
fn of_all(study: &StudyResults, of: fn(&Environment) -> &String) -> String {
    // A file that was merged names several itself.
    each_once(study.environments.iter().flat_map(|environment| of(environment).split("; "))).join("; ")
}

/// A cell of a study; it has no record while it is still to come.
struct Place<'a> {
    key: CellKey,
    cell: Option<&'a Cell>,
    fitted: Option<&'a Fitted>,
    confirmed: Option<&'a ConfirmedCell>,
}

impl<'a> Place<'a> {
    /// The cells of a study by sparsity, then batch size.
    fn all(section: &'a Section) -> Vec<Place<'a>> {
        let (fits, _) = answering(section.fits, &section.confirmed_fits);
        let fitted = |key: CellKey| fits.iter().copied().find(|fitted| fitted.sparsity == key.sparsity && fitted.fit.is_ok());
        let again = |key: CellKey| section.confirmed.iter().find(|confirmed| confirmed.key == key);
        let of_cell = |cell: &'a Cell| Place { key: cell.key, cell: Some(cell), fitted: fitted(cell.key), confirmed: again(cell.key) };
        let mut places: Vec<Place> = section.study.results.cells.iter().map(of_cell).collect();
        places.extend(section.study.missing().into_iter().map(|key| Place { key, cell: None, fitted: None, confirmed: None }));
        places.sort_by(|a, b| a.key.by_sparsity(&b.key));
        places
    }
}

/// Columns of `/cells` that the table of cells has where the trials are known.
const TRIED: [&str; 5] = ["complete", "incomplete", "infeasible", "censored", "best_trial"];

/// Columns of `/cells` that the table of cells has otherwise, or not at all.
const TOLD_OTHERWISE: [&str; 6] = ["batch_size", "sparsity", "trials", "steps_to_result", "test_errors", "test_error"];

/// A row a cell, `shown` being the metaparameters that any trial has.
pub(super) fn cells(sections: &[Section], shown: &[Metaparameter]) -> Table {
    type Of<'a> = (&'a StudyResults, Place<'a>);
    let measured = |place: &Place, field: String, to_come: &str| if place.cell.is_some() { field } else { to_come.to_owned() };
    let regime = |place: &Place| place.fitted.map_or("", |fitted| fitted.regime(place.key.batch_size).map_or("undecided", Regime::name));
    fn tried<'a>((study, place): &Of<'a>) -> Option<&'a Cell> {
        place.cell.filter(|_| has_trials(&study.results))
    }
    let row = |(study, _): &Of, cell: Option<&Cell>| cell.map(|cell| CellRow::new(cell, 0, &study.results.workload));
    let mut rows = Rows::of("cells", sections, Place::all)
        .of_cell(|(_, place)| place.key)
        .column("steps_to_result", |(_, place)| measured(place, optional(place.cell.and_then(Cell::steps_to_result)), NOT_MEASURED));
    if sections.iter().any(|section| !section.confirmed.is_empty()) {
        rows = rows
            .estimate("confirmed_steps", |(_, place)| place.confirmed.map(|cell| cell.confirmed.mean))
            .estimate("luck", |(_, place)| place.confirmed.and_then(|cell| cell.luck));
    }
    rows.column("regime", |(_, place)| regime(place).to_owned())
        .column("trials", |of| measured(&of.1, optional(tried(of).map(|cell| cell.trials.len())), "0"))
        .declared(|column| TRIED.contains(&column.name), |of| row(of, tried(of)))
        .metaparameters(shown, |of| tried(of).and_then(Cell::best))
        .declared(|column| column.name == "test_error", |of| row(of, of.1.cell))
        .declared(
            |column| !column.is_place && !TRIED.contains(&column.name) && !TOLD_OTHERWISE.contains(&column.name),
            |of| row(of, of.1.cell.filter(|_| is_of_dps(&of.0.results))),
        )
        .column("device", |(study, place)| place.cell.map_or(String::new(), |cell| study.environment(cell.key).device.clone()))
        .table()
}

/// A row a sparsity.
pub(super) fn fits(sections: &[Section]) -> Table {
    let left_out = |fitted: &Fitted| fitted.left_out.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let fit = |fitted: &Fitted, of: fn(&Fit) -> Estimate| fitted.fit.as_ref().ok().map(of);
    Rows::of("fits", sections, |section| section.fits)
        .column("sparsity", |(_, fitted)| fitted.sparsity.to_string())
        .column("points", |(_, fitted)| optional(fitted.fit.as_ref().ok().map(|fit| fit.points)))
        .column("left_out", |(_, fitted)| left_out(fitted))
        .estimate("c1", |(_, fitted)| fit(fitted, |fit| fit.c1))
        .estimate("c2", |(_, fitted)| fit(fitted, |fit| fit.c2))
        .estimate("critical_batch_size", |(_, fitted)| fitted.critical())
        .column("deviation", |(_, fitted)| optional(fitted.fit.as_ref().ok().map(|fit| fit.deviation)))
        .estimate("exponent", |(_, fitted)| fitted.exponent)
        .column("enough_trials", |(_, fitted)| fitted.enough_trials.map_or(String::new(), EnoughTrials::name))
        .estimate("c1_over_dense", |(_, fitted)| fitted.c1_ratio)
        .estimate("c2_over_dense", |(_, fitted)| fitted.c2_ratio)
        .estimate("shift", |(_, fitted)| fitted.shift.map(|shift| shift.ratio))
        .column("shift_points", |(_, fitted)| optional(fitted.shift.map(|shift| shift.points)))
        .column("no_fit_because", |(_, fitted)| fitted.fit.as_ref().err().cloned().unwrap_or_default())
        .table()
}
