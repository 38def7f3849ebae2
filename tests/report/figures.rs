//! The figures of a synthetic study, checked by the values that they draw and by their words.

use crate::support::synthetic::Synthetic;
use dps::analysis::{self, Options, StudyResults, Style, Width, figures, fits, gather, values};
use dps::optimizer::Metaparameter;
use dps::records::{Cell, Measurement, Status};
use dps::results::Results;
use dps::settings::Race;

fn study(results: Results) -> StudyResults {
    gather(vec![("study.h5".to_owned(), results)]).remove(0)
}

/// A figure of a study, with what it draws as a table.
struct Shown {
    svg: String,
    caption: String,
    rows: Vec<Vec<String>>,
}

/// A study's figure.
fn figure(study: &StudyResults, name: &str) -> Option<Shown> {
    let figure = figures(study, &fits(study)).into_iter().find(|figure| figure.name == name)?;
    assert!(figure.caption.len() > 40 && !figure.heading.is_empty());
    let svg = figure.chart.svg(Style::Screen, Width::Wide);
    // SVG in a build without pictures.
    let last = analysis::FORMATS.last().unwrap();
    let begins: &[u8] = if last.name == "png" { b"\x89PNG" } else { b"<svg" };
    assert!((last.make)(&svg).unwrap().starts_with(begins), "{}", last.name);
    Some(Shown { svg, caption: figure.caption, rows: values(&figure.chart).rows })
}

impl Shown {
    /// The values that are drawn so: panel, series, what is drawn, x, y, low, high, words.
    fn of<'a>(&'a self, drawn: &'a str) -> impl Iterator<Item = &'a Vec<String>> {
        self.rows.iter().filter(move |row| row[2] == drawn)
    }

    /// How many values of a series are drawn so.
    fn count(&self, drawn: &str, series: &str) -> usize {
        self.of(drawn).filter(|row| row[1] == series).count()
    }

    /// The places (x, y) of a series' points in all panels.
    fn points(&self, series: &str) -> Vec<(f64, f64)> {
        let number = |text: &String| text.parse::<f64>().unwrap();
        self.of("point").filter(|row| row[1] == series).map(|row| (number(&row[3]), number(&row[4]))).collect()
    }

    /// Fails where the figure lacks any of these words.
    fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.svg.contains(&format!("\n{word}\n")), "no \"{word}\" in {}", self.svg);
        }
    }
}

#[test]
fn each_sparsity_has_its_points_in_every_figure_of_steps() {
    let study = study(Synthetic::small().results());
    let shown = |name| figure(&study, name).unwrap();
    let grid = study.grid();
    let steps = |sparsity| grid.measured(sparsity).into_iter().map(|(size, steps)| (f64::from(size), f64::from(steps))).collect::<Vec<_>>();
    let together = shown("steps-to-result");
    together.says(&["Batch size (examples)", "Steps-to-result", "sparsity 0", "sparsity 0.9", "linear scaling", "2¹", "2⁷", "2¹³"]);
    let normalised = shown("normalised");
    normalised.says(&["Steps-to-result / that at batch size 2", "2⁰", "2⁻³"]);
    for (sparsity, series) in [(0.0, "sparsity 0"), (0.9, "sparsity 0.9")] {
        let steps = steps(sparsity);
        assert_eq!((together.points(series), steps.len()), (steps.clone(), 4));
        let shares = steps.iter().map(|&(size, all)| (size, all / steps[0].1)).collect::<Vec<_>>();
        assert_eq!(normalised.points(series), shares);
        assert!(normalised.count("interval", series) > 0, "the interval of the fit");
    }
    let panels = shown("panels");
    panels.says(&["sparsity 0", "sparsity 0.9", "measured K*", "fit c1/B + c2", "critical batch size"]);
    for panel in ["sparsity 0", "sparsity 0.9"] {
        let of_panel = |drawn| panels.of(drawn).filter(|row| row[0] == panel).count();
        // The shades of the fit, and of the critical batch size from its lower to its upper limit.
        assert_eq!((of_panel("point"), of_panel("interval")), (4, 81 + 2));
    }
    let ratio = shown("ratio");
    ratio.says(&["K* sparse / K* dense", "sparsity 0.9", "1", "2"]);
    let expected: Vec<_> = steps(0.9).iter().zip(steps(0.0)).map(|(sparse, dense)| (sparse.0, sparse.1 / dense.1)).collect();
    assert_eq!((ratio.points("sparsity 0.9"), ratio.points("sparsity 0")), (expected, vec![]));
    // Two panels; the rates rise as the square root of the batch size.
    let rates = shown("rates");
    rates.says(&["learning rate η", "effective rate η/(1 − m)", "Rate of the best trial", "∝ B", "∝ √B"]);
    let parameters = shown("fits");
    parameters.says(&["c1 (steps × examples)", "c2 (steps)", "critical batch size (examples)", "Sparsity", "Fitted value"]);
    for (sparsity, series) in ["sparsity 0", "sparsity 0.9"].into_iter().enumerate() {
        assert_eq!(rates.points(series).len(), 2 * 4);
        let fit = fits(&study).swap_remove(sparsity).fit.unwrap();
        assert_eq!(
            parameters.points(series).iter().map(|point| point.1).collect::<Vec<_>>(),
            [fit.c1, fit.c2, fit.critical].map(|of| of.value)
        );
    }
}

/// A mouse over a point shows which cell it is of, its value, and what is known of that.
#[test]
fn every_point_has_its_words() {
    let results = Synthetic::small().results();
    let trials = results.cells.iter().map(|cell| cell.trials.len()).sum::<usize>();
    let study = study(results);
    let marked = [
        ("steps-to-result", 8, "batch size 2, sparsity 0: K* 4,592, goal not reached at 4,576"),
        ("normalised", 8, "batch size 2, sparsity 0.9: 1.000 of that at batch size 2"),
        ("panels", 8, "batch size 2, sparsity 0: K* 4,592, goal not reached at 4,576; the fit: 4"),
        ("ratio", 4, "batch size 2, sparsity 0.9: 1.902 of the dense K* [1.899 … 1.909]"),
        ("rates", 16, "batch size 2, sparsity 0: learning rate η 0.00"),
        ("fits", 6, "sparsity 0: c1 (steps × examples) 8957 ["),
        ("metaparameters", trials + 8, "batch size 2, sparsity 0, trial 0: complete after 4,592 steps, learning rate 0.00"),
    ];
    // The steps that so many trials find are a tile.
    for (name, words) in [
        ("so-far", "batch size 2, sparsity 0: 4,592 steps in the first 1 of 8 trials"),
        ("fewer-trials", "batch size 2, sparsity 0: steps that 8 of its trials find: 4,592 in the median, 4,592 to 4,592 in 95 %"),
    ] {
        let shown = figure(&study, name).unwrap();
        let tiles: Vec<_> = shown.of("tile").collect();
        assert!(tiles.len() >= 8 && tiles.iter().any(|row| row[7] == words && row[1] == "K*"), "{name}: {:?}", shown.rows);
        assert!(tiles.iter().all(|row| shown.svg.contains(&format!("<title>{}</title></rect>", row[7]))), "{name}");
    }
    for (name, points, words) in marked {
        let shown = figure(&study, name).unwrap();
        assert_eq!(shown.of("point").count(), points, "{name}");
        assert!(shown.of("point").any(|row| row[7].starts_with(words)), "{name}: {:?}", shown.rows);
        let said = |row: &Vec<String>| shown.svg.contains(&format!("<title>{}</title></rect>", row[7]));
        assert!(shown.of("point").all(said), "{name}: {}", shown.svg);
    }
}

/// The figure that leads the page: every sparsity's points, its fit with a band, and its critical batch size.
#[test]
fn the_leading_figure_marks_the_critical_batch_sizes() {
    let study = study(Synthetic::small().results());
    let shown = figure(&study, "answer").unwrap();
    for (fitted, sparsity) in fits(&study).iter().zip([0.0, 0.9]) {
        let critical = fitted.critical().unwrap().value;
        let marked = |row: &&Vec<String>| row[7].starts_with(&format!("sparsity {sparsity}: critical batch size"));
        let marks: Vec<f64> = shown.of("point").filter(marked).map(|row| row[3].parse().unwrap()).collect();
        assert_eq!(marks, [critical]);
        assert_eq!(shown.of("point").filter(|row| row[7].contains(&format!("sparsity {sparsity}: K*"))).count(), 4);
        assert_eq!(shown.of("interval").filter(|row| row[1].starts_with(&format!("sparsity {sparsity}: critical at "))).count(), 81);
    }
}

/// Whatever else a study has, a sparsity keeps its colour and its shape.
#[test]
fn colours_belong_to_sparsities() {
    let lone = study(Synthetic { sparsities: vec![0.9], ..Synthetic::small() }.results());
    let Shown { svg, .. } = figure(&lone, "steps-to-result").unwrap();
    assert!(svg.contains("#D55E00") && !svg.contains("#0072B2"), "{svg}");
    // Between those of 0.5 and of 0.7, nearer to the first.
    let between = study(Synthetic { sparsities: vec![0.55], ..Synthetic::small() }.results());
    assert!(figure(&between, "steps-to-result").unwrap().svg.contains("#339580"));
}

/// Where the sparse network reached the goal from batch size 8 on alone, both curves are divided by their K* there.
#[test]
fn normalised_curves_are_divided_at_a_batch_size_that_all_have() {
    let mut results = Synthetic::small().results();
    let unreached = results.cells.iter_mut().find(|cell| (cell.key.batch_size, cell.key.sparsity) == (2, 0.9)).unwrap();
    for trial in &mut unreached.trials {
        if trial.status == Status::Complete {
            (trial.status, trial.steps) = (Status::Incomplete, None);
        }
    }
    let shown = figure(&study(results.clone()), "normalised").unwrap();
    shown.says(&["Steps-to-result / that at batch size 8"]);
    for (series, count) in [("sparsity 0", 4), ("sparsity 0.9", 3)] {
        let points = shown.points(series);
        assert_eq!((points.len(), points.iter().find(|point| point.0 == 8.0).unwrap().1), (count, 1.0));
    }
    // Without a common batch size there is nothing to divide by.
    for cell in results.cells.iter_mut().filter(|cell| cell.key.sparsity == 0.0 && cell.key.batch_size > 2) {
        for trial in &mut cell.trials {
            (trial.status, trial.steps) = (Status::Incomplete, None);
        }
    }
    assert!(figure(&study(results), "normalised").is_none());
}

/// A study of one sparsity has no ratio; of one cell no normalised curve and no fit.
#[test]
fn figures_that_would_say_nothing_are_left_out() {
    let names = |made: Synthetic| {
        let study = study(made.results());
        figures(&study, &fits(&study)).into_iter().map(|figure| figure.name).collect::<Vec<_>>()
    };
    let one = names(Synthetic { batch_sizes: vec![8], sparsities: vec![0.5], ..Synthetic::small() });
    let raced = names(Synthetic { race: Race::Until(1.0), ..Synthetic::small() });
    assert!(!raced.iter().any(|name| name == "fewer-trials") && raced.len() > 5, "{raced:?}");
    assert_eq!(one, ["answer", "steps-to-result", "panels", "metaparameters", "fewer-trials", "so-far", "loss", "error"]);
    assert_eq!(names(Synthetic { batch_sizes: vec![], ..Synthetic::small() }), ["steps-to-result"]);
}

#[test]
fn every_trial_is_in_the_scatter_as_what_it_ended() {
    for race in [Race::Off, Race::Until(1.0), Race::Until(3.0)] {
        let results = Synthetic { race, trials: 30, ..Synthetic::small() }.results();
        let count = |status| results.cells.iter().map(|cell| cell.count(status)).sum::<usize>();
        let [complete, incomplete, infeasible, censored] = Status::ALL.map(count);
        assert!(complete > 0 && infeasible > 0 && (censored > 0) == (race != Race::Off));
        let study = study(results);
        let shown = figure(&study, "metaparameters").unwrap();
        let ends = match race {
            Race::Off => "if few feasible trials surround it, the budget was.",
            Race::Until(1.0) => "A cell ends with its first complete trial: what the censored ones would have done later is not known.",
            Race::Until(_) => "A cell ends at 3 K*: complete trials reached the goal by then, censored ones did not.",
        };
        assert!(shown.caption.contains(ends) && shown.caption.contains("Colour: the least validation error"), "{}", shown.caption);
        shown.says(&[
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
        ]);
        for (series, count) in
            [("complete", complete), ("incomplete", incomplete), ("infeasible", infeasible), ("censored", censored), ("best", 8)]
        {
            assert_eq!(shown.points(series).len(), count, "{series}");
        }
        // Lines of equal η/(1−m) pass through every panel, and carry their powers.
        assert_eq!(shown.of("words").filter(|row| row[7] == "10²").count(), 8);
        assert!(shown.count("line", "equal η/(1−m)") > 8);
    }
}

/// Figure 18 of the paper is of a study that searched all four.
#[test]
fn every_pair_of_searched_metaparameters_has_a_figure() {
    let made = Synthetic::small();
    let mut results = made.results();
    let searched = "decay_steps = { min = 30000, max = 60000, scale = \"integer\" }\nend_learning_rate_factor = { min = 1e-4, max = 0.1, scale = \"log\" }\n";
    results.configuration = results.configuration.replace("[search]\n", &format!("[search]\n{searched}"));
    results.configuration = results.configuration.replace("optimizer =", "schedule = \"linear-decay\"\noptimizer =");
    results.workload.schedule = "linear-decay".into();
    for (number, trial) in results.cells.iter_mut().flat_map(|cell| &mut cell.trials).enumerate() {
        trial.metaparameters.set(Metaparameter::DecaySteps, Some(f64::from(30_000 + 400 * number as u32)));
        trial.metaparameters.set(Metaparameter::EndLearningRateFactor, Some(10f64.powf(-4.0 + 0.04 * number as f64)));
    }
    let study = study(results);
    assert!(study.configuration.is_ok(), "{:?}", study.configuration);
    let (rate, momentum, steps, factor) = ("Learning rate η", "Momentum m", "Decay steps D", "End factor");
    let trials = study.results.cells.iter().map(|cell| cell.trials.len()).sum::<usize>();
    for (name, x, y) in [
        ("metaparameters", rate, momentum),
        ("metaparameters-rate-decay-steps", rate, steps),
        ("metaparameters-rate-end-factor", rate, factor),
        ("metaparameters-momentum-decay-steps", momentum, steps),
        ("metaparameters-momentum-end-factor", momentum, factor),
        ("metaparameters-decay-steps-end-factor", steps, factor),
    ] {
        let shown = figure(&study, name).unwrap();
        shown.says(&[x, y, "S 0, B 2", "S 0.9, B 128", "best"]);
        // A star a cell besides.
        assert_eq!(shown.of("point").count(), trials + 8, "{name}");
        assert_eq!(shown.count("line", "equal η/(1−m)") > 0, name == "metaparameters");
    }
    assert_eq!(figures(&study, &[]).iter().filter(|figure| figure.name.starts_with("metaparameters")).count(), 6);
}

/// Of a study that searched more than the learning rate and the momentum every trial is a line, with its words, coloured by how it ended.
#[test]
fn every_trial_is_a_line_through_all_dimensions() {
    assert!(figure(&study(Synthetic::small().results()), "parallel").is_none(), "a plane shows two dimensions better");
    assert!(figure(&study(Synthetic { optimizer: "sgd", ..Synthetic::small() }.results()), "parallel").is_none());
    for race in [Race::Off, Race::Until(1.0)] {
        let mut results = Synthetic { race, ..Synthetic::small() }.results();
        results.configuration =
            results.configuration.replace("[search]\n", "[search]\nweight_decay = { min = 1e-5, max = 0.1, scale = \"log\" }\n");
        for (number, trial) in results.cells.iter_mut().flat_map(|cell| &mut cell.trials).enumerate() {
            trial.metaparameters.set(Metaparameter::WeightDecay, Some(10f64.powf(-5.0 + 4.0 * (number % 8) as f64 / 7.0)));
        }
        let count = |status| results.cells.iter().map(|cell| cell.count(status)).sum::<usize>();
        let [complete, incomplete, infeasible, censored] = Status::ALL.map(count);
        let trials = complete + incomplete + infeasible + censored;
        let study = study(results.clone());
        assert!(study.configuration.is_ok(), "{:?}", study.configuration);
        let shown = figure(&study, "parallel").unwrap();
        shown.says(&["η", "m", "λ", "S 0, B 2", "S 0.9, B 128", "Place in its range", "infeasible", "best"]);
        // Steps are an axis where trials go on after the first that reached the goal.
        let axes = if race == Race::Off { 4 } else { 3 };
        assert_eq!(shown.svg.contains("\nsteps\n"), axes == 4);
        // A value an axis of each trial; complete trials end at their steps.
        assert_eq!(shown.of("line").count(), 3 * trials + (axes - 3) * complete);
        assert_eq!(shown.count("line", "infeasible"), 3 * infeasible);
        let best = results.cells[0].best().unwrap();
        let words = format!("batch size 2, sparsity 0, trial {}: complete after 4,592 steps", best.index);
        assert_eq!(shown.of("line").filter(|row| row[7].starts_with(&words)).count(), axes);
        assert!(shown.svg.contains(&format!("<title>{words}")), "{}", shown.svg);
        assert!(shown.caption.contains("λ: weight decay from 1e-5 to 0.1, logarithmic"), "{}", shown.caption);
    }
}

/// K* times the batch size across, K* up: the first examples are those of batch size 2, and both curves have their ring at twice c1 and twice c2.
#[test]
fn steps_stand_against_examples_with_the_hyperbola_of_the_fit() {
    let large = Synthetic { trials: 3, race: Race::Off, noise: 0.0, ..Synthetic::large() };
    let shown = figure(&study(large.results()), "trade-off").unwrap();
    shown.says(&["Examples (steps × batch size)", "Steps-to-result", "B 2", "equal batch size B", "critical batch size", "sparsity 0.5"]);
    assert_eq!(shown.of("point").count(), 3 * 11);
    let words = "batch size 2, sparsity 0: K* 4,592, goal not reached at 4,576; 9,184 examples";
    assert!(shown.of("point").any(|row| row[7] == words && row[3..5] == ["9184", "4592"]), "{:?}", shown.rows);
    // Of eleven batch sizes six have lines.
    assert_eq!(shown.of("words").filter(|row| row[7].starts_with("B ")).count(), 6);
    let rings: Vec<&String> = shown.of("bound").map(|row| &row[7]).collect();
    assert!(rings.len() == 3 && rings.iter().all(|words| words.contains("; twice E_min = ")), "{rings:?}");
    assert!(rings[0].starts_with("sparsity 0: critical batch size"), "{rings:?}");
    let short = study(Synthetic { batch_sizes: vec![2, 8], ..Synthetic::small() }.results());
    assert!(figure(&short, "trade-off").is_none(), "nothing was fitted");
}

#[test]
fn without_a_searched_momentum_trials_are_strips_over_the_learning_rate() {
    let results = Synthetic { optimizer: "sgd", ..Synthetic::small() }.results();
    let count = |status| results.cells.iter().map(|cell| cell.count(status)).sum::<usize>();
    let (complete, incomplete) = (count(Status::Complete), count(Status::Incomplete));
    let shown = figure(&study(results.clone()), "metaparameters").unwrap();
    shown.says(&["sparsity 0", "sparsity 0.9", "Learning rate η", "Batch size (examples)"]);
    assert_eq!(["complete", "incomplete", "best"].map(|series| shown.points(series).len()), [complete, incomplete, 8]);
    assert!(!shown.svg.contains("Momentum"));
}

#[test]
fn curves_have_a_panel_a_batch_size_and_errors_only_of_whole_evaluations() {
    let whole = study(Synthetic::small().results());
    for (name, words) in [
        ("loss", ["Training loss (nats)", "Steps", "batch size 2", "batch size 128"]),
        ("error", ["Validation error (fraction)", "goal 0.14", "batch size 2", "batch size 128"]),
    ] {
        let shown = figure(&whole, name).unwrap();
        shown.says(&words);
        // A line a cell.
        for (panel, series) in cells_of(&whole) {
            assert!(shown.of("line").any(|row| (&row[0], &row[1]) == (&panel, &series)), "{name}: {panel}, {series}");
        }
    }
    // In a race all evaluations but the deciding one stop early: a figure of bounds would say nothing.
    let raced = study(Synthetic { race: Race::Until(1.0), ..Synthetic::small() }.results());
    assert!(figure(&raced, "error").is_none());
    // Where a few of them are bounds, these are hollow, and the caption says so.
    let mut few = Synthetic::small().results();
    for point in few.cells.iter_mut().flat_map(|cell| &mut cell.trials).flat_map(|trial| trial.curve.iter_mut().take(1)) {
        point.examples = 2500;
    }
    let few = study(few);
    let shown = figure(&few, "error").unwrap();
    shown.says(&["lower bound", "goal 0.14"]);
    assert_eq!(shown.of("bound").count(), few.results.cells.len(), "a bound a cell");
    assert!(shown.of("bound").all(|row| row[7].contains(": at least 0.")), "{:?}", shown.rows);
    assert!(shown.caption.contains("Hollow markers are lower bounds"), "{}", shown.caption);
}

/// The panel and the series of each cell, in a figure with a panel a batch size.
fn cells_of(study: &StudyResults) -> Vec<(String, String)> {
    let of = |cell: &Cell| (format!("batch size {}", cell.key.batch_size), format!("sparsity {}", cell.key.sparsity));
    study.results.cells.iter().map(of).collect()
}

/// Gives the first trial of every cell five measurements, the first at untrained weights and the last at its end: along the training L of a sparse
/// network is 3 times the dense one's and β half of it, and Δ is the same. At untrained weights L and β are much larger.
fn measure(results: &mut Results) {
    for cell in &mut results.cells {
        let sparse = cell.key.sparsity > 0.0;
        let (lipschitz, variance, norm) = if sparse { (1.5, 100.0, 3.0) } else { (0.5, 200.0, 2.0) };
        let steps = cell.trials[0].steps_run;
        let measurement = |number: u32| Measurement {
            step: steps * number / 4,
            loss: 2.5 - 0.5 * f64::from(number),
            gradient_norm: norm,
            squared_norms: norm * norm + variance * [8.0, 1.0, 1.0, 1.0, 0.5][number as usize],
            lipschitz: (number < 4).then_some(lipschitz * if number == 0 { 50.0 } else { 0.6 + 0.2 * f64::from(number) }),
        };
        cell.trials[0].measurements = (0..5).map(measurement).collect();
    }
}

#[test]
fn smoothness_has_its_figures_its_ratios_and_its_prediction() {
    let mut results = Synthetic::small().results();
    assert!(figure(&study(results.clone()), "lipschitz").is_none());
    measure(&mut results);
    let study = study(results.clone());
    for (name, words) in [
        ("lipschitz", ["Local Lipschitz constant L of ∇f", "sparsity 0.9", "batch size 2", "batch size 128"]),
        ("noise-scale", ["Gradient noise scale (examples)", "sparsity 0.9", "batch size 2", "batch size 128"]),
    ] {
        let shown = figure(&study, name).unwrap();
        shown.says(&words);
        for (panel, series) in cells_of(&study) {
            assert!(shown.of("line").any(|row| (&row[0], &row[1]) == (&panel, &series)), "{name}: {panel}, {series}");
        }
    }
    let fits = fits(&study);
    let smooth = analysis::smoothness(&study, &fits.iter().collect::<Vec<_>>());
    assert_eq!(smooth.len(), 8);
    for smooth in &smooth {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
        for along in smooth.along {
            near(along.decrease.value, 4.0);
            near(along.lipschitz.value, if smooth.key.sparsity > 0.0 { 1.5 } else { 0.5 });
            let (variance, squared) = if smooth.key.sparsity > 0.0 { (100.0, 9.0) } else { (200.0, 4.0) };
            near(along.gradient.value, squared);
            near(along.start_variance.value, 8.0 * variance);
            near(along.variance.value, variance);
            near(along.last_variance.value, variance / 2.0);
            near(smooth.noise_scale[0].value, 8.0 * variance / squared);
            near(smooth.noise_scale[1].value, variance / squared);
            assert!(along.c1.low.is_nan() && along.c1.high.is_nan(), "one trial has no interval");
        }
        assert_eq!((smooth.trials, smooth.measurements), (1, 5));
        assert!(smooth.fitted.as_ref().unwrap().critical().is_some());
        let Some(over) = smooth.over_dense else { continue };
        assert!(smooth.key.sparsity > 0.0);
        for over in over {
            near(over.lipschitz.value, 3.0);
            near(over.c1.value, 1.5);
            near(smooth.predicted_c1(&over).value, 1.5);
        }
    }
    assert_eq!(smooth.iter().filter(|smooth| smooth.over_dense.is_some()).count(), 4);

    // The smoothness of one file stands beside the steps-to-result of another of the same workload, whatever its goal.
    let mut alone = results;
    alone.configuration = alone.configuration.replace("goal_error = 0.14", "goal_error = 1e-6") + "\n[smoothness]\nevery = 100\n";
    alone.workload.goal_threshold = 0;
    alone.cells.iter_mut().flat_map(|cell| &mut cell.trials).filter(|trial| trial.status == Status::Complete).for_each(|trial| {
        (trial.status, trial.steps) = (Status::Incomplete, None);
    });
    let folder = tempfile::tempdir().unwrap();
    // The plot that dps-train draws of it beside the result file.
    analysis::steps_to_result_plot(&alone, &folder.path().join("whole.svg")).unwrap();
    let svg = std::fs::read_to_string(folder.path().join("whole.svg")).unwrap();
    assert!(svg.contains("\nLocal Lipschitz constant L of ∇f\n") && svg.contains("\nsparsity 0.9\n"), "{svg}");
    let files = vec![("whole.h5".to_owned(), alone), ("steps.h5".to_owned(), Synthetic::small().results())];
    let report = analysis::report(files, folder.path(), &Options::default()).unwrap();
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    let page = std::fs::read_to_string(&report.page).unwrap();
    assert_eq!(page.matches("<summary>What the theory predicts</summary>").count(), 1);
    // The study was run for its measurements: nothing is said of steps-to-result it cannot have.
    assert_eq!(page.matches("<summary>Steps-to-result K*</summary>").count(), 1);
    assert_eq!(page.matches("<summary>Fits</summary>").count(), 1);
    assert!(page.contains("none: every trial runs to its last step") && page.contains("<summary>Training loss</summary>"));
    // Batch size, sparsity, Δ, β at the start, along and at the end, L, their product; the law of the synthetic study is about 1.9.
    let row =
        "<td>128</td><td>0.9</td><td>mean</td><td>1.00</td><td>0.500</td><td>0.500</td><td>0.500</td><td>3.00</td><td>1.50</td><td>1.91";
    assert!(page.contains(row) && page.contains("does not say when β was measured"), "{page}");
    let mut theory = csv::Reader::from_path(folder.path().join("theory.csv")).unwrap();
    let heading = theory.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = theory.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2 * 8);
    let of = |row: &csv::StringRecord, column: &str| row[heading.iter().position(|name| name == column).unwrap()].to_owned();
    let sparse = rows.iter().find(|row| of(row, "sparsity") == "0.9" && of(row, "along_training") == "median").unwrap();
    let number = |column: &str| of(sparse, column).parse::<f64>().unwrap();
    assert!((number("predicted_c1_ratio") - 1.5).abs() < 1e-9 && (number("fitted_c1_ratio") - 1.907).abs() < 2e-3);
    // By proposition 4.1: ε is the mean of the gradient's squared norm, c1 is Δ·L·β/ε², c2 Δ/(η·ε) and c1/c2 L·β·η/ε.
    let [c1, c2, critical] = ["c1_by_gradient", "c2_by_gradient", "critical"].map(|name| number(&format!("predicted_{name}_ratio")));
    let gradient = number("along_squared_gradient_ratio");
    assert!(
        [(gradient, 2.25), (c1, 1.5 / 2.25_f64.powi(2)), (critical, c1 / c2)]
            .iter()
            .all(|(found, expected)| (found / expected - 1.0).abs() < 1e-9),
        "{c1} {c2} {critical} {gradient}"
    );
    assert!(page.contains("<th>L·β·η/ε</th>"), "{page}");
    assert!((number("start_loss"), of(sparse, "along_lipschitz_low").as_str()) == (2.5, ""), "{sparse:?}");
    assert_eq!([number("start_variance"), number("along_variance"), number("last_variance")].map(f64::round), [800.0, 100.0, 50.0]);
    let table = std::fs::read_to_string(folder.path().join("smoothness.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 8 * 5);
    assert!(folder.path().join("smoothness.md").is_file());
}

/// Appendix A.2 of the paper: c̃1 is proportional to L·H*·β and c̃2 to Δ, H* = Σ η_k² over the best trial's steps.
#[test]
fn where_the_learning_rate_decays_the_prediction_takes_the_squared_rates_of_the_best_trials() {
    let mut results = Synthetic::small().results();
    results.workload.schedule = "linear-decay".into();
    let decay = "\ndecay_steps = { min = 50, max = 900, scale = \"integer\" }\nend_learning_rate_factor = 0.01\n";
    results.configuration = results.configuration.replace("[search]\n", &format!("[search]{decay}"));
    results.configuration = results.configuration.replace("optimizer =", "schedule = \"linear-decay\"\noptimizer =");
    for (number, trial) in results.cells.iter_mut().flat_map(|cell| &mut cell.trials).enumerate() {
        trial.metaparameters.set(Metaparameter::DecaySteps, Some(f64::from(50 + 13 * (number as u32 % 60))));
        trial.metaparameters.set(Metaparameter::EndLearningRateFactor, Some(0.01));
    }
    measure(&mut results);
    let study = study(results);
    assert!(study.configuration.is_ok(), "{:?}", study.configuration);
    let squared_rates = |batch_size: u32, sparsity: f64| -> f64 {
        let best = study.grid().cell(batch_size, sparsity).unwrap().best().unwrap().clone();
        let [rate, steps] = [Metaparameter::LearningRate, Metaparameter::DecaySteps].map(|name| best.metaparameters.get(name).unwrap());
        let at = |k: u32| rate * (0.99 * (1.0 - (f64::from(k) / steps).min(1.0)) + 0.01);
        (0..best.steps.unwrap()).map(|k| at(k) * at(k)).sum()
    };
    let logs = [2, 8, 32, 128].map(|size| (squared_rates(size, 0.9) / squared_rates(size, 0.0)).ln());
    let expected = (logs.iter().sum::<f64>() / 4.0).exp();
    let fits = fits(&study);
    let smooth = analysis::smoothness(&study, &fits.iter().collect::<Vec<_>>());
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    for smooth in smooth.iter().filter(|smooth| smooth.key.sparsity > 0.0) {
        let (fitted, [over, _]) = (smooth.fitted.as_ref().unwrap(), smooth.over_dense.unwrap());
        near(fitted.squared_rates_ratio.unwrap().value, expected);
        near(smooth.predicted_c1(&over).value, 3.0 * 0.5 * expected);
        assert!(smooth.predicted_c1(&over).low.is_nan(), "one trial has no interval");
        near(fitted.c2_ratio.unwrap().value, fits[1].fit.as_ref().unwrap().c2.value / fits[0].fit.as_ref().unwrap().c2.value);
        // Without a search beside it, H is of the measured trials themselves.
        let alone = analysis::smoothness(&study, &[]).into_iter().find(|alone| alone.key == smooth.key).unwrap();
        let size = smooth.key.batch_size;
        near(alone.predicted_c1(&over).value, 1.5 * squared_rates(size, 0.9) / squared_rates(size, 0.0));
    }
    let folder = tempfile::tempdir().unwrap();
    let report = analysis::report(vec![("a.h5".to_owned(), study.results.clone())], folder.path(), &Options::default()).unwrap();
    let page = std::fs::read_to_string(&report.page).unwrap();
    assert!(page.contains("L·H*·β") && page.contains("<th>predicted c̃2</th>"));
}

#[test]
fn several_trials_give_intervals_of_ratios_seed_by_seed() {
    let mut results = Synthetic { trials: 3, ..Synthetic::small() }.results();
    measure(&mut results);
    // Every seed has its own L, twice the last one's, and the sparse network's is 2, 3 and 4.5 times the dense one's of the same seed.
    for cell in &mut results.cells {
        let measured = cell.trials[0].measurements.clone();
        for (trial, ratio) in cell.trials.iter_mut().zip([2.0, 3.0, 4.5]) {
            trial.measurements = measured.clone();
            let lipschitz = f64::from(1 << trial.index) * if cell.key.sparsity > 0.0 { ratio } else { 1.0 };
            trial.measurements.iter_mut().for_each(|found| found.lipschitz = found.lipschitz.map(|_| lipschitz));
        }
    }
    let study = study(results);
    let smooth = analysis::smoothness(&study, &[]);
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    // Logarithms of the ratios are ln 3 and ln 1.5 to either side: their deviation is ln 1.5, and Student's t of two degrees of freedom is 4.303.
    let margin = (4.303 * 1.5_f64.ln() / 3.0_f64.sqrt()).exp();
    for smooth in smooth.iter().filter(|smooth| smooth.key.sparsity > 0.0) {
        assert_eq!(smooth.trials, 3);
        for over in smooth.over_dense.unwrap() {
            near(over.lipschitz.value, 3.0);
            near(over.lipschitz.low, 3.0 / margin);
            near(over.lipschitz.high, 3.0 * margin);
            near(over.c1.value, 1.5);
            near(over.variance.high, 0.5);
        }
    }
    // The trials' range is shaded: of each of a cell's four steps the least and the largest of three seeds, L and a quarter of it, or 2 of it.
    let shown = figure(&study, "lipschitz").unwrap();
    for (panel, series) in cells_of(&study) {
        let of_cell = |drawn| shown.of(drawn).filter(|row| (&row[0], &row[1]) == (&panel, &series)).collect::<Vec<_>>();
        assert_eq!((of_cell("point").len(), of_cell("interval").len()), (4, 4));
        let ends = if series == "sparsity 0" { ["1", "4"] } else { ["2", "18"] };
        assert!(of_cell("interval").iter().all(|row| row[5..7] == ends), "{:?}", of_cell("interval"));
    }
}

#[test]
fn a_part_of_the_training_set_adds_noise_to_its_gradient_that_is_taken_off() {
    let mut results = Synthetic::small().results();
    measure(&mut results);
    let scale = |settings: &str| {
        let mut results = results.clone();
        results.configuration += settings;
        analysis::smoothness(&study(results), &[])[0].noise_scale[1].value
    };
    // β is 200 and ‖∇f‖² 4; of 54,000 examples 2,700 add β (1/2,700 − 1/54,000) to the latter; 40 add more than there is.
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    near(scale(""), 50.0);
    near(scale("\n[smoothness]\nevery = 100\n"), 50.0);
    near(scale("\n[smoothness]\nevery = 100\nexamples = 2700\n"), 200.0 / (4.0 - 200.0 * (1.0 / 2_700.0 - 1.0 / 54_000.0)));
    assert_eq!(scale("\n[smoothness]\nevery = 100\nexamples = 40\n"), f64::INFINITY);
}

/// Adam and warm-ups are none of the theory's, and a share that was held out of images of one's own says roughly how many are left.
#[test]
fn the_theory_says_what_it_does_not_know() {
    let page = |settings: &str, change: fn(&mut Results)| {
        let mut results = Synthetic::small().results();
        measure(&mut results);
        results.configuration += settings;
        change(&mut results);
        let folder = tempfile::tempdir().unwrap();
        let report = analysis::report(vec![("study.h5".to_owned(), results)], folder.path(), &Options::default()).unwrap();
        std::fs::read_to_string(report.page).unwrap()
    };
    let part = "\n[smoothness]\nevery = 100\nexamples = 2700\n";
    let plain = page(part, |_| {});
    assert!(!plain.contains("The theory is of") && plain.contains("Measured on the first 2,700 of 54,000 training examples"));
    let own = page(&format!("{part}[data]\nsource = \"own\"\n"), |_| {});
    assert!(own.contains("Measured on the first 2,700 of about 54,000 training examples"));
    let other = page(part, |results| {
        results.workload.optimizer = "adam".to_owned();
        let trials = results.cells.iter_mut().flat_map(|cell| &mut cell.trials);
        trials.for_each(|trial| trial.metaparameters.set(Metaparameter::WarmupSteps, Some(10.0)));
    });
    assert!(other.contains("knows nothing of adam and of warm-ups: its predictions below are no predictions of this study"));
}

#[test]
fn what_no_axis_can_show_is_left_out() {
    let mut results = Synthetic::small().results();
    for (number, cell) in results.cells.iter_mut().enumerate() {
        for trial in &mut cell.trials {
            trial.metaparameters.set(Metaparameter::LearningRate, Some([0.0, -1.0, f64::MAX, 0.1][number % 4]));
            trial.metaparameters.set(Metaparameter::Momentum, Some([1.0, 2.0, -5.0, 0.0][number % 4]));
            trial.curve.iter_mut().for_each(|point| point.loss = [f32::NAN, f32::INFINITY, -1.0, 0.0][number % 4]);
        }
    }
    let study = study(results);
    for figure in figures(&study, &fits(&study)) {
        let svg = figure.chart.svg(Style::Screen, Width::Wide);
        let numbers = svg.split(|letter: char| !letter.is_alphabetic());
        assert!(numbers.into_iter().all(|word| !["NaN", "inf"].contains(&word)), "{}: a number that is none was drawn", figure.name);
    }
}
