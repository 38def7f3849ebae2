//! Verdicts of a report on the paper's claims: each rule on studies whose steps-to-result are known.

use crate::support::synthetic::{Synthetic, normal};
use dps::analysis::{Claim, Finding, Options, StudyResults, Verdict, claims, fits, gather, holm, report};
use dps::optimizer::Metaparameter;
use dps::records::{CellKey, Status};
use dps::settings::Race;

use Verdict::{DoesNotHold, Holds, Undecided};

/// Batch sizes 2 to 16,384, as in the paper.
fn papers() -> Vec<u32> {
    (1..15).map(|power| 1 << power).collect()
}

/// Trials of a cell.
const TRIALS: u32 = 12;

/// A study whose cells have these steps-to-result, by their first trials, of which one learning rate follows from the batch size.
fn study(optimizer: &'static str, batch_sizes: Vec<u32>, steps: &dyn Fn(CellKey) -> f64) -> StudyResults {
    let synthetic = Synthetic { optimizer, batch_sizes, trials: TRIALS, race: Race::Until(3.0), ..Synthetic::small() };
    let mut results = synthetic.results();
    results.workload.evaluate_every = 1;
    for cell in &mut results.cells {
        let best = steps(cell.key).round() as u32;
        for trial in &mut cell.trials {
            (trial.status, trial.steps, trial.steps_run) = (Status::Censored, None, 4 * best + 16);
        }
        (cell.trials[0].status, cell.trials[0].steps) = (Status::Complete, Some(best));
    }
    gather(vec![("x.h5".to_owned(), results)]).remove(0)
}

/// The findings of a study beside SGD's.
fn findings(study: &StudyResults, sgd: Option<&StudyResults>) -> Vec<Finding> {
    claims(study, &fits(study), sgd)
}

/// Verdict on a claim at a sparsity.
fn verdict(findings: &[Finding], claim: Claim, sparsity: f64) -> Verdict {
    let found: Vec<&Finding> = findings.iter().filter(|finding| finding.claim == claim && finding.sparsity == sparsity).collect();
    assert_eq!(found.len(), 1, "{claim:?} at {sparsity}");
    found[0].verdict
}

/// c1/B + c2 with a scatter of so much, the sparse network's c1 and c2 so many times the dense one's.
fn law(c1: f64, c2: f64, sparse: (f64, f64), scatter: f64) -> impl Fn(CellKey) -> f64 {
    move |key| {
        let (c1, c2) = if key.sparsity > 0.0 { (c1 * sparse.0, c2 * sparse.1) } else { (c1, c2) };
        let noise = normal(u64::from(key.batch_size) * 2 + u64::from(key.sparsity > 0.0));
        (c1 / f64::from(key.batch_size) + c2) * (scatter * noise).exp()
    }
}

#[test]
fn regimes_are_found_where_they_were_measured() {
    let claims = [Claim::Linear, Claim::Diminishing, Claim::Maximal];
    let of = |sizes: Vec<u32>, c2: f64, scatter: f64| {
        let found = findings(&study("momentum", sizes, &law(4e6, c2, (2.0, 2.0), scatter)), None);
        claims.map(|claim| verdict(&found, claim, 0.0))
    };
    // The critical batch size is 400: linear below 21, maximal above 7,600.
    assert_eq!(of(papers(), 1e4, 0.01), [Holds, Holds, Holds]);
    assert_eq!(of(vec![64, 256, 1024, 4096], 1e4, 0.01), [Undecided, Holds, Undecided]);
    assert_eq!(of(vec![2, 4, 8, 16], 1e4, 0.0), [Holds, Undecided, Undecided]);
    // Three points do not know whether steps fall in proportion.
    assert_eq!(of(vec![2, 4, 8], 1e4, 0.0), [Undecided; 3]);
    // The critical batch size is 4: nothing measured is linear. It is a million: nothing is maximal.
    assert_eq!(of(papers(), 1e6, 0.01), [DoesNotHold, Holds, Holds]);
    assert_eq!(of(papers(), 4.0, 0.01), [Holds, DoesNotHold, DoesNotHold]);
    // The interval of the critical batch size allows two regimes at the end, neither of them the claimed one.
    assert_eq!(of(papers(), 10.0, 0.05)[2], DoesNotHold);
    assert_eq!(of(papers(), 4e7, 0.05)[0], DoesNotHold);
    // Four scattered points decide nothing.
    assert_eq!(of(vec![128, 256, 512, 1024], 1e4, 0.8), [Undecided; 3]);
}

/// The fit by c1/B + c2 is linear at small batch sizes by its form. The exponent says whether the steps are.
#[test]
fn steps_that_fall_slower_than_batches_grow_are_not_linear() {
    let of = |exponent: f64| {
        let steps =
            move |key: CellKey| 4e6 / f64::from(key.batch_size).powf(exponent) * (0.01 * normal(u64::from(key.batch_size))).exp() + 10.0;
        verdict(&findings(&study("momentum", papers(), &steps), None), Claim::Linear, 0.0)
    };
    assert_eq!([of(0.6), of(1.0)], [DoesNotHold, Holds]);
}

#[test]
fn sparse_networks_are_compared_by_intervals() {
    let of = |sparse: (f64, f64), scatter: f64| findings(&study("momentum", papers(), &law(4e6, 1e4, sparse, scatter)), None);
    let claims = [Claim::MoreSteps, Claim::Times, Claim::TwoToFour, Claim::RatioFalls, Claim::CriticalBatchSize, Claim::FourTimes];
    let of = |sparse: (f64, f64), scatter: f64| {
        let found = of(sparse, scatter);
        claims.map(|claim| verdict(&found, claim, 0.9))
    };
    // The ratio of the critical batch sizes is that of c1 over that of c2.
    assert_eq!(of((3.8, 2.1), 0.01), [Holds, Holds, Holds, Holds, Holds, DoesNotHold]);
    assert_eq!(of((2.1, 3.8), 0.01), [Holds, Holds, Holds, DoesNotHold, DoesNotHold, DoesNotHold]);
    assert_eq!(of((6.0, 1.6), 0.01)[5], Holds);
    assert_eq!(of((1.2, 1.2), 0.001), [Holds, DoesNotHold, DoesNotHold, Undecided, Undecided, DoesNotHold]);
    assert_eq!(of((0.5, 0.5), 0.01)[..2], [DoesNotHold, DoesNotHold]);
    assert_eq!(of((6.0, 2.0), 0.01)[1], DoesNotHold);
    assert_eq!(of((1.7, 1.7), 0.8)[..5], [Undecided; 5]);
    // Where no floor shows, both critical batch sizes are infinite.
    let found = findings(&study("momentum", papers(), &law(4e6, 0.0, (2.0, 1.0), 0.0)), None);
    let critical = found.iter().find(|finding| finding.claim == Claim::CriticalBatchSize).unwrap();
    assert_eq!((critical.verdict, critical.measured.as_str()), (Undecided, "its ratio to the dense one's is not determined"));
}

#[test]
fn the_best_trials_are_looked_at() {
    let mut study = study("momentum", vec![2, 8, 32, 128], &law(4e4, 100.0, (2.0, 2.0), 0.0));
    let mut of = |exponent: f64, scatter: f64, momentum: f64| {
        for cell in &mut study.results.cells {
            let noise = (scatter * normal(cell.key.batch_size.into())).exp();
            let best = &mut cell.trials[0].metaparameters;
            best.set(Metaparameter::LearningRate, Some(1e-2 * (f64::from(cell.key.batch_size) / 16.0).powf(exponent) * noise));
            best.set(Metaparameter::Momentum, Some(momentum));
        }
        let found = findings(&study, None);
        [Claim::LearningRate, Claim::Inside].map(|claim| verdict(&found, claim, 0.0))
    };
    // Four points inside are what chance gives too.
    assert_eq!(of(0.5, 0.01, 0.99), [Holds, Undecided]);
    assert_eq!(of(-0.5, 0.01, 0.99), [DoesNotHold, Undecided]);
    assert_eq!(of(0.5, 3.0, 0.99)[0], Undecided);
    assert_eq!(of(0.5, 0.01, 0.9001)[1], DoesNotHold);
}

/// Best points at an edge or inside against the share of all points drawn that lie at an edge, a point that is best in several cells counted once.
#[test]
fn best_points_at_an_edge_are_more_or_fewer_than_chance_puts_there() {
    let mut study = study("momentum", papers(), &law(4e6, 1e4, (2.0, 2.0), 0.01));
    let mut of = |momenta: &dyn Fn(usize) -> f64, others: f64| {
        for (number, cell) in study.results.cells.iter_mut().enumerate() {
            for (index, trial) in cell.trials.iter_mut().enumerate() {
                trial.metaparameters.set(Metaparameter::LearningRate, Some(0.01));
                let other = if index % 2 == 0 { others } else { 0.98 };
                trial.metaparameters.set(Metaparameter::Momentum, Some(if index == 0 { momenta(number) } else { other }));
            }
        }
        verdict(&findings(&study, None), Claim::Inside, 0.0)
    };
    let inside = |number: usize| 0.95 + 0.001 * number as f64;
    let at_edge = |number: usize| 0.9001 + 0.00001 * number as f64;
    assert_eq!([of(&inside, 0.9001), of(&at_edge, 0.98)], [Holds, DoesNotHold]);
    // One point that is best everywhere, one of many.
    assert_eq!([of(&|_| 0.95, 0.9001), of(&|_| 0.9001, 0.98)], [Undecided, Undecided]);
    assert_eq!(of(&|number| if number == 3 { 0.9001 } else { inside(number) }, 0.98), Undecided, "one edge of 14 was a verdict");
}

/// A study in which 12 trials a cell differ in how many reach the goal within the race: of the sparse network at every other batch size alone.
#[test]
fn good_regions_are_compared_where_the_race_shows_them() {
    let mut study = study("momentum", vec![2, 8, 32, 128], &law(4e4, 100.0, (2.0, 2.0), 0.0));
    let mut of = |dense: usize, sparse: [usize; 2]| {
        for (number, cell) in study.results.cells.iter_mut().enumerate() {
            let steps = cell.steps_to_result();
            let good = if cell.key.sparsity > 0.0 { sparse[number % 2] } else { dense };
            for (number, trial) in cell.trials.iter_mut().enumerate() {
                (trial.status, trial.steps) = if number < good { (Status::Complete, steps) } else { (Status::Censored, None) };
            }
        }
        verdict(&findings(&study, None), Claim::GoodRegion, 0.9)
    };
    assert_eq!([of(12, [4, 4]), of(4, [12, 12]), of(9, [9, 9]), of(9, [6, 12])], [Holds, DoesNotHold, Undecided, Undecided]);
    // Trials alike, the sparse network's raced to 1.25 K*, the dense one's to 3 K*.
    for cell in &mut study.results.cells {
        let best = cell.steps_to_result().unwrap();
        for (trial, times) in cell.trials.iter_mut().zip([1.0, 1.1, 1.2, 1.2, 1.25, 1.25, 1.26, 2.0, 2.5, 2.5, 2.5, 2.5]) {
            let steps = (times * f64::from(best)) as u32;
            let is_cut = cell.key.sparsity > 0.0 && times > 1.25;
            (trial.status, trial.steps) = if is_cut { (Status::Censored, None) } else { (Status::Complete, Some(steps)) };
            trial.steps_run = if is_cut { (1.25 * f64::from(best)) as u32 } else { steps };
        }
    }
    let found = findings(&study, None);
    let of_region = |found: &[Finding]| found.iter().find(|finding| finding.claim == Claim::GoodRegion).unwrap().clone();
    assert_eq!((of_region(&found).verdict, of_region(&found).measured.starts_with("1.0 (0.8")), (Undecided, true), "{found:?}");
    // A race to 1.25 K* goes on to the next evaluation: 1.26 K* is a trial of the sparse network, but not within 1.25 K*.
    for cell in study.results.cells.iter_mut().filter(|cell| cell.key.sparsity > 0.0) {
        let steps = (1.26 * f64::from(cell.steps_to_result().unwrap())) as u32;
        (cell.trials[6].status, cell.trials[6].steps, cell.trials[6].steps_run) = (Status::Complete, Some(steps), steps);
    }
    assert!(of_region(&findings(&study, None)).measured.starts_with("1.0 (0.8"), "{:?}", of_region(&findings(&study, None)));
    study.results.cells[0].trials.pop();
    assert_eq!(of_region(&findings(&study, None)).measured, "cells of several numbers of trials");

    let raced = Synthetic { race: Race::Until(1.0), ..Synthetic::small() }.results();
    let raced = gather(vec![("x.h5".to_owned(), raced)]).remove(0);
    let found = findings(&raced, None);
    let hidden = of_region(&found);
    assert_eq!((hidden.verdict, hidden.measured.as_str()), (Undecided, "the race ended at K*"));
}

#[test]
fn momentum_is_compared_with_sgd() {
    let of = |c2: f64, scatter: f64| {
        let sgd = study("sgd", papers(), &law(4e6, 1e4, (2.0, 2.0), scatter));
        let found = findings(&study("momentum", papers(), &law(4.2e6, c2, (2.0, 2.0), scatter)), Some(&sgd));
        [Claim::FewerThanSgd, Claim::BeyondSgd].map(|claim| verdict(&found, claim, 0.9))
    };
    assert_eq!(of(2e3, 0.01), [Holds, Holds]);
    assert_eq!(of(5e4, 0.01), [DoesNotHold, DoesNotHold]);
    assert_eq!(of(1.05e4, 0.8), [Undecided, Undecided]);
}

/// SGD was measured at large batch sizes alone, where Momentum's curve is flat; at those Momentum is fitted too.
#[test]
fn optimizers_are_compared_over_the_batch_sizes_of_both() {
    let steps = law(4e6, 1e4, (2.0, 2.0), 0.01);
    // Below batch size 512 Momentum takes far more steps than the law of the others says.
    let bent = |key: CellKey| if key.batch_size < 512 { 20.0 * steps(key) } else { steps(key) };
    let mut sgd = study("sgd", papers(), &steps);
    sgd.results.cells.retain(|cell| cell.key.batch_size >= 512);
    let found = findings(&study("momentum", papers(), &bent), Some(&sgd));
    let of = |claim| found.iter().find(|finding| finding.claim == claim && finding.sparsity == 0.0).unwrap();
    assert_eq!(of(Claim::BeyondSgd).verdict, Undecided, "{:?}", of(Claim::BeyondSgd));
    sgd.results.cells.retain(|cell| cell.key.batch_size >= 8192);
    let found = findings(&study("momentum", papers(), &bent), Some(&sgd));
    assert!(found.iter().any(|finding| finding.measured.starts_with("no fit over the batch sizes of both: ")), "{found:?}");
}

/// Twice as many trials are good where the batch is eight times as large.
#[test]
fn a_good_region_that_grows_with_the_batch_is_found() {
    let mut study = study("momentum", vec![2, 16, 128, 1024], &law(4e4, 100.0, (2.0, 2.0), 0.0));
    let mut of = |counts: [usize; 4]| {
        for (number, cell) in study.results.cells.iter_mut().enumerate() {
            let steps = cell.steps_to_result();
            for (index, trial) in cell.trials.iter_mut().enumerate() {
                (trial.status, trial.steps) = if index < counts[number % 4] { (Status::Complete, steps) } else { (Status::Censored, None) };
            }
        }
        verdict(&findings(&study, None), Claim::RegionGrows, 0.0)
    };
    assert_eq!([of([1, 2, 4, 8]), of([12, 6, 3, 1]), of([4, 4, 4, 4]), of([3, 4, 3, 4])], [Holds, DoesNotHold, Undecided, Undecided]);
}

/// A power law saves the same everywhere: returns do not diminish, though the law c1/B + c2 would have them do so.
#[test]
fn returns_of_a_power_law_do_not_diminish() {
    let steps = |key: CellKey| 4e6 / f64::from(key.batch_size).powf(0.8) * (0.02 * normal(u64::from(key.batch_size))).exp();
    assert_eq!(verdict(&findings(&study("momentum", papers(), &steps), None), Claim::Diminishing, 0.0), Undecided);
}

/// Whether the ratio of steps falls or rises is decided by the ratios: of two power laws neither has a critical batch size.
#[test]
fn the_ratio_falls_whatever_the_law() {
    let of = |exponent: f64| {
        let steps = |key: CellKey| {
            let power = if key.sparsity > 0.0 { exponent } else { 0.9 };
            let noise = normal(u64::from(key.batch_size) * 2 + u64::from(key.sparsity > 0.0));
            (1.0 + key.sparsity) * 4e6 / f64::from(key.batch_size).powf(power) * (0.02 * noise).exp()
        };
        verdict(&findings(&study("momentum", papers(), &steps), None), Claim::RatioFalls, 0.9)
    };
    assert_eq!([0.7, 0.9, 1.1].map(of), [DoesNotHold, Undecided, Holds]);
}

/// A report says which verdicts stand among all of them.
#[test]
fn a_statement_is_decided_among_all() {
    let clear = study("momentum", papers(), &law(4e6, 1e4, (4.0, 2.0), 0.01));
    let mut found = findings(&clear, None);
    holm(found.iter_mut());
    let of = |claim: Claim| found.iter().find(|finding| finding.claim == claim && finding.sparsity == 0.9).unwrap();
    assert!(of(Claim::MoreSteps).stands && of(Claim::MoreSteps).says() == "holds", "{:?}", of(Claim::MoreSteps));
    // A single one of 21 statements at 4 %, which is what chance gives.
    let mut alone: Vec<Finding> =
        (0..21).map(|_| Finding { doubt: Some(0.5), verdict: Undecided, ..of(Claim::MoreSteps).clone() }).collect();
    alone[3] = Finding { doubt: Some(0.04), verdict: Holds, stands: false, ..alone[3].clone() };
    alone.iter_mut().for_each(|finding| finding.stands = false);
    holm(alone.iter_mut());
    assert_eq!((alone[3].stands, alone[3].says()), (false, "holds (95 % alone)".to_owned()));
}

/// Only Momentum and Nesterov, and only where nothing but the optimizer and its search differs.
#[test]
fn sgd_is_the_measure_of_the_same_study_alone() {
    let is_compared = |other: Synthetic| {
        let (folder, sgd) = (tempfile::tempdir().unwrap(), Synthetic { optimizer: "sgd", ..Synthetic::small() });
        let files = vec![("sgd.h5".to_owned(), sgd.results()), ("other.h5".to_owned(), other.results())];
        report(files, folder.path(), &Options::default()).unwrap().summary.contains(&format!("| {} (", Claim::FewerThanSgd.words()))
    };
    let of = |optimizer: &'static str| Synthetic { optimizer, ..Synthetic::small() };
    assert_eq!(["momentum", "nesterov", "adam"].map(|optimizer| is_compared(of(optimizer))), [true, true, false]);
    assert!(!is_compared(Synthetic { trials: Synthetic::small().trials + 4, ..of("momentum") }));
}

/// A study of two batch sizes has no fit, so nothing is said; one sparsity of two has none, and that is said.
#[test]
fn what_was_not_measured_is_not_decided() {
    assert_eq!(findings(&study("momentum", vec![2, 8], &law(4e4, 100.0, (2.0, 2.0), 0.0)), None), []);
    let mut study = study("momentum", vec![2, 8, 32, 128], &law(4e4, 100.0, (2.0, 2.0), 0.0));
    study.results.cells.retain(|cell| cell.key.sparsity == 0.0 || cell.key.batch_size < 32);
    let found = findings(&study, None);
    let sparse: Vec<&Finding> = found.iter().filter(|finding| finding.sparsity > 0.0 && finding.claim != Claim::Inside).collect();
    assert!(sparse.len() > 6 && sparse.iter().all(|finding| finding.verdict == Undecided), "{sparse:?}");
    let more = sparse.iter().find(|finding| finding.claim == Claim::MoreSteps).unwrap();
    assert_eq!(more.measured, "no fit: a fit needs 3 batch sizes with a result, and has 2");

    // Fits of both sparsities, at no common batch size.
    let mut study = self::study("momentum", vec![2, 4, 8, 16, 32, 64], &law(4e4, 100.0, (2.0, 2.0), 0.0));
    study.results.cells.retain(|cell| (cell.key.sparsity == 0.0) == (cell.key.batch_size < 16));
    let found = findings(&study, None);
    let of = |claim| found.iter().find(|finding| finding.claim == claim).unwrap();
    assert_eq!(of(Claim::MoreSteps).measured, "no batch size at which both sparsities have a result");
    assert_eq!((of(Claim::MoreSteps).verdict, of(Claim::RatioFalls).verdict), (Undecided, Undecided));
}

/// The page in Markdown: K*, each claim once, work beside the rule of the paper, and what of the paper's grid is missing.
#[test]
fn the_summary_has_what_was_measured_and_what_was_not() {
    let summary = |synthetic: &Synthetic| {
        let folder = tempfile::tempdir().unwrap();
        report(vec![("x.h5".to_owned(), synthetic.results())], folder.path(), &Options::default()).unwrap().summary
    };
    let of_paper = summary(&Synthetic { race: Race::Until(1.25), trials: 40, ..Synthetic::small() });
    for words in [
        " 8 of 56 cells measured, with 40 trials each; 1 file.\n",
        "\n| 2 | 4,592 | 8,736 |\n",
        "| 0 | linear below ",
        "\n| batch size | sparsity | K* | best trial | learning rate | momentum | 30 trials find | example-gradients | all trials to step 40,000 | seconds |\n",
        "\n- Sparsity 0: batch size 4, 16, 64, 256, 512, 1,024, 2,048, 4,096, 8,192, 16,384.\n",
        "\n- Sparsity 0.7: batch size 2, 4, 8, 16, 32, 64, 128, 256, 512, 1,024, 2,048, 4,096, 8,192, 16,384.\n",
        "\nThey take about ",
        "## The rules\n",
    ] {
        assert!(of_paper.contains(words), "no {words:?} in {of_paper}");
    }
    // A race that ends at K* hides what fewer trials would have found; a study of another budget is no study of the paper.
    let mut raced = Synthetic { race: Race::Until(1.0), trials: 40, ..Synthetic::small() }.results();
    raced.workload.max_steps = 50_000;
    let folder = tempfile::tempdir().unwrap();
    let raced = report(vec![("x.h5".to_owned(), raced)], folder.path(), &Options::default()).unwrap().summary;
    assert!(
        raced.contains(" 8 of 8 cells measured") && !raced.contains("### Not measured") && raced.contains("the race ended at K*"),
        "{raced}"
    );
    let rows = raced.lines().filter(|line| line.starts_with("| 2 | 0") && line.matches(" – |").count() == 1).count();
    assert_eq!(rows, 2, "{raced}");
    let small = summary(&Synthetic { batch_sizes: vec![2, 8], ..Synthetic::small() });
    assert!(small.contains("None can be decided: no sparsity has a result at three batch sizes."), "{small}");
}
