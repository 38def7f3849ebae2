//! Every figure of a made study, by what is in its SVG document.

mod report_support;

use dps::analysis::{self, Study, figures, fits, gather};
use dps::results::Results;
use dps::study::Status;
use report_support::Made;

fn study(results: Results) -> Study {
    gather(vec![("study.h5".to_owned(), results)]).remove(0)
}

/// The SVG document of a study's figure.
fn figure(study: &Study, name: &str) -> Option<String> {
    let figure = figures(study, &fits(study)).into_iter().find(|figure| figure.name == name)?;
    assert!(figure.caption.len() > 40 && !figure.heading.is_empty());
    let svg = figure.sheet.svg().unwrap();
    assert!(analysis::png(&svg).unwrap().starts_with(b"\x89PNG"));
    Some(svg)
}

/// Circles, polygons and whether all the words are there.
fn marks(svg: &str, words: &[&str]) -> (usize, usize) {
    for word in words {
        assert!(svg.contains(&format!("\n{word}\n")), "no \"{word}\" in {svg}");
    }
    (svg.matches("<circle").count(), svg.matches("<polygon").count())
}

#[test]
fn each_sparsity_has_its_markers_in_every_figure_of_steps() {
    let study = study(Made::small().results());
    let svg = |name| figure(&study, name).unwrap();
    // Four batch sizes and a line of the legend; sparsity 0 is discs, 0.9 squares.
    let words = ["Batch size (examples)", "Steps-to-result", "sparsity 0", "sparsity 0.9", "linear scaling", "2¹", "2⁷", "2¹³"];
    assert_eq!(marks(&svg("steps-to-result"), &words), (4 + 1, 4 + 1));
    let words = ["Steps-to-result / that of the first batch size", "2⁰", "2⁻³"];
    assert_eq!(marks(&svg("normalised"), &words), (4 + 1, 4 + 1));
    // Two intervals are polygons as well.
    let words = ["sparsity 0", "sparsity 0.9", "measured K*", "fit c1/B + c2", "critical batch size"];
    assert_eq!(marks(&svg("panels"), &words), (4 + 1, 4 + 2));
    let ratio = svg("ratio");
    assert_eq!(marks(&ratio, &["K* sparse / K* dense", "sparsity 0.9", "1", "2"]), (0, 4 + 1));
    // Three panels.
    let words = ["c1 (steps × examples)", "c2 (steps)", "critical batch size", "Sparsity", "Fitted value"];
    assert_eq!(marks(&svg("fits"), &words), (3 + 1, 3 + 1));
}

/// A study of one sparsity has no ratio; of one cell no normalised curve and no fit.
#[test]
fn figures_that_would_say_nothing_are_left_out() {
    let names = |made: Made| {
        let study = study(made.results());
        figures(&study, &fits(&study)).into_iter().map(|figure| figure.name).collect::<Vec<_>>()
    };
    let one = names(Made { batch_sizes: vec![8], sparsities: vec![0.5], ..Made::small() });
    assert_eq!(one, ["steps-to-result", "panels", "metaparameters", "loss", "error"]);
    assert_eq!(names(Made { batch_sizes: vec![], ..Made::small() }), ["steps-to-result"]);
}

#[test]
fn every_trial_is_in_the_scatter_as_what_it_ended() {
    for race in [false, true] {
        let results = Made { race, trials: 30, ..Made::small() }.results();
        let count = |status| results.cells.iter().map(|cell| cell.count(status)).sum::<usize>();
        let [complete, incomplete, infeasible, censored] = Status::ALL.map(count);
        assert!(complete > 0 && infeasible > 0 && (censored > 0) == race);
        let study = study(results);
        let svg = figure(&study, "metaparameters").unwrap();
        let words = [
            "S 0, B 2",
            "S 0.9, B 128",
            "Learning rate η",
            "Momentum m",
            "0.999",
            "10⁻⁴",
            "complete",
            "incomplete",
            "infeasible",
            "censored",
            "best",
        ];
        // Discs and rings, triangles and stars; and in the legend one of each.
        assert_eq!(marks(&svg, &words), (complete + censored + 2, incomplete + 8 + 2));
        let crosses = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("#CC79A7")).count();
        assert_eq!(crosses, 2 * (infeasible + 1));
        // Lines of equal η/(1−m) pass through every panel, and carry their powers.
        assert!(svg.matches("\n10²\n").count() == 8 && svg.contains("equal η/(1−m)"));
    }
}

#[test]
fn without_a_searched_momentum_trials_are_strips_over_the_learning_rate() {
    let results = Made { optimizer: "sgd", ..Made::small() }.results();
    let count = |status| results.cells.iter().map(|cell| cell.count(status)).sum::<usize>();
    let (complete, incomplete) = (count(Status::Complete), count(Status::Incomplete));
    let svg = figure(&study(results.clone()), "metaparameters").unwrap();
    let words = ["sparsity 0", "sparsity 0.9", "Learning rate η", "Batch size (examples)"];
    assert_eq!(marks(&svg, &words), (complete + 2, incomplete + 8 + 2));
    assert!(!svg.contains("Momentum"));
}

#[test]
fn curves_have_a_panel_a_batch_size_and_errors_only_of_whole_evaluations() {
    let whole = study(Made::small().results());
    for (name, words) in [
        ("loss", ["Training loss", "Steps", "batch size 2", "batch size 128"]),
        ("error", ["Validation error", "goal 0.14", "batch size 2", "batch size 128"]),
    ] {
        let svg = figure(&whole, name).unwrap();
        marks(&svg, &words);
        // A solid line a cell, and one a sparsity in the legend, which is a little wider.
        assert_eq!(svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"3\"")).count(), 8, "{name}");
    }
    // In a race all evaluations but the deciding one stop early: no curve, and the page says why.
    let raced = study(Made { race: true, ..Made::small() }.results());
    assert!(figure(&raced, "error").is_none());
    let loss = figures(&raced, &[]).into_iter().find(|figure| figure.name == "loss").unwrap();
    assert!(loss.caption.contains("Validation error has no figure"));
}

#[test]
fn what_no_axis_can_show_is_left_out() {
    let mut results = Made::small().results();
    for (number, cell) in results.cells.iter_mut().enumerate() {
        for trial in &mut cell.trials {
            trial.metaparameters.learning_rate = [0.0, -1.0, f64::MAX, 0.1][number % 4];
            trial.metaparameters.momentum = Some([1.0, 2.0, -5.0, 0.0][number % 4]);
            trial.curve.iter_mut().for_each(|point| point.loss = [f32::NAN, f32::INFINITY, -1.0, 0.0][number % 4]);
        }
    }
    let study = study(results);
    for figure in figures(&study, &fits(&study)) {
        figure.sheet.svg().unwrap();
    }
}
