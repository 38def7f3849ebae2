//! Metaparameters of every trial (figures 3, 5 and 13 to 18 of Lee et al., ICLR 2021).

use super::figure::{Figure, Part, batch_axis, panel_a_cell};
use crate::analysis::chart::{Axis, Chart, Colour, Dot, Element, Entry, GREY, Marker, Panel, Scale, Stroke, power};
use crate::analysis::studies::{StudyResults, batch};
use crate::optimizer::{self, Metaparameter};
use crate::readable::{rough, some};
use crate::records::{Cell, Status, Trial};
use crate::results::WorkloadSummary;
use crate::settings::ascending;

/// The shape of a status.
fn shape(status: Status) -> Marker {
    match status {
        Status::Complete => Marker::Disc,
        Status::Incomplete => Marker::Triangle,
        Status::Infeasible => Marker::Cross,
        Status::Censored => Marker::Ring,
    }
}

/// Best errors over the goal error at most, each with its colour.
const ERRORS: [(f64, Colour); 5] = [
    (1.0, Colour(8, 48, 107)),
    (1.5, Colour(40, 120, 181)),
    (3.0, Colour(120, 180, 220)),
    (10.0, Colour(245, 170, 100)),
    (f64::INFINITY, Colour(190, 70, 20)),
];

/// The colour of trials without an error.
const NO_ERROR: Colour = Colour(204, 121, 167);

/// The colour of a trial, by the least error of its evaluations over the goal: of the examples that an evaluation had seen, where it stopped early.
pub(super) fn colour(workload: &WorkloadSummary, trial: &Trial) -> Colour {
    let goal = f64::from(workload.goal_threshold).max(0.5) / f64::from(workload.validation_examples.max(1));
    let seen = trial.curve.iter().filter(|point| point.examples > 0);
    let least = seen.map(|point| point.error()).min_by(f64::total_cmp);
    match (trial.status, least) {
        (Status::Complete, _) => ERRORS[0].1,
        (Status::Infeasible, _) | (_, None) => NO_ERROR,
        (_, Some(error)) => ERRORS[1..].iter().find(|class| error <= class.0 * goal).map_or(NO_ERROR, |class| class.1),
    }
}

/// The legend of the colours.
pub(super) fn colours(workload: &WorkloadSummary) -> Vec<Entry> {
    let times = |times: f64| rough(times * workload.goal_error).trim_end_matches('0').to_owned();
    let name = |place: usize| match ERRORS[place].0 {
        above if above.is_infinite() => format!("error > {}", times(ERRORS[place - 1].0)),
        most => format!("error ≤ {}", times(most)),
    };
    let entry = |place: usize| Entry::point(name(place), ERRORS[place].1, Marker::Square);
    (0..ERRORS.len()).map(entry).chain([Entry::point("infeasible", NO_ERROR, Marker::Square)]).collect()
}

/// The end of a caption, which says the meaning of the trials' colours.
pub(super) const COLOURED: &str =
    " Colour: the least validation error of a trial; where an evaluation stopped early, that of the examples it had seen.";

/// The name of the figure of the paper's pair.
const PAPERS: &str = "metaparameters";

/// The best trial's star.
pub(super) const STAR: Colour = Colour(240, 228, 66);

/// The scale of a metaparameter's axis.
fn scale(name: Metaparameter) -> Scale {
    match name.example().scale {
        optimizer::Scale::Integer | optimizer::Scale::Linear => Scale::Linear,
        optimizer::Scale::Log => Scale::Log10,
        optimizer::Scale::ReverseLog => Scale::ReverseLog,
    }
}

/// A trial's value of a metaparameter, where its axis has a place for it.
fn value(name: Metaparameter, trial: &Trial) -> Option<f64> {
    let is_shown = |value: &f64| scale(name) != Scale::ReverseLog || *value < 1.0;
    trial.metaparameters.get(name).filter(is_shown)
}

/// The name of a pair's figure, and its heading. The paper's pair has the shortest.
fn names(across: Metaparameter, up: Metaparameter) -> (String, String) {
    if is_papers(across, up) {
        return (PAPERS.to_owned(), "The metaparameter search".to_owned());
    }
    let short = |name: Metaparameter| name.title().trim_start_matches("learning ").replace(' ', "-");
    let name = format!("metaparameters-{}-{}", short(across), short(up));
    (name, format!("The search: {} and {}", across.title(), up.title()))
}

/// Whether a pair is the paper's, on which lines of equal effective learning rate are drawn.
pub(super) fn is_papers(across: Metaparameter, up: Metaparameter) -> bool {
    (across, up) == (Metaparameter::LearningRate, Metaparameter::Momentum)
}

/// Every trial, a panel a cell, in each pair of metaparameters that were searched; where fewer than two were, a panel a sparsity with a strip a batch
/// size. None without trials.
pub fn scatter(study: &StudyResults) -> Vec<Figure> {
    let trials: Vec<&Trial> = study.results.trials().collect();
    let Some(first) = trials.first() else { return Vec::new() };
    let is_searched = |name: Metaparameter| trials.iter().any(|trial| value(name, trial) != value(name, first));
    let searched: Vec<Metaparameter> = Metaparameter::ALL.iter().copied().filter(|&name| is_searched(name)).collect();
    // Axes hold the whole searched box, so that a reader sees how far from its edges the best trials lie.
    let search = study.configuration.as_ref().ok().map(|study| &study.search);
    let axis = |name: Metaparameter| {
        let values = trials.iter().filter_map(|trial| value(name, trial));
        let ranges = search.iter().flat_map(|search| search.ranges()).filter(|(searched, _)| *searched == name);
        let ends = ranges.flat_map(|(_, range)| [range.min, range.max]);
        let usual = name.example();
        Axis::around(scale(name), &title(name), values.chain(ends), (usual.min, usual.max))
    };
    let grid = study.grid();
    let ends = ends(study);
    let figure = |names: (String, String), caption: &str, columns, panels, further: Option<Entry>| {
        let of_status = |status: Status| Entry::point(status.name(), GREY, shape(status));
        let mut legend: Vec<Entry> = Status::ALL.into_iter().map(of_status).collect();
        legend.push(Entry::point("best", STAR, Marker::Star));
        legend.extend(colours(&study.results.workload));
        legend.extend(further);
        let chart = Chart::new(format!("{}: trials", study.name()), columns, panels, legend).crowded();
        // Of many pairs the page names the paper's.
        let beside: &[Part] = if names.0 == PAPERS { &[Part::Trials] } else { &[] };
        Figure::new(names, format!("{caption}{COLOURED}{ends}"), "trials", beside, chart)
    };
    let pair = |(across, up): (Metaparameter, Metaparameter)| {
        let effective = is_papers(across, up);
        let (x, y) = (axis(across), axis(up));
        let lines = if effective { contours(&x, &y) } else { Vec::new() };
        let (panels, columns) = panel_a_cell(study, &x, &y, &|cell| {
            let marks = marks(study, cell, &|trial| Some((value(across, trial)?, value(up, trial)?)));
            lines.iter().cloned().chain(marks).collect()
        });
        let lines = if effective { " Thin lines join equal effective learning rates η/(1−m), in powers of ten." } else { "" };
        let caption = format!(
            "Every trial, a panel a cell (S sparsity, B batch size).{lines} If the star lies at the edge of the searched box, the box was too small; if few \
             feasible trials surround it, the budget was."
        );
        let entry = Entry::line("equal η/(1−m)", GREY, Stroke::Thin);
        figure(names(across, up), &caption, columns, panels, effective.then_some(entry))
    };
    if searched.len() > 1 {
        let pairs = searched.iter().enumerate().flat_map(|(place, &across)| searched[place + 1..].iter().map(move |&up| (across, up)));
        return pairs.map(pair).collect();
    }
    let only = searched.first().copied().unwrap_or(Metaparameter::LearningRate);
    let caption = "Every trial, a panel a sparsity and a strip a batch size: at its line the complete trials and those a race cut \
                   off, below it the incomplete, above it the infeasible. If the star lies at the edge of the searched range, the \
                   range was too narrow.";
    let x = axis(only);
    let panels: Vec<Panel> = grid.sparsities.iter().map(|&sparsity| strips(study, sparsity, only, &x)).collect();
    let papers = names(Metaparameter::LearningRate, Metaparameter::Momentum);
    vec![figure(papers, caption, panels.len().clamp(1, 2), panels, None)]
}

/// Meaning of a censored trial, in words.
pub(super) fn ends(study: &StudyResults) -> String {
    let factors = ascending(study.results.cells.iter().filter_map(|cell| study.race_of(cell).factor()), f64::total_cmp);
    match factors[..] {
        [] => String::new(),
        [1.0] => " A cell ends with its first complete trial: what the censored ones would have done later is not known.".to_owned(),
        [factor] => format!(" A cell ends at {factor} K*: complete trials reached the goal by then, censored ones did not."),
        _ => " Cells end at different multiples of K*: complete trials reached the goal by then, censored ones did not.".to_owned(),
    }
}

/// The title of a metaparameter's axis: `Learning rate η`.
fn title(name: Metaparameter) -> String {
    let (first, rest) = name.title().split_at(1);
    format!("{}{rest} {}", first.to_uppercase(), name.symbol()).trim_end().to_owned()
}

/// Lines of η/(1−m) = 10ᵏ, with 10ᵏ near their upper ends.
fn contours(x: &Axis, y: &Axis) -> Vec<Element> {
    let line = |exponent: i32| {
        let effective = 10f64.powi(exponent);
        let on = |(number, rate): (usize, f64)| (number, (rate, 1.0 - rate / effective));
        let points: Vec<_> = x.samples(240).enumerate().map(on).filter(|(_, point)| y.contains(point.1)).collect();
        let (&(number, first), &(_, last)) = (points.first()?, points.last()?);
        // The line is straight on these axes. The words stand a little way down it, where they are clear of both axes.
        let &(_, place) = points.get(20.max(44_usize.saturating_sub(number)))?;
        let words = Element::Words(power("10", f64::from(exponent)), place);
        Some([Element::Line(Stroke::Thin, GREY, vec![first, last]), words])
    };
    (-6..=6).filter_map(line).flatten().collect()
}

/// The markers of a cell's trials, the most telling on top.
fn marks(study: &StudyResults, cell: &Cell, at: &dyn Fn(&Trial) -> Option<(f64, f64)>) -> Vec<Element> {
    let order = [Status::Censored, Status::Incomplete, Status::Infeasible, Status::Complete];
    let dot = |trial: &Trial| Some(Dot { at: at(trial)?, words: words(cell, trial) });
    let colours = [NO_ERROR].into_iter().chain(ERRORS.iter().rev().map(|class| class.1));
    let layer = |(status, of): (Status, Colour)| {
        let here = cell.trials.iter().filter(|trial| trial.status == status && colour(&study.results.workload, trial) == of);
        Element::Points(shape(status), of, here.filter_map(dot).collect())
    };
    let star = Element::Points(Marker::Star, STAR, cell.best().and_then(dot).into_iter().collect());
    order.into_iter().flat_map(|status| colours.clone().map(move |of| (status, of))).map(layer).chain([star]).collect()
}

/// Describes a trial: its end, its steps and its metaparameters.
pub(super) fn words(cell: &Cell, trial: &Trial) -> String {
    let values = Metaparameter::ALL.iter().filter_map(|&name| {
        let value = trial.metaparameters.get(name)?;
        Some(format!(", {} {}", name.title(), name.show(value)))
    });
    let steps = some(trial.steps_run as usize, "step");
    format!("{}, trial {}: {} after {steps}{}", cell.key, trial.index, trial.status.name(), values.collect::<String>())
}

/// A panel of one sparsity with a strip a batch size.
fn strips(study: &StudyResults, sparsity: f64, name: Metaparameter, x: &Axis) -> Panel {
    let grid = study.grid();
    // Statuses are kept apart within a strip, by less than strips are.
    let offset = |status: Status| match status {
        Status::Complete | Status::Censored => 0.0,
        Status::Incomplete => -0.24,
        Status::Infeasible => 0.24,
    };
    let cells = grid.batch_sizes.iter().filter_map(|&size| grid.cell(size, sparsity));
    let at = |trial: &Trial, size: u32| Some((value(name, trial)?, batch(size) * f64::exp2(offset(trial.status))));
    let layers = cells.flat_map(|cell| marks(study, cell, &|trial| at(trial, cell.key.batch_size))).collect();
    Panel::new(x.clone(), batch_axis(&grid.batch_sizes), layers).titled(format!("sparsity {sparsity}"))
}
