//! Confirmations: the best points of each cell, trained again with fresh seeds. They are the same on any ranks, in any waves, after interruptions and
//! in a study that grew; and a result file alone can be confirmed.

use std::collections::HashMap;
use std::ops::RangeBounds;
use std::path::Path;

use crate::support::records::{complete, complete_in_order, timeless};
use crate::support::study::{Study, dps_report, fail, kill, on, succeed, train};
use crate::support::synthetic::Synthetic;
use dps::journal::Journal;
use dps::records::{Cell, Confirmation, Status, Training, Wanted};
use dps::results::{self, Results};
use dps::settings;
use dps::statistics;
use dps::storage::Disk;
use serde_json::Value;

const CONFIRM: &str = "[confirm]\npoints = 2\nseeds = 3\nlimit = 2\n\n[search]";

/// A study of two cells of five trials, of which several reach the goal; `sections` stand in place of the line `[search]`.
fn study(sections: &str) -> Study {
    Study::new(&[
        ("batch_sizes = [2, 37]", "batch_sizes = [16]"),
        ("min = 1e-3, max = 1e4", "min = 1e-2, max = 1"),
        ("[search]", &format!("[execution]\nrace = 3\n\n{sections}")),
    ])
}

/// The cells that a quiet run ends with.
fn run(ranks: usize, study: &Study, output: &str, options: &[&str]) -> Vec<Cell> {
    complete_in_order(&study.measure(on(ranks), output, options))
}

/// Numbers of trials that ended in a run, and of confirmations.
fn trained(study: &Study, output: &str, options: &[&str]) -> (usize, usize) {
    let log = succeed(study.measuring(train(), output, options).args(["--progress", "json"]));
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let mut limit = None;
    for event in &events {
        match (event["event"].as_str(), &limit) {
            (Some("confirming"), _) => limit = Some(event["last_step"].clone()),
            (Some("confirmed"), _) => limit = None,
            (Some("evaluated"), Some(limit)) => assert!(event["last_step"] == *limit && event["left"]["seconds"].is_number(), "{event}"),
            _ => {}
        }
    }
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).cloned().collect::<Vec<_>>();
    let confirmed =
        of("confirming").iter().map(|event| event["trainings"].as_u64().unwrap() - event["done"].as_u64().unwrap()).sum::<u64>();
    (of("cell_finished").len(), confirmed as usize)
}

fn confirmations(cells: &[Cell]) -> Vec<&Confirmation> {
    cells.iter().flat_map(|cell| &cell.confirmations).collect()
}

#[test]
fn they_are_the_same_on_any_ranks_in_any_waves_and_after_a_kill_and_change_no_trial() {
    let study = study(CONFIRM);
    let expected = run(0, &study, "one.h5", &["--threads", "1"]);
    for cell in &expected {
        let best = cell.best().unwrap();
        assert_eq!(cell.confirmations.len(), 6, "2 points by 3 seeds");
        assert_eq!(cell.confirmations[0].training.point, best.index);
        for Confirmation { training, run } in &cell.confirmations {
            let fresh = (1 << 31) + u64::from(training.number);
            assert_eq!((training.seeds.weights, training.seeds.order), (fresh, fresh));
            assert_eq!(training.evaluate_every, 1, "a fiftieth of few steps");
            let trial = cell.trials.iter().find(|trial| trial.index == training.point).unwrap();
            assert_eq!(run.metaparameters, trial.metaparameters);
            assert!(run.steps_run <= 2 * best.steps.unwrap() && run.status != Status::Censored);
            assert!(run.curve.iter().zip(1..).all(|(point, step)| point.step == step));
        }
    }
    assert!(confirmations(&expected).iter().filter(|one| one.run.steps.is_some()).count() > 3, "too few reach the goal to compare");
    for one in confirmations(&expected[1..]) {
        let (point, number) = (one.training.point.to_string(), one.training.number.to_string());
        let mut command = study.subcommand("replay", "one.h5");
        command.args(["--batch-size", "16", "--sparsity", "0.9", "--trial", &point, "--confirmation", &number]);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains(&format!("confirmation {number} of trial {point}'s point, ")), "{output:?}");
    }
    let mut bare = expected.clone();
    bare.iter_mut().for_each(|cell| cell.confirmations.clear());
    assert_eq!(run(0, &study, "bare.h5", &["--set", "confirm.points=", "--set", "confirm="]), bare);

    assert_eq!(run(0, &study, "waves.h5", &["--set", "execution.lanes=2"]), expected);
    for ranks in [2, 3] {
        assert_eq!(run(ranks, &study, &format!("{ranks}.h5"), &["--threads", "1"]), expected, "{ranks} ranks");
    }
    for milliseconds in [60, 120, 180, 240, 300] {
        let options = ["--quiet", "--threads", "1", "--set", "execution.lanes=2", "--set", "execution.checkpoint_seconds=1"];
        kill(&mut study.measuring(train(), "killed.h5", &options), milliseconds);
    }
    assert_eq!(run(0, &study, "killed.h5", &[]), expected);
}

/// A journal from before the confirmations, in the place of the one that wrote them, does not cost the file that has them.
#[test]
fn confirmations_that_the_journal_does_not_know_are_moved_aside() {
    let study = study("[search]");
    run(0, &study, "x.h5", &[]);
    let journal = std::fs::read(study.at("x.journal")).unwrap();
    let confirmed = run(0, &study, "x.h5", &["--set", "confirm.points=1", "--set", "confirm.seeds=2", "--set", "confirm.limit=2"]);
    assert!(!confirmations(&confirmed).is_empty());
    std::fs::write(study.at("x.journal"), journal).unwrap();
    assert!(succeed(&mut study.measuring(train(), "x.h5", &[])).contains("confirmation 0 of trial"));
    assert_eq!(complete_in_order(&study.at("x.h5.old-1")), confirmed);
}

/// The trainings of an interrupted round that have ended are the quick ones: the result file has none of them until the others have ended too.
#[test]
fn the_result_file_has_whole_rounds_alone() {
    let study = study("[confirm]\npoints = 1\nseeds = 3\nlimit = 2\n\n[search]");
    let first = run(0, &study, "x.h5", &[]);
    let file = std::fs::read(study.at("x.h5")).unwrap();
    let more = ["--set", "confirm.seeds=7"];
    let whole = run(0, &study, "x.h5", &more);
    let sparse = |cells: &[Cell]| cells.iter().find(|cell| cell.key.sparsity > 0.0).unwrap().confirmations.clone();

    // The journal ends within the second round of the sparse cell.
    let (path, bytes) = (study.at("x.journal"), std::fs::read(study.at("x.journal")).unwrap());
    let journaled = |length: usize| {
        std::fs::write(&path, &bytes[..length]).unwrap();
        Journal::read(&path, &Disk).unwrap().map_or(0, |found| sparse(&found.finished).len())
    };
    let length = (0..bytes.len()).rev().find(|&length| journaled(length) == 5).unwrap();
    // A run of the other cell alone writes the file: with the first round of the sparse cell, or none where the file that knew that round is lost.
    for (file, expected) in [(Some(&file), sparse(&first)), (None, Vec::new())] {
        assert_eq!(journaled(length), 5);
        std::fs::remove_file(study.at("x.h5")).unwrap();
        file.iter().for_each(|bytes| std::fs::write(study.at("x.h5"), bytes).unwrap());
        succeed(study.measuring(train(), "x.h5", &["--quiet", "--sparsity", "0"]).args(more));
        let Results { cells, complete, .. } = results::read(&study.at("x.h5")).unwrap();
        assert_eq!((sparse(&timeless(cells)), complete), (expected, false));
        assert_eq!(trained(&study, "x.h5", &more), (0, 2));
        assert_eq!(complete_in_order(&study.at("x.h5")), whole);
    }
}

/// Trainings that an interrupted round left are evaluated on as often as they were, though the fewest steps of the cell have fallen since.
#[test]
fn an_interrupted_round_keeps_the_distance_of_its_evaluations() {
    let results = Synthetic::small().results();
    let section = "\n[confirm]\npoints = 1\nseeds = 4\nlimit = 4.0\nevaluate_every = 0\n\n[execution]";
    let study = settings::recorded("small", &results.configuration.replace("\n[execution]", section), &[]).unwrap().study;
    let cell = results.cells.last().unwrap();
    let usual = Wanted::of(cell, &results.cells, &study).unwrap();
    let left = |training: Training| Confirmation { training: Training { evaluate_every: 7, ..training }, run: cell.trials[0].clone() };
    let known: Vec<Confirmation> = usual.trainings.iter().copied().map(left).collect();
    let beside = |cell: &Cell| Wanted::beside(cell, &results.cells, &study, &known).unwrap().evaluate_every;
    assert_eq!((usual.evaluate_every, beside(cell)), (cell.steps_to_result().unwrap() / 50, 7));
    let of_file = usual.trainings.iter().map(|&training| left(Training { evaluate_every: 5, ..training }));
    let finer = of_file.map(|one| Confirmation { training: Training { evaluate_every: 5, ..one.training }, ..one }).collect();
    assert_eq!(beside(&Cell { confirmations: finer, ..cell.clone() }), 5);
}

#[test]
fn only_missing_ones_are_trained_when_there_are_to_be_more() {
    let study = study("[search]");
    let set = |points: u32, seeds: u32| [format!("confirm.points={points}"), format!("confirm.seeds={seeds}")];
    let with = |output: &str, points: u32, seeds: u32| {
        let [points, seeds] = set(points, seeds);
        trained(&study, output, &["--set", &points, "--set", &seeds])
    };
    assert_eq!(with("whole.h5", 2, 3), (2, 12));
    let whole = complete(&study.at("whole.h5"));

    assert_eq!(trained(&study, "grown.h5", &[]), (2, 0));
    // Cells that are measured and not yet confirmed are not done.
    let planned = |options: &[&str]| {
        let output = study.measuring(train(), "grown.h5", &[&["--plan"], options].concat()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(planned(&["--set", "confirm.points=2"]).contains("\nLeft: about ") && !planned(&[]).contains("Left: "));
    assert_eq!(with("grown.h5", 1, 2), (0, 4));
    assert_eq!(with("grown.h5", 1, 3), (0, 2));
    assert_eq!(with("grown.h5", 2, 1), (0, 6), "a study does not get smaller");
    assert_eq!(complete(&study.at("grown.h5")), whole);
    assert_eq!(trained(&study, "grown.h5", &[]), (0, 0));
    assert_eq!(complete(&study.at("grown.h5")), whole);

    // More trials may find other points.
    assert_eq!(trained(&study, "trials.h5", &["--trials", "2", "--set", "confirm.points=2", "--set", "confirm.seeds=3"]).0, 2);
    trained(&study, "trials.h5", &[]);
    assert_eq!(complete(&study.at("trials.h5")), whole);

    let said = fail(&mut study.measuring(train(), "grown.h5", &["--set", "confirm.vary=[\"order\"]"]), 7);
    assert!(said.contains("confirm.vary: journal has"), "{said}");
}

/// A cell has the points of the cells next to it too, whichever of them is measured or confirmed first.
#[test]
fn points_of_neighbours_are_confirmed_too() {
    let settings =
        |neighbours: bool| format!("[confirm]\npoints = 1\nneighbours = {neighbours}\nseeds = 2\nlimit = 2\n\n[search]\nfirst_trial = 6");
    let (study, alone) = (study(&settings(true)), study(&settings(false)));
    let whole = run(0, &study, "whole.h5", &[]);
    let best: Vec<u32> = whole.iter().map(|cell| cell.best().unwrap().index).collect();
    let points: Vec<Vec<u32>> = whole.iter().map(Cell::confirmed_points).collect();
    assert_eq!(points, [[best[0], best[1]], [best[1], best[0]]], "each cell's own point, then the other's");
    assert_ne!(best[0], best[1]);
    assert_eq!(run(2, &study, "ranks.h5", &["--threads", "1"]), whole);

    // One cell after the other, as jobs do that have a cell each.
    for (file, sparsity) in [("dense.h5", "0"), ("sparse.h5", "0.9")] {
        assert_eq!(run(0, &study, file, &["--sparsity", sparsity])[0].confirmed_points().len(), 1);
    }
    succeed(train().arg("merge").args(["dense.h5", "sparse.h5"].map(|name| study.at(name))).arg("-o").arg(study.at("parts.h5")));
    assert!(!results::read(&study.at("parts.h5")).unwrap().complete);
    succeed(study.subcommand("confirm", "parts.h5").arg("--quiet"));
    assert_eq!(complete_in_order(&study.at("parts.h5")), whole);

    // Another file has the points that are asked for, as if the first one had none.
    run(0, &study, "more.h5", &["--set", "confirm.points=3"]);
    assert_eq!(confirmed_apart(&study, "more.h5", "fewer.h5", &["--set", "confirm.points=1"]), whole);

    // A study that asks for them later.
    let before = run(0, &alone, "later.h5", &[]);
    assert!(before.iter().all(|cell| cell.confirmations.len() == 2));
    assert_eq!(trained(&alone, "later.h5", &["--set", "confirm.neighbours=true"]), (0, 4));
    assert_eq!(complete_in_order(&alone.at("later.h5")), whole);
}

/// The confirmations are those that all seeds would give, as far as the rule of precision takes them.
#[test]
fn seeds_are_added_until_the_mean_is_known_well_enough() {
    let study = study("[confirm]\npoints = 1\nseeds = 12\nlimit = 2\n\n[search]");
    let whole = run(0, &study, "whole.h5", &[]);
    let half_width = |cell: &Cell, seeds: u32| {
        let best = f64::from(cell.steps_to_result().unwrap());
        let of_point = |point: u32| cell.confirmations_of(point).filter(|one| one.training.number < seeds).map(steps).collect::<Vec<_>>();
        statistics::half_width(&cell.confirmed_points().into_iter().map(of_point).collect::<Vec<_>>(), 2.0 * best)
    };
    // A certain one of the cells needs no more than the first seeds.
    let precision = whole.iter().map(|cell| half_width(cell, 8)).fold(f64::INFINITY, f64::min) + 1e-6;
    let needed = |cell: &Cell| statistics::seeds(precision, 12, |seeds| Some(half_width(cell, seeds)));
    let seeds: Vec<u32> = whole.iter().map(needed).collect();
    assert!(seeds.iter().any(|&seeds| seeds < 12) && seeds.iter().any(|&seeds| seeds > 8), "nothing to see: {seeds:?}");
    let mut expected = whole.clone();
    for (cell, seeds) in expected.iter_mut().zip(seeds) {
        cell.confirmations.retain(|one| one.training.number < seeds);
    }
    let precision = format!("confirm.precision={precision}");
    let set = ["--set", &precision];
    expect_however_it_runs(&study, &set, &expected);

    // All seeds are more than any precision asks for.
    let missing = confirmations(&whole).len() - confirmations(&expected).len();
    assert_eq!(trained(&study, "one.h5", &[]), (0, missing));
    assert_eq!(trained(&study, "one.h5", &set), (0, 0));
    assert_eq!(complete_in_order(&study.at("one.h5")), whole);
}

/// The cells of the file `to`, into which the file `from` is confirmed.
fn confirmed_apart(study: &Study, from: &str, to: &str, options: &[&str]) -> Vec<Cell> {
    succeed(study.subcommand("confirm", from).arg("--quiet").arg("-o").arg(study.at(to)).args(options));
    complete_in_order(&study.at(to))
}

/// The steps of a confirmation, infinite where it failed.
fn steps(one: &Confirmation) -> f64 {
    one.steps_within(u32::MAX)
}

/// The file `one.h5`, and runs that are killed and then finished by two ranks in other waves, have these cells.
fn expect_however_it_runs(study: &Study, set: &[&str], expected: &[Cell]) {
    assert_eq!(run(0, study, "one.h5", set), expected);
    for milliseconds in [150, 300] {
        let options = [set, &["--quiet", "--threads", "1", "--set", "execution.lanes=2", "--set", "execution.checkpoint_seconds=1"]];
        kill(&mut study.measuring(train(), "killed.h5", &options.concat()), milliseconds);
    }
    assert_eq!(run(2, study, "killed.h5", &[set, &["--threads", "1", "--set", "execution.lanes=3"]].concat()), expected);
}

/// How many trainings of a cell failed, of the seeds with these numbers.
fn failures(cell: &Cell, numbers: impl RangeBounds<u32>) -> usize {
    cell.confirmations.iter().filter(|one| numbers.contains(&one.training.number) && one.run.steps.is_none()).count()
}

/// Points that are plainly slower have no more seeds than it took to see that; the others have the confirmations that they have without that rule.
#[test]
fn plainly_slower_points_get_no_more_seeds() {
    let study = study("[confirm]\npoints = 4\nseeds = 18\nlimit = 2\n\n[search]");
    let whole = run(0, &study, "whole.h5", &[]);
    let mut expected = whole.clone();
    let mut seeds_of_cells = Vec::new();
    for (cell, all) in expected.iter_mut().zip(&whole) {
        let limit = 2.0 * f64::from(cell.steps_to_result().unwrap());
        let points = all.confirmed_points();
        let steps: Vec<Vec<f64>> = points.iter().map(|&point| all.confirmations_of(point).map(steps).collect()).collect();
        let seeds = statistics::seeds_in_play(&steps, limit, 18);
        cell.confirmations.retain(|one| {
            let place = points.iter().position(|&point| point == one.training.point).unwrap();
            one.training.number < seeds[place]
        });
        seeds_of_cells.push(seeds);
    }
    let all_seeds = seeds_of_cells.concat();
    assert!(all_seeds.contains(&16) && all_seeds.contains(&18), "nothing to see: {seeds_of_cells:?}");
    let set = ["--set", "confirm.drop_slower=true"];
    expect_however_it_runs(&study, &set, &expected);
    // The report makes its means of the points in play, with all their seeds.
    succeed(dps_report().arg(study.at("one.h5")).arg("-o").arg(study.at("report")));
    let mut table = csv::Reader::from_path(study.at("report").join("confirmed.csv")).unwrap();
    let rows: Vec<HashMap<String, String>> = table.deserialize().map(Result::unwrap).collect();
    let in_play = |seeds: &[u32]| seeds.iter().filter(|&&seeds| seeds == 18).count().to_string();
    let found: Vec<[&str; 2]> = rows.iter().map(|row| ["seeds", "points"].map(|name| row[name].as_str())).collect();
    let expected: Vec<String> = seeds_of_cells.iter().map(|seeds| in_play(seeds)).collect();
    assert_eq!(found, expected.iter().map(|points| ["18", points]).collect::<Vec<_>>());

    // Seeds that points have had before stay, and more seeds are for those in play alone.
    assert_eq!(trained(&study, "whole.h5", &set), (0, 0));
    assert_eq!(complete_in_order(&study.at("whole.h5")), whole);
    assert_eq!(trained(&study, "one.h5", &["--set", "confirm.seeds=19"]).1, all_seeds.iter().filter(|&&seeds| seeds == 18).count());
    // So do failures, which are trained on to a higher limit.
    assert!(whole.iter().any(|cell| failures(cell, 16..) > 0), "no training of a later seed fails");
    let higher = run(0, &study, "whole.h5", &[&set[..], &["--set", "confirm.limit=3"]].concat());
    for (cell, before) in higher.iter().zip(&whole) {
        assert_eq!(cell.confirmations.len(), before.confirmations.len());
        assert!(failures(cell, 0..) <= failures(before, 0..));
    }
}

/// A training that failed at a lower limit is known to have failed until it is trained on, in cells that are not confirmed again too.
#[test]
fn a_higher_limit_loses_no_failure() {
    let study = study("[confirm]\npoints = 1\nseeds = 8\nlimit = 1\n\n[search]");
    let low = run(0, &study, "low.h5", &[]);
    let high = run(0, &study, "high.h5", &["--set", "confirm.limit=8"]);
    assert!(confirmations(&low[1..]).iter().any(|one| one.run.steps.is_none()), "no training of the other cell fails at the low limit");

    let mut confirm = study.subcommand("confirm", "low.h5");
    succeed(confirm.arg("-o").arg(study.at("one.h5")).args(["--quiet", "--set", "confirm.limit=8", "--set", "grid.sparsities=[0]"]));
    let Results { cells, complete, .. } = results::read(&study.at("one.h5")).unwrap();
    assert!(!complete);
    assert_eq!(timeless(cells), [high[0].clone(), low[1].clone()]);
    let said = succeed(dps_report().arg(study.at("one.h5")).arg("-o").arg(study.at("report")));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("of the 8 trainings that the configuration asks for confirm it so far"), "{said}");
    assert_eq!(run(0, &study, "one.h5", &["--set", "confirm.limit=8"]), high);
    // Trials and cells that are not measured are not confirmed.
    for (setting, words) in [("grid.trials=6", "6 trials, where it has 5"), ("grid.batch_sizes=[16, 38]", "batch size 38")] {
        let said = fail(study.subcommand("confirm", "low.h5").args(["--set", setting]), 2);
        assert!(said.contains(words), "{said}");
    }
}

/// Trainings that go on after the goal reach it where others do, see all validation examples, and say when the mean error reaches it.
#[test]
fn the_mean_error_is_known_where_trainings_go_on() {
    let study = study("[confirm]\npoints = 1\nseeds = 4\nlimit = 3\n\n[search]");
    let set = ["--set", "confirm.mean_error=true"];
    let short = run(0, &study, "short.h5", &[]);
    let whole = run(0, &study, "whole.h5", &set);
    let examples = results::read(&study.at("whole.h5")).unwrap().workload.validation_examples;
    for (short, whole) in short.iter().zip(&whole) {
        let last = 3 * whole.steps_to_result().unwrap();
        for (one, other) in short.confirmations.iter().zip(&whole.confirmations) {
            assert_eq!((one.run.status, one.run.steps, other.run.steps_run), (other.run.status, other.run.steps, last));
            assert!(other.run.curve.len() == last as usize && other.run.curve.iter().all(|point| point.examples == examples));
        }
    }
    assert!(confirmations(&whole).iter().filter(|one| one.run.steps.is_some()).count() > 4, "nothing to see");
    assert_eq!(run(2, &study, "two.h5", &[&set[..], &["--threads", "1", "--set", "execution.lanes=3"]].concat()), whole);
    for milliseconds in [100, 200, 300] {
        let options = [&set[..], &["--quiet", "--threads", "1", "--set", "execution.lanes=2", "--set", "execution.checkpoint_seconds=1"]];
        kill(&mut study.measuring(train(), "killed.h5", &options.concat()), milliseconds);
    }
    assert_eq!(run(0, &study, "killed.h5", &set), whole);
    // Another file has none of the trainings that end otherwise.
    assert_eq!(confirmed_apart(&study, "short.h5", "longer.h5", &set), whole);
    assert_eq!(confirmed_apart(&study, "whole.h5", "shorter.h5", &["--set", "confirm.mean_error=false"]), short);
    // A higher limit goes on further; a study that was told otherwise is another one.
    let further = [&set[..], &["--set", "confirm.limit=4"]].concat();
    assert_eq!(run(0, &study, "killed.h5", &further), run(0, &study, "further.h5", &further));
    fail(&mut study.measuring(train(), "killed.h5", &[]), 7);

    let of_last = whole.last().unwrap();
    let point = of_last.confirmations[0].training.point.to_string();
    let mut replay = study.subcommand("replay", "whole.h5");
    succeed(replay.args(["--batch-size", "16", "--sparsity", "0.9", "--trial", &point, "--confirmation", "0"]));
    let report = |name: &str| {
        succeed(dps_report().arg(study.at(name)).arg("-o").arg(study.at("report")));
        let mut table = csv::Reader::from_path(study.at("report").join("confirmed.csv")).unwrap();
        let column = table.headers().unwrap().iter().position(|name| name == "steps_of_mean_error").unwrap();
        table.records().map(|row| row.unwrap()[column].to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(report("short.h5"), ["", ""]);
    assert!(report("whole.h5").iter().all(|steps| steps.parse::<f64>().is_ok()), "{:?}", report("whole.h5"));
}

#[test]
fn a_result_file_alone_is_confirmed_without_training_a_trial_again() {
    let study = study("[search]");
    let set = ["--set", "confirm.points=2", "--set", "confirm.seeds=2", "--set", "confirm.limit=2"];
    let whole = run(0, &study, "whole.h5", &set);
    run(0, &study, "x.h5", &[]);
    std::fs::remove_file(study.at("x.journal")).unwrap();
    // A program that recorded no starts left such a file.
    let mut bare = results::read(&study.at("x.h5")).unwrap();
    bare.environment.starts.clear();
    results::write(&study.at("x.h5"), &bare).unwrap();
    let before = std::fs::read(study.at("x.h5")).unwrap();
    let confirm = |output: Option<&str>| {
        let mut command = study.subcommand("confirm", "x.h5");
        command.args(set).arg("--quiet");
        output.map(|output| command.arg("--output").arg(study.at(output)));
        succeed(&mut command);
    };
    // A file of its own, then the same file.
    confirm(Some("y.h5"));
    assert_eq!(complete_in_order(&study.at("y.h5")), whole);
    assert_eq!(std::fs::read(study.at("x.h5")).unwrap(), before);
    confirm(None);
    assert_eq!(complete_in_order(&study.at("x.h5")), whole);
    // A file of its own has fewer points and seeds, and a lower limit, where it is asked for these.
    let fewer = ["confirm.points=1", "confirm.seeds=1", "confirm.limit=1.5"];
    let mut command = study.subcommand("confirm", "x.h5");
    command.args(fewer.iter().flat_map(|setting| ["--set", setting])).arg("--output").arg(study.at("fewer.h5"));
    assert!(!succeed(&mut command).contains("an earlier run of the study had"));
    assert_eq!(complete_in_order(&study.at("fewer.h5")), run(0, &study, "few.h5", &fewer.map(|setting| ["--set", setting]).concat()));
    // An equal command finds that all is done, and the study goes on as any other.
    confirm(None);
    assert_eq!(run(0, &study, "x.h5", &[]), whole);

    let table = dps::analysis::table(&results::read(&study.at("x.h5")).unwrap(), None);
    let confirmed = table.split("Confirmed steps").nth(1).unwrap();
    assert!(confirmed.contains(" of 2\n") && table.lines().all(|line| line.chars().count() <= 80), "{table}");

    // A part of the study without confirmations and one with them are one study.
    succeed(train().arg("merge").arg(study.at("y.h5")).arg(study.at("whole.h5")).arg("-o").arg(study.at("merged.h5")));
    assert_eq!(complete_in_order(&study.at("merged.h5")), whole);
    // In a report they are one study too, with a table of confirmations.
    let report = study.at("report");
    succeed(dps_report().args(["y.h5", "x.h5"].map(|name| study.at(name))).arg("-o").arg(&report));
    // In the layout of Shallue et al. they are studies of their own, which are not taken for trials when they are read.
    let export = |source: &Path, name: &str| {
        succeed(dps_report().arg(source).arg("--shallue").arg(study.at(name)).arg("-o").arg(study.at("again")));
    };
    export(&study.at("x.h5"), "exported");
    for cell in &whole {
        let model = if cell.key.sparsity == 0.0 { "simple_cnn".to_owned() } else { format!("simple_cnn_sparsity_{}", cell.key.sparsity) };
        let place = study.at(&format!("exported/fashion_mnist/{model}_confirmed/momentum/{}", cell.key.batch_size));
        for (number, Confirmation { training, run }) in cell.confirmations.iter().enumerate() {
            let metadata = std::fs::read_to_string(place.join(number.to_string()).join("metadata.json")).unwrap();
            let ours: Value = serde_json::from_str::<Value>(&metadata).unwrap()["dps"].clone();
            assert_eq!((&ours["confirmation"]["point"], &ours["steps_to_result"]), (&training.point.into(), &run.steps.into()));
            let rows = std::fs::read_to_string(place.join(number.to_string()).join("measurements.csv")).unwrap();
            assert_eq!(rows.lines().count(), 1 + run.curve.len());
        }
    }
    succeed(dps_report().arg(study.at("exported")).arg("-o").arg(study.at("read")));
    let read = std::fs::read_to_string(study.at("read/cells.csv")).unwrap();
    assert_eq!(read.lines().count(), 1 + whole.len(), "{read}");
    let table = std::fs::read_to_string(report.join("confirmations.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + confirmations(&whole).len(), "{table}");
    assert!(table.starts_with("study,batch_size,sparsity,point,number,weight_seed,order_seed,status,steps,"), "{table}");
    let starts = results::read(&study.at("x.h5")).unwrap().environment.starts;
    assert_eq!(starts.len(), 4, "the first one measured the trials: {starts:?}");
    assert!(starts[0].began > 0 && starts.is_sorted_by_key(|start| start.began), "{starts:?}");
}

#[test]
fn cells_without_a_point_to_confirm_are_named() {
    let study =
        Study::new(&[("goal_error = 0.3", "goal_error = 0.001"), ("max_steps = 40", "max_steps = 4"), ("trials = 5", "trials = 1")]);
    study.measure(train(), "x.h5", &[]);
    let said = succeed(&mut study.subcommand("confirm", "x.h5"));
    let cells =
        "no point to confirm: batch size 2, sparsity 0; batch size 2, sparsity 0.9; batch size 37, sparsity 0; batch size 37, sparsity 0.9";
    assert!(said.contains(cells), "{said}");
}

/// Random numbers that do not vary are those of the point's own trial: with nothing but the order fresh, all trainings of a point have its mask.
#[test]
fn weights_and_order_vary_apart() {
    let study = study("[confirm]\npoints = 1\nseeds = 2\nlimit = 20\nevaluate_every = 4\n\n[search]");
    let one = ["--sparsity", "0.9"];
    let both = run(0, &study, "both.h5", &one);
    let order = run(0, &study, "order.h5", &[&one[..], &["--set", "confirm.vary=[\"order\"]"]].concat());
    let weights = run(0, &study, "weights.h5", &[&one[..], &["--set", "confirm.vary=[\"weights\"]"]].concat());
    let best = both[0].best().unwrap();
    let seeds =
        |cells: &[Cell]| confirmations(cells).iter().map(|one| (one.training.seeds.weights, one.training.seeds.order)).collect::<Vec<_>>();
    let (own, fresh) = (u64::from(best.index), 1 << 31);
    assert_eq!(seeds(&both), [(fresh, fresh), (fresh + 1, fresh + 1)]);
    assert_eq!(seeds(&order), [(own, fresh), (own, fresh + 1)]);
    assert_eq!(seeds(&weights), [(fresh, own), (fresh + 1, own)]);
    let masks = |cells: &[Cell]| confirmations(cells).iter().map(|one| one.run.mask_hash).collect::<Vec<_>>();
    assert_eq!(masks(&order), [best.mask_hash; 2]);
    assert_eq!(masks(&weights), masks(&both));
    let first = |cells: &[Cell]| confirmations(cells)[0].run.curve[0].loss.to_bits();
    assert!(first(&both) != first(&order) && first(&both) != first(&weights) && first(&order) != first(&weights));

    // Another file of the same trials may be confirmed in another way, and a report tells what each draws.
    let vary = ["--set", "confirm.vary=[\"order\"]", "--quiet"];
    let confirm = |output: &str| {
        let mut command = study.subcommand("confirm", "both.h5");
        command.args(vary).arg("--output").arg(study.at(output));
        command
    };
    succeed(&mut confirm("apart.h5"));
    assert_eq!(complete_in_order(&study.at("apart.h5")), order);
    // A file keeps its confirmations.
    fail(&mut confirm("both.h5"), 7);
    assert_eq!(complete_in_order(&study.at("both.h5")), both);
    assert!(both.iter().chain(&order).flat_map(|cell| &cell.confirmations).all(|one| one.run.steps.is_some()), "nothing to see");
    succeed(dps_report().args(["both.h5", "weights.h5", "apart.h5"].map(|name| study.at(name))).arg("-o").arg(study.at("report")));
    let table = std::fs::read_to_string(study.at("report/variances.csv")).unwrap();
    let fresh: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').nth(3).unwrap()).collect();
    assert_eq!(fresh, ["weights and order", "weights", "order"], "{table}");
}
