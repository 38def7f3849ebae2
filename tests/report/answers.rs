//! Answers of a report beyond steps-to-result: other goals, fixed budgets, critical batch sizes by several definitions, and the time to the goal.

use crate::support::synthetic::{EVERY, Synthetic};
use dps::analysis::{self, Bounds, Definition, Options, StudyResults, critical, fits, gather, sentences, smoothness, threshold, times};
use dps::records::{Cell, Confirmation, Measurement, Seeds, Start, Status, Training, Trial};
use dps::results::Results;
use dps::settings::Race;

fn study(results: Results) -> StudyResults {
    gather(vec![("study.h5".to_owned(), results)]).remove(0)
}

/// The rows of a report's table by the names of its columns.
fn table(results: Vec<Results>, options: &Options, name: &str) -> (Vec<String>, Vec<csv::StringRecord>) {
    let folder = tempfile::tempdir().unwrap();
    let files = results.into_iter().enumerate().map(|(number, results)| (format!("{number}.h5"), results)).collect();
    analysis::report(files, folder.path(), options).unwrap();
    let mut reader = csv::Reader::from_path(folder.path().join(name)).unwrap();
    let heading = reader.headers().unwrap().iter().map(str::to_owned).collect();
    (heading, reader.records().map(Result::unwrap).collect())
}

/// Steps of the first evaluation of a trial with at most so many errors.
fn first(cell: &Cell, threshold: u32) -> Option<u32> {
    let of = |trial: &dps::records::Trial| trial.curve.iter().find(|point| point.errors <= threshold).map(|point| point.step);
    cell.trials.iter().filter_map(of).min()
}

/// Trials that spent the step budget end a race too, before the end that the configuration says.
#[test]
fn a_race_that_the_step_budget_cut_is_known_from_its_trials() {
    let mut results = Synthetic { race: Race::Until(3.0), ..Synthetic::small() }.results();
    let budget = results.cells[0].steps_to_result().unwrap() + EVERY;
    let is_later = |trial: &&mut Trial| trial.status != Status::Infeasible && trial.steps_run > budget;
    let later: Vec<&mut Trial> = results.cells[0].trials.iter_mut().filter(is_later).collect();
    assert!(!later.is_empty());
    for trial in later {
        (trial.status, trial.steps, trial.steps_run) = (Status::Incomplete, None, budget);
    }
    let study = study(results);
    assert_eq!(study.race_of(&study.results.cells[0]), Race::Until(1.01), "4,608 over 4,592 steps, rounded up");
}

/// Of files of a cell with the same trials, the one with the most confirmations is shown, of such the one whose race ended last, whichever comes
/// first; and a note says what is not shown.
#[test]
fn the_file_that_knows_most_of_a_cell_is_shown() {
    let confirmed = |numbers: std::ops::Range<u32>, race: Race| {
        let mut results = Synthetic { race, ..Synthetic::small() }.results();
        for cell in &mut results.cells {
            let run = cell.trials[0].clone();
            let training =
                |number| Training { point: run.index, number, seeds: Seeds { weights: 1 << 31, order: 1 << 31 }, evaluate_every: EVERY };
            cell.confirmations = numbers.clone().map(|number| Confirmation { training: training(number), run: run.clone() }).collect();
        }
        results
    };
    let bare = confirmed(0..0, Race::Off);
    let (raced, one) = (confirmed(0..1, Race::Until(1.0)), confirmed(0..1, Race::Off));
    let (few, others) = (confirmed(0..2, Race::Off), confirmed(2..3, Race::Off));
    // More trials count for more than confirmations, and of files that know as much the first is shown, whatever steps it has.
    let (mut fewer, mut later) = (few.clone(), one.clone());
    fewer.cells.iter_mut().for_each(|cell| cell.trials.truncate(4));
    later.cells.iter_mut().flat_map(|cell| &mut cell.trials).for_each(|trial| trial.steps_run += EVERY);
    let shown = |files: [&Results; 2]| {
        let named = files.into_iter().zip(["a.h5", "b.h5"]).map(|(results, name)| (name.to_owned(), results.clone()));
        gather(named.collect()).remove(0)
    };
    for files in [[&one, &later], [&later, &one]] {
        assert!(shown(files).results.cells.iter().zip(&files[0].cells).all(|(shown, cell)| shown.agrees(cell)));
    }
    for (best, less, hidden) in
        [(&one, &bare, false), (&one, &raced, false), (&few, &one, false), (&few, &others, true), (&one, &fewer, true)]
    {
        for files in [[best, less], [less, best]] {
            let study = shown(files);
            assert!(study.results.cells.iter().zip(&best.cells).all(|(shown, cell)| shown.agrees(cell)));
            assert_eq!(study.notes.iter().any(|note| note.contains("have confirmations in another file")), hidden, "{:?}", study.notes);
        }
    }
}

/// A sparsity at which no trial reached the goal is no sparsity that was never asked for.
#[test]
fn the_answer_names_sparsities_without_a_fit() {
    let answer = |reached: usize| {
        let mut results = Synthetic::small().results();
        for cell in results.cells.iter_mut().filter(|cell| cell.key.sparsity > 0.0).skip(reached) {
            for trial in &mut cell.trials {
                (trial.status, trial.steps) = (Status::Incomplete, None);
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let report = analysis::report(vec![("study.h5".to_owned(), results)], folder.path(), &Options::default()).unwrap();
        report.answers[0].sentences[0].clone()
    };
    assert!(answer(0).ends_with(" At sparsity 0.9 no trial of 4 batch sizes reached the goal."), "{}", answer(0));
    assert!(answer(2).ends_with(" At sparsity 0.9 2 of 4 batch sizes have a result; a fit needs three."), "{}", answer(2));
    assert!(!answer(usize::MAX).contains("At sparsity 0.9 "));
}

#[test]
fn steps_to_other_goals_are_those_of_whole_curves_and_bounds_of_others() {
    let whole = study(Synthetic::small().results());
    assert_eq!([0.14, 0.2, 0.13].map(|goal| threshold(&whole, goal)), [840, 1200, 780].map(Some));
    for cell in &whole.results.cells {
        let steps = cell.steps_to_result().unwrap();
        // The study's own goal: K* itself.
        assert_eq!(Bounds::new(&whole, cell, 840), Bounds { low: Some(steps), high: Some(steps) });
        let easier = Bounds::new(&whole, cell, 1200);
        assert!(easier.exact() == first(cell, 1200) && easier.exact().unwrap() < steps, "{easier:?}");
        // Trials ended at the study's goal: a harder one may be reached at the next evaluation, or later.
        assert_eq!(Bounds::new(&whole, cell, 780), Bounds { low: Some(steps + EVERY), high: None });
    }
    // Evaluations of a race stop at 841 errors: where an easier goal was reached is not known before K*, a harder one was not reached there.
    for race in [Race::Until(1.0), Race::Until(3.0)] {
        let raced = study(Synthetic { race, ..Synthetic::small() }.results());
        for cell in &raced.results.cells {
            let steps = cell.steps_to_result().unwrap();
            assert_eq!(Bounds::new(&raced, cell, 840).exact(), Some(steps));
            assert_eq!(Bounds::new(&raced, cell, 1200), Bounds { low: Some(EVERY), high: Some(steps) });
            assert_eq!(Bounds::new(&raced, cell, 780), Bounds { low: Some(steps + EVERY), high: None });
        }
    }
    // Trials that spent the budget, or whose loss was not finite, never reach it.
    let mut none = Synthetic::small().results();
    for trial in &mut none.cells[0].trials {
        (trial.status, trial.steps) = (Status::Incomplete, None);
        trial.curve.retain(|point| point.errors > 840);
    }
    let none = study(none);
    assert_eq!(Bounds::new(&none, &none.results.cells[0], 840), Bounds { low: None, high: None });
}

#[test]
fn the_page_says_at_least_where_no_more_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { goals: vec![0.2, 0.13], ..Options::default() };
    let results = Synthetic { race: Race::Until(1.0), ..Synthetic::small() }.results();
    let report = analysis::report(vec![("x.h5".to_owned(), results.clone())], folder.path(), &options).unwrap();
    let page = std::fs::read_to_string(report.page).unwrap();
    // K* of batch size 2 is 4,592 dense and 8,736 sparse.
    assert!(page.contains("<td>2</td><td>16 to 4,592</td><td>16 to 8,736</td>"), "{page}");
    assert!(page.contains("<td>2</td><td>at least 4,608</td><td>at least 8,752</td>"));
    let (heading, rows) = table(vec![results], &options, "goals.csv");
    assert_eq!(heading.join(" "), "study batch_size sparsity goal_error goal_threshold steps_to_result_low steps_to_result_high");
    assert_eq!(rows.len(), 2 * 8);
    assert_eq!(rows[0].iter().skip(1).collect::<Vec<_>>().join(" "), "2 0 0.2 1200 16 4592");
    assert_eq!(rows[8].iter().skip(1).collect::<Vec<_>>().join(" "), "2 0 0.13 780 4608 ");
}

#[test]
fn errors_within_budgets_are_exact_where_every_trial_went_so_far() {
    let results = Synthetic::small().results();
    let (_, rows) = table(vec![results.clone()], &Options::default(), "budgets.csv");
    let (mut exact, mut bounds) = (0, 0);
    for row in &rows {
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        let cell = results
            .cells
            .iter()
            .find(|cell| u64::from(cell.key.batch_size) == number(1) && cell.key.sparsity.to_string() == row[2])
            .unwrap();
        let steps = if &row[3] == "steps" { number(4) } else { number(4) / number(1) };
        let within = cell.trials.iter().flat_map(|trial| &trial.curve).filter(|point| u64::from(point.step) <= steps);
        assert_eq!(number(6), u64::from(within.map(|point| point.errors).min().unwrap()), "every evaluation was whole");
        // Beyond K* the best trial would have gone on.
        let is_exact = steps < u64::from(cell.steps_to_result().unwrap() + EVERY);
        assert_eq!(number(5), if is_exact { number(6) } else { 0 }, "{row:?}");
        *(if is_exact { &mut exact } else { &mut bounds }) += 1;
    }
    assert!(exact > 10 && bounds > 10, "{exact} {bounds}");
    let names = |made: Synthetic| {
        let study = study(made.results());
        analysis::figures(&study, &fits(&study)).into_iter().map(|figure| figure.name.to_string()).collect::<Vec<_>>()
    };
    assert!(names(Synthetic::small()).contains(&"budgets".to_owned()));
    assert!(
        !names(Synthetic { race: Race::Until(1.0), ..Synthetic::small() }).contains(&"budgets".to_owned()),
        "a race knows bounds alone"
    );
}

#[test]
fn critical_batch_sizes_are_those_of_the_law_by_each_definition() {
    let batch_sizes: Vec<u32> = (0..14).map(|power| 1 << power).collect();
    let study = study(Synthetic { batch_sizes, sparsities: vec![0.0], trials: 3, ..Synthetic::small() }.results());
    let found = critical(&study, &fits(&study), &[], &smoothness(&study, &[]));
    let of = |definition| found.iter().find(|one| one.definition == definition).unwrap().estimate;
    let (c1, c2) = Synthetic::small().law(0.0);
    // K* is rounded up to whole evaluations: at B = 16 by up to 2.5 %, at large B by up to 13 %.
    let fit = of(Definition::Fit);
    assert!((fit.value / (c1 / c2) - 1.0).abs() < 0.15 && of(Definition::TradeOff) == fit, "{fit:?}");
    let steps = |size: u32| f64::from(study.grid().cell(size, 0.0).unwrap().steps_to_result().unwrap());
    // The fewest examples and the fewest steps are those of the ends.
    assert_eq!(of(Definition::Measured).value, steps(1) / steps(8192));
    // B·K* = c1 + c2 B is 1.2 of that at B = 1 at 0.2 c1/c2 and a little.
    let overhead = of(Definition::Overhead);
    let expected = |critical: f64| 0.2 * critical + 1.2;
    assert!((overhead.value / expected(c1 / c2) - 1.0).abs() < 0.15, "{overhead:?} of {}", expected(c1 / c2));
    for (found, critical) in [(overhead.value, fit.value), (overhead.low, fit.low), (overhead.high, fit.high)] {
        assert!((found / expected(critical) - 1.0).abs() < 1e-12, "{overhead:?} of {fit:?}");
    }
    assert!(!found.iter().any(|one| one.definition == Definition::NoiseScale), "nothing was measured");
    // β of 200 over ‖∇f‖² of 4 are 50 examples.
    let mut measured = Synthetic::small().results();
    let measurement = Measurement { step: 16, loss: 1.0, gradient_norm: 2.0, squared_norms: 204.0, lipschitz: None };
    measured.cells[0].trials[0].measurements = vec![measurement];
    let measured = self::study(measured);
    let found = critical(&measured, &fits(&measured), &[], &smoothness(&measured, &[]));
    let noise: Vec<_> = found.iter().filter(|one| one.definition == Definition::NoiseScale).collect();
    assert!(noise.len() == 1 && noise[0].sparsity == 0.0 && (noise[0].estimate.value - 50.0).abs() < 1e-9, "{noise:?}");
    // The curve that was fitted is that of the trade-off, (S/S_min − 1)(E/E_min − 1) = 1.
    let fit = fits(&study)[0].fit.clone().unwrap();
    let (c1, c2) = (fit.c1.value, fit.c2.value);
    for size in [2.0, 100.0, 5000.0] {
        let steps = fit.steps(size).value;
        assert!(((steps / c2 - 1.0) * (steps * size / c1 - 1.0) - 1.0).abs() < 1e-9);
    }
    let short = self::study(Synthetic { batch_sizes: vec![2, 4, 8], sparsities: vec![0.0], ..Synthetic::small() }.results());
    let found = critical(&short, &fits(&short), &[], &[]);
    assert_eq!(found.iter().find(|one| one.definition == Definition::Overhead).unwrap().estimate.value, f64::INFINITY);
}

#[test]
fn the_time_to_the_goal_is_the_steps_times_the_time_of_a_step() {
    let results = Synthetic::small().results();
    let all = times(&study(results.clone()));
    assert_eq!(all.len(), 8);
    for timed in &all {
        // Every step of the synthetic study takes a millisecond, on two ranks of one thread.
        assert!((timed.step_seconds.value - 1e-3).abs() < 1e-9 && (timed.seconds.value - 1e-3 * f64::from(timed.steps)).abs() < 1e-9);
        assert!((timed.seconds.low - 1e-3 * f64::from(timed.steps - EVERY)).abs() < 1e-6);
        assert!((timed.core_seconds.value - 2.0 * timed.seconds.value).abs() < 1e-9);
    }
    let said = sentences(&all);
    assert!(
        said[0].starts_with("Sparsity 0: the shortest time to the goal of the measured cells is that of batch size 128 on 2 ranks, 0.1760 seconds [0.1600 … 0.1760]"),
        "{said:?}"
    );
    assert!(said[1].starts_with(
        "Sparsity 0: the fewest core-seconds to the goal of the measured cells is that of batch size 128 on 2 ranks, 0.3520 core-seconds"
    ));
    // A step of every other trial takes 20 times as long: the interval of the quickest holds the next two.
    let mut noisy = results.clone();
    for trial in noisy.cells.iter_mut().flat_map(|cell| &mut cell.trials).filter(|trial| trial.index % 2 == 0) {
        trial.seconds *= 20.0;
    }
    let said = sentences(&times(&study(noisy)));
    assert!(
        said[0].contains("is not decided: batch size 128 on 2 ranks takes")
            && said[0].contains("batch size 8 on 2 ranks, batch size 32 on 2 ranks cannot be told"),
        "{said:?}"
    );
    // Equal cells on more ranks, in half the time: quicker, but dearer.
    let mut again = results.clone();
    again.environment.ranks = 8;
    again.cells.iter_mut().flat_map(|cell| &mut cell.trials).for_each(|trial| trial.seconds /= 2.0);
    let both = gather(vec![("2.h5".to_owned(), results.clone()), ("8.h5".to_owned(), again)]).remove(0);
    let all = times(&both);
    assert_eq!(all.iter().take(4).map(|timed| (timed.key.batch_size, timed.ranks)).collect::<Vec<_>>(), [(2, 2), (2, 8), (8, 2), (8, 8)]);
    assert!(both.results.cells == results.cells && both.notes.is_empty(), "{:?}", both.notes);
    let said = sentences(&all);
    assert!(
        said[0].contains("the shortest time to the goal of the measured cells is that of batch size 128 on 8 ranks, 0.08800 seconds"),
        "{said:?}"
    );
    assert!(said[1].contains("the fewest core-seconds to the goal of the measured cells is that of batch size 128 on 2 ranks"), "{said:?}");
    // Of a study that went on with other ranks nothing says which cells were measured on how many.
    let mut went_on = results.clone();
    let start = |ranks| Start { ranks, threads: went_on.environment.threads, ..Start::default() };
    went_on.environment.starts = vec![start(2), start(2)];
    assert_eq!(times(&study(went_on.clone())).len(), 8);
    went_on.environment.starts[0].ranks = 1;
    assert_eq!(times(&study(went_on)).len(), 0);
    // Parts on other ranks keep them.
    let mut parts = [0.0, 0.9].map(|sparsity| Synthetic { sparsities: vec![sparsity], ..Synthetic::small() }.results());
    parts[1].environment.ranks = 8;
    let (heading, rows) = table(parts.to_vec(), &Options::default(), "time.csv");
    let column = heading.iter().position(|name| name == "ranks").unwrap();
    let ranks: Vec<&str> = rows.iter().map(|row| &row[column]).collect();
    assert_eq!(ranks, ["2", "2", "2", "2", "8", "8", "8", "8"]);
}
