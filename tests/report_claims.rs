//! What a report says of the paper's claims: each rule on studies whose steps-to-result are known.

mod support;

use dps::analysis::{Claim, Finding, Options, StudyResults, Verdict, claims, fits, gather, report};
use dps::config::{Metaparameter, Race};
use dps::records::{CellKey, Status};
use support::synthetic::{Synthetic, normal};

use Verdict::{DoesNotHold, Holds, Undecided};

/// Batch sizes 2 to 16,384, as in the paper.
fn papers() -> Vec<u32> {
    (1..15).map(|power| 1 << power).collect()
}

/// A study whose cells have these steps-to-result, by their first trials, of which one learning rate follows from the batch size.
fn study(optimizer: &'static str, batch_sizes: Vec<u32>, steps: &dyn Fn(CellKey) -> f64) -> StudyResults {
    let synthetic = Synthetic { optimizer, batch_sizes, trials: 4, race: Race::Until(3.0), ..Synthetic::small() };
    let mut results = synthetic.results();
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
    let of_sgd = sgd.map(|sgd| (sgd, fits(sgd)));
    claims(study, &fits(study), of_sgd.as_ref().map(|(sgd, fits)| (*sgd, fits.as_slice())))
}

/// What is said of a claim at a sparsity.
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
    // It is 4: nothing measured is linear. It is a million: nothing is maximal.
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
    let claims = [Claim::MoreSteps, Claim::Times, Claim::RatioFalls, Claim::CriticalBatchSize];
    let of = |sparse: (f64, f64), scatter: f64| {
        let found = of(sparse, scatter);
        claims.map(|claim| verdict(&found, claim, 0.9))
    };
    // The ratio of the critical batch sizes is that of c1 over that of c2.
    assert_eq!(of((4.0, 2.0), 0.01), [Holds, Holds, Holds, Holds]);
    assert_eq!(of((2.0, 4.0), 0.01), [Holds, Holds, DoesNotHold, DoesNotHold]);
    assert_eq!(of((1.2, 1.2), 0.001), [Holds, DoesNotHold, Undecided, Undecided]);
    assert_eq!(of((0.5, 0.5), 0.01)[..2], [DoesNotHold, DoesNotHold]);
    assert_eq!(of((6.0, 2.0), 0.01)[1], DoesNotHold);
    assert_eq!(of((1.5, 1.5), 0.8), [Undecided; 4]);
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
    assert_eq!(of(0.5, 0.01, 0.99), [Holds, Holds]);
    assert_eq!(of(-0.5, 0.01, 0.99), [DoesNotHold, Holds]);
    assert_eq!(of(0.5, 3.0, 0.99)[0], Undecided);
    assert_eq!(of(0.5, 0.01, 0.9001)[1], DoesNotHold);
}

/// So many of 4 trials of the dense network reach the goal within the race, and of the sparse one at every other batch size.
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
    assert_eq!([of(4, [2, 2]), of(2, [4, 4]), of(3, [3, 3]), of(3, [2, 4])], [Holds, DoesNotHold, Undecided, Undecided]);
    // Trials alike, the sparse network's raced to 1.25 K*, the dense one's to 3 K*.
    for cell in &mut study.results.cells {
        let best = cell.steps_to_result().unwrap();
        for (trial, times) in cell.trials.iter_mut().zip([1.0, 1.1, 2.0, 2.5]) {
            let steps = (times * f64::from(best)) as u32;
            let is_cut = cell.key.sparsity > 0.0 && times > 1.25;
            (trial.status, trial.steps) = if is_cut { (Status::Censored, None) } else { (Status::Complete, Some(steps)) };
            trial.steps_run = if is_cut { (1.25 * f64::from(best)) as u32 } else { steps };
        }
    }
    let found = findings(&study, None);
    let of_region = |found: &[Finding]| found.iter().find(|finding| finding.claim == Claim::GoodRegion).unwrap().clone();
    assert_eq!((of_region(&found).verdict, of_region(&found).measured.starts_with("1.00 (1.00 to 1.00)")), (Undecided, true), "{found:?}");
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
    assert_eq!(more.measured, "no fit: a fit needs 3 batch sizes with a result, and there are 2");

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
        ", they take about ",
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
