//! Keys for what the paper and its authors' public code do differently, or leave open (docs/choices.md), seen in the records of the program.

use crate::support::study::{Study, fail, train};
use dps::records::{Cell, Status, Trial};
use dps::results::{self, Results};

/// The results that the program writes of a study with some keys changed.
fn run(study: &Study, settings: &[&str]) -> Results {
    let options: Vec<&str> = ["--fresh"].into_iter().chain(settings.iter().flat_map(|setting| ["--set", setting])).collect();
    results::read(&study.measure(train(), "x.h5", &options)).unwrap()
}

fn timeless(results: &Results) -> Vec<Cell> {
    crate::support::records::timeless(results.cells.clone())
}

#[test]
fn smoothness_is_measured_on_steps_that_end_at_a_multiple_and_at_the_start_when_asked() {
    let small = [("batch_sizes = [2, 37]", "batch_sizes = [37]"), ("trials = 5", "trials = 2"), ("max_steps = 40", "max_steps = 20")];
    let study = Study::new(&small);
    let measured = |smoothness: &str| {
        let whole = ["execution.race=false", "workload.goal_error=1e-6", "search.learning_rate=0.001"];
        run(&study, &[&whole[..], &[smoothness]].concat())
    };
    let steps = |trial: &Trial| trial.measurements.iter().map(|found| (found.step, found.lipschitz.is_some())).collect::<Vec<_>>();
    let settings = "every = 6, points = 2, examples = 30";
    let plain = measured(&format!("smoothness={{ {settings} }}"));
    let started = measured(&format!("smoothness={{ {settings}, start = true }}"));
    let without_end = measured(&format!("smoothness={{ {settings}, whole_step = false }}"));
    let trials = |results: &Results| results.cells.iter().flat_map(|cell| cell.trials.clone()).collect::<Vec<Trial>>();
    assert_eq!(trials(&plain).len(), 4);
    let end_alone = measured("smoothness={ every = 6, points = 1, examples = 30 }");
    let others = trials(&without_end).into_iter().zip(trials(&end_alone));
    for ((plain, started), (without_end, end_alone)) in trials(&plain).iter().zip(&trials(&started)).zip(others) {
        assert_eq!(plain.status, Status::Incomplete);
        // From step 5 to 6, 11 to 12, 17 to 18; the last is the trial's end.
        assert_eq!(steps(plain), [(5, true), (11, true), (17, true), (20, false)]);
        assert_eq!(steps(started), [&[(0, true)][..], &steps(plain)[..]].concat());
        assert_eq!(started.measurements[1..], plain.measurements[..]);
        // The largest ratio at γ = 1/2 and 1 is that at γ = 1/2 or that at γ = 1.
        for ((both, half), end) in plain.measurements.iter().zip(&without_end.measurements).zip(&end_alone.measurements) {
            assert_eq!(both.lipschitz, half.lipschitz.zip(end.lipschitz).map(|(half, end)| half.max(end)), "{both:?} {half:?} {end:?}");
            assert!(both.step == 20 || half.lipschitz != end.lipschitz);
        }
        assert_eq!((&plain.curve, &plain.curve), (&started.curve, &without_end.curve), "measuring changes no step");
    }
}

#[test]
fn records_do_not_depend_on_lanes_where_the_goal_is_reached_at_the_last_step() {
    let study = Study::new(&[("batch_sizes = [2, 37]", "batch_sizes = [37]"), ("sparsities = [0, 0.9]", "sparsities = [0]")]);
    let free = run(&study, &[]);
    let steps = free.cells[0].steps_to_result().expect("the small study reaches its goal");
    // A study that ends where its best trial reaches the goal.
    let budget = format!("workload.max_steps={steps}");
    for smoothness in ["smoothness=", "smoothness={ every = 3, points = 1, examples = 30 }"] {
        let one_wave = run(&study, &[&budget, smoothness]);
        assert_eq!(one_wave.cells[0].steps_to_result(), Some(steps));
        assert!(one_wave.cells[0].count(Status::Incomplete) > 0 && one_wave.cells[0].count(Status::Censored) == 0, "{one_wave:?}");
        for lanes in [1, 2, 3] {
            let waves = run(&study, &[&budget, smoothness, &format!("execution.lanes={lanes}")]);
            assert_eq!(timeless(&waves), timeless(&one_wave), "{lanes} lanes, {smoothness}");
        }
    }
}

#[test]
fn all_trials_see_one_order_of_examples_where_it_is_shared() {
    // Trials that differ in nothing but weights and order; the first draws its order by the same seed either way.
    let alike = ["search.learning_rate=0.01", "search.momentum=0.5", "execution.race=false", "grid.sparsities=[0]", "grid.batch_sizes=[2]"];
    let study = Study::new(&[]);
    let run = |order: &str| timeless(&run(&study, &[&alike[..], &[order]].concat())).remove(0).trials;
    let (own, shared) = (run("data.order=per-trial"), run("data.order=shared"));
    assert_eq!(own[0], shared[0]);
    for (own, shared) in own.iter().zip(&shared).skip(1) {
        assert_eq!(own.mask_hash, shared.mask_hash);
        assert_ne!(own.curve, shared.curve);
    }
}

#[test]
fn the_goal_is_compared_in_integers_or_as_the_public_code_does() {
    let study = Study::new(&[("max_steps = 40", "max_steps = 4"), ("sparsities = [0, 0.9]", "sparsities = [0]")]);
    let threshold = |setting: &str| run(&study, &["workload.goal_error=0.1", setting]).workload.goal_threshold;
    // 54/60 in 32-bit floats is a little below 0.9.
    assert_eq!(threshold("workload.goal_comparison=integers"), 6);
    assert_eq!(threshold("workload.goal_comparison=float32"), 5);
}

/// Steps beyond the last evaluation are not taken, and nobody is told that they were.
#[test]
fn the_budget_ends_at_the_last_evaluation() {
    let study = Study::new(&[("batch_sizes = [2, 37]", "batch_sizes = [37]"), ("sparsities = [0, 0.9]", "sparsities = [0]")]);
    let never = ["workload.goal_error=1e-6", "search.learning_rate=0.001", "workload.evaluate_every=7"];
    let [between, at] = [20, 14].map(|steps| run(&study, &[&never[..], &[&format!("workload.max_steps={steps}")]].concat()));
    assert_eq!([between.workload.max_steps, at.workload.max_steps], [14; 2]);
    assert!(between.trials().all(|trial| trial.steps_run == 14 && trial.status == Status::Incomplete), "{between:?}");
    assert_eq!(timeless(&between), timeless(&at));
}

/// Biases that no sparsity removes are no reason to train a network without weights.
#[test]
fn a_sparsity_that_keeps_no_weight_is_refused() {
    let study = Study::new(&[]);
    for biases in ["prunable", "exempt"] {
        let options = ["--set", "grid.sparsities=[0.9999999]", "--set", &format!("pruning.biases={biases}")];
        let said = fail(&mut study.measuring(train(), "x.h5", &options), 2);
        assert!(said.contains("found 0.9999999, which keeps none; lower it"), "{biases}: {said}");
    }
}
