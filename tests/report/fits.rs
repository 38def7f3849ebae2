//! Fits against curves whose law is known.

use super::coverage::{DENSE, confirmed_study};
use crate::support::synthetic::{EVERY, Synthetic, normal};
use dps::analysis::confirmed::{Confirmed, Reached};
use dps::analysis::exponent::exponent;
use dps::analysis::fit::{Estimate, Fit, Point, Regime, slope};
use dps::analysis::{Claim, EnoughTrials, Verdict, claims, confirmed_cells, confirmed_fits, fits, gather, warnings};
use dps::records::{Confirmation, CurvePoint, Seeds, Status, Training};
use dps::results::Results;
use dps::settings::Race;

#[test]
fn a_curve_without_noise_is_met_exactly_and_its_regimes_follow() {
    let curve: Vec<(u32, u32)> = (0..14).map(|power| (1 << power, (1_638_400 >> power) + 400)).collect();
    let fit = Fit::new(&Point::all(&curve, 1)).unwrap();
    for (estimate, known) in [(fit.c1, 1_638_400.0), (fit.c2, 400.0), (fit.critical, 4096.0)] {
        // Of 400 whole steps it is known that they are more than 399.
        assert!((estimate.value / known - 1.0).abs() < 3e-3 && estimate.high / estimate.low < 1.01, "{estimate:?} of {known}");
        assert!(estimate.low < estimate.value && estimate.value < estimate.high, "{estimate:?}");
    }
    assert!((fit.steps(4096.0).value - 799.5).abs() < 0.2 && fit.points == 14 && fit.deviation < 1e-3);
    // B_crit/19 = 215.6 and 19·B_crit = 77,824.
    let regimes = [213.0, 219.0, 4096.0, 76_500.0, 78_700.0].map(|size| fit.regime(size));
    assert_eq!(regimes, [Regime::Linear, Regime::Diminishing, Regime::Diminishing, Regime::Diminishing, Regime::Maximal].map(Some));
    let (linear, maximal) = fit.borders();
    assert!((linear.value * 19.0 / 4096.0 - 1.0).abs() < 3e-3 && (maximal.value / 4096.0 / 19.0 - 1.0).abs() < 3e-3);
}

#[test]
fn an_exponent_is_that_of_exact_points_and_none_of_fewer_than_three() {
    let exact = slope(&[(1.0, 8.0), (2.0, 4.0), (8.0, 1.0)]).unwrap();
    assert!([exact.value, exact.low, exact.high].iter().all(|value| (value + 1.0).abs() < 1e-12), "{exact:?}");
    assert_eq!(
        [slope(&[(1.0, 2.0), (2.0, 1.0)]), slope(&[(2.0, 2.0), (2.0, 1.0), (2.0, 3.0)]), slope(&[(1.0, 1.0), (2.0, 2.0), (3.0, 0.0)])],
        [None; 3]
    );
}

/// Ratios without one batch size equal the ratios of studies that did not measure it.
#[test]
fn leaving_out_a_batch_size_is_not_having_measured_it() {
    let study = confirmed_study(3, &[4, 16, 64, 256, 1024], [DENSE, (2.0 * DENSE.0, 3.0 * DENSE.1)], 0.1, 1.0);
    let ratio = |size: u32| {
        let mut others = study.results.clone();
        others.cells.retain(|cell| cell.key.batch_size != size);
        let fits = confirmed_fits(&confirmed_cells(&gather(vec![("others.h5".to_owned(), others)])[0]));
        (f64::from(size), fits[1].fitted.critical_ratio.unwrap().value)
    };
    let ratios = [4, 16, 64, 256, 1024].map(ratio);
    let order = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let expected = [*ratios.iter().min_by(order).unwrap(), *ratios.iter().max_by(order).unwrap()];
    let fits = confirmed_fits(&confirmed_cells(&study));
    let found = fits[1].without_one.unwrap();
    assert!(fits[0].without_one.is_none() && expected[0].1 < expected[1].1);
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(found.0 == expected.0 && (found.1 / expected.1 - 1.0).abs() < 1e-9, "{found:?} {expected:?}");
    }
}

/// Of 16 trials a cell: all equal, one far better than the others, or every second as good as the best.
#[test]
fn enough_trials_for_the_critical_batch_size_follow_from_how_many_are_good() {
    let found = |race: Race, is_good: &dyn Fn(usize) -> bool| {
        let mut results = Synthetic { race, batch_sizes: vec![2, 8, 32, 128, 512], trials: 16, ..Synthetic::small() }.results();
        for cell in &mut results.cells {
            let (least, size) = (cell.steps_to_result().unwrap(), cell.key.batch_size);
            for (number, trial) in cell.trials.iter_mut().enumerate() {
                // Bad trials make a curve of another shape.
                let steps = if is_good(number) { least } else { least + 64 * size };
                (trial.status, trial.steps) = (Status::Complete, Some(steps));
            }
        }
        fits(&gather(vec![("x.h5".to_owned(), results)])[0]).into_iter().map(|fitted| fitted.enough_trials).collect::<Vec<_>>()
    };
    assert_eq!(found(Race::Off, &|_| true), [Some(EnoughTrials::These(1)); 2]);
    assert_eq!(found(Race::Off, &|number| number == 0), [Some(EnoughTrials::MoreThan(8)); 2]);
    // All five cells find a good one: with n of 16 by 1 - C(8, n)/C(16, n) each, and 95 of 100 need n = 8.
    assert_eq!(found(Race::Off, &|number| number % 2 == 0), [Some(EnoughTrials::These(8)); 2]);
    assert_eq!(found(Race::Until(1.0), &|_| true), [None; 2], "a race hides what the others would have found");
}

/// A part that was raced to K* alone, beside others whose trials went on to three times that.
#[test]
fn a_part_of_a_shorter_race_is_known_by_its_trials() {
    let raced = |race: Race, batch_sizes: Vec<u32>| Synthetic { race, batch_sizes, trials: 16, ..Synthetic::small() }.results();
    let files =
        vec![("long.h5".to_owned(), raced(Race::Until(3.0), vec![2, 8])), ("short.h5".to_owned(), raced(Race::Until(1.0), vec![32, 128]))];
    let study = gather(files).remove(0);
    let hidden: Vec<u32> = study.results.cells.iter().filter(|cell| study.hides_others(cell)).map(|cell| cell.key.batch_size).collect();
    assert_eq!(hidden, [32, 128, 32, 128]);
    assert!(study.results.configuration.contains("batch_sizes = [2, 8, 32, 128]\n"), "{}", study.results.configuration);
    assert!(study.results.cells.iter().filter(|cell| cell.key.batch_size < 32).all(|cell| study.race_of(cell) == Race::Until(3.0)));
}

#[test]
fn one_regime_alone_has_no_other_parameter_and_says_so_by_infinity() {
    let linear = Fit::new(&Point::all(&[(1, 65_536), (16, 4096), (256, 256)], 1)).unwrap();
    assert!(
        (linear.c1.value / 65_536.0 - 1.0).abs() < 2e-3 && linear.critical.high == f64::INFINITY && linear.c2.value < 0.1,
        "{linear:?}"
    );
    assert_eq!(linear.regime(16.0), Some(Regime::Linear));
    let flat = Fit::new(&Point::all(&[(2, 320), (4, 320), (1024, 320)], 1)).unwrap();
    assert!((flat.c2.value - 320.0).abs() < 1.0 && flat.c1.value < 1e-2 * 320.0 && flat.critical.low == 0.0, "{flat:?}");
    assert_eq!(flat.regime(2.0), Some(Regime::Maximal));
}

/// Four scattered points allow a critical batch size of nearly anything: then no regime is named.
#[test]
fn a_regime_that_the_interval_does_not_decide_is_not_named() {
    let fit = Fit::new(&Point::all(&[(32, 400), (64, 150), (128, 260), (256, 90)], 1)).unwrap();
    assert!(fit.critical.low < 10.0 && fit.critical.high > 10_000.0, "{:?}", fit.critical);
    assert_eq!([32.0, 256.0].map(|size| fit.regime(size)), [None, None]);
}

#[test]
fn too_few_batch_sizes_are_no_fit_and_zeros_no_panic() {
    assert!(Fit::new(&Point::all(&[], 1)).unwrap_err().contains("has 0"));
    assert!(
        Fit::new(&Point::all(&[(2, EVERY), (2, EVERY), (4, EVERY)], 1))
            .unwrap_err()
            .contains("needs 3 batch sizes with a result, and has 2")
    );
    let odd = Fit::new(&Point::all(&[(0, 0), (u32::MAX, 0), (7, u32::MAX)], 1)).unwrap();
    assert!([odd.c1, odd.c2, odd.critical].iter().all(|Estimate { value, low, high }| !value.is_nan() && low <= high));
}

/// Steps that are known to 64 or 16 steps and, of the same trainings, to single ones.
#[test]
fn coarse_steps_do_not_contradict_fine_ones() {
    let slow: Vec<(u32, u32)> = (1..9).map(|power| (1 << power, (145.0 / f64::from(1 << power) + 10.0_f64).ceil() as u32)).collect();
    for (fine, every) in [(vec![(2, 8), (8, 5), (32, 4), (128, 4)], 64), (slow, 16)] {
        let coarse: Vec<(u32, u32)> = fine.iter().map(|&(size, steps)| (size, steps.next_multiple_of(every))).collect();
        let points = [Point::all(&fine, 1), Point::all(&coarse, every)];
        let [fine, coarse] = points.each_ref().map(|points| Fit::new(points).unwrap());
        let overlaps = |of: fn(&Fit) -> Estimate| {
            let [fine, coarse] = [of(&fine), of(&coarse)];
            assert!(fine.low <= coarse.high && coarse.low <= fine.high, "{every}: {fine:?} {coarse:?}");
            assert!(fine.low < fine.high && coarse.low < coarse.high, "{every}: {fine:?} {coarse:?}");
        };
        for of in
            [|fit: &Fit| fit.c1, |fit: &Fit| fit.c2, |fit: &Fit| fit.critical, |fit: &Fit| fit.steps(2.0), |fit: &Fit| fit.steps(128.0)]
        {
            overlaps(of);
        }
        let exponents = points.map(|points| exponent(&points).unwrap());
        assert!(exponents[0].low <= exponents[1].high && exponents[1].low <= exponents[0].high, "{exponents:?}");
        assert_eq!(coarse.regime(128.0), None, "{coarse:?}");
    }
}

/// Every cell's K* at its first evaluation says next to nothing, and neither does a table of others whose steps are all alike.
#[test]
fn equal_steps_at_the_first_evaluation_decide_nothing() {
    for every in [64, 0] {
        let mut results = Synthetic { trials: 4, ..Synthetic::small() }.results();
        results.workload.evaluate_every = every;
        for trial in results.cells.iter_mut().flat_map(|cell| &mut cell.trials) {
            (trial.status, trial.steps, trial.steps_run) = (Status::Complete, Some(64), 64);
        }
        let study = gather(vec![("x.h5".to_owned(), results)]).remove(0);
        let fits = fits(&study);
        let [dense, sparse] = [0, 1].map(|number| fits[number].fit.as_ref().unwrap());
        assert!(dense.critical.low == 0.0 && dense.critical.high > 10.0 && dense.c2.low < 4.0, "{dense:?}");
        let ratio = sparse.steps_over(dense, 32.0);
        assert!(ratio.low < 0.5 && ratio.high > 2.0, "{ratio:?}");
        let found = claims(&study, &fits, None);
        let of = |claim: Claim| found.iter().find(|finding| finding.claim == claim).unwrap().verdict;
        assert_eq!([Claim::Linear, Claim::Diminishing, Claim::Maximal, Claim::MoreSteps].map(of), [Verdict::Undecided; 4]);
        let warning = "8 cells reached the goal within fewer than 8 evaluations, one of them within 1: K* is known to 64 steps alone";
        assert!(warnings(&study, &fits).iter().any(|found| found.sentence.starts_with(warning)), "{:?}", warnings(&study, &fits));
    }
}

/// Ten batch sizes at which both sparsities scatter alike, as they share their points and seeds: their ratio is known better than either.
#[test]
fn curves_that_scatter_alike_have_a_narrow_ratio() {
    let curve = |times: f64, own: u64| {
        let point = |power: u64| {
            let noise = 0.1 * normal(power) + 0.02 * normal(1000 * own + power);
            (1 << power, (times * (1e5 / f64::from(1 << power) + 800.0) * noise.exp()).round() as u32)
        };
        Point::all(&(1..11).map(point).collect::<Vec<_>>(), 1)
    };
    let curves = [curve(1.0, 1), curve(3.0, 2)];
    let width = |ratio: Estimate| (ratio.high / ratio.low).ln();
    let together = Fit::together(&[&curves[0], &curves[1]]).into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    let ratio = together[1].critical_over(&together[0]);
    assert!(ratio.holds(1.0) && width(ratio) < width(together[0].critical), "{ratio:?} {:?}", together[0].critical);
}

/// One curve that happens to lie on its law beside two that scatter: three points do not know by how much they scatter.
#[test]
fn a_scatter_that_seems_small_is_that_of_the_others_too() {
    let curve = |noise: f64, own: u64| {
        let point =
            |power: u64| (1 << power, ((1e5 / f64::from(1 << power) + 800.0) * (noise * normal(1000 * own + power)).exp()).round() as u32);
        Point::all(&(2..10).map(point).collect::<Vec<_>>(), 1)
    };
    let (still, loud) = (curve(0.01, 1), [curve(0.25, 2), curve(0.25, 3)]);
    let alone = Fit::new(&still).unwrap().critical;
    let beside = Fit::together(&[&still, &loud[0], &loud[1]]).remove(0).unwrap().critical;
    assert!((beside.high / beside.low).ln() > 5.0 * (alone.high / alone.low).ln(), "{alone:?} {beside:?}");
}

/// Results with confirmations: sixteen seeds of three points at each batch size, `times` the least steps, which scatter by a tenth of them; one of
/// them fails.
fn confirmed_results(times: f64) -> Results {
    let mut results = Synthetic { race: dps::settings::Race::Until(3.0), ..Synthetic::small() }.results();
    for (place, cell) in results.cells.iter_mut().enumerate() {
        let least = cell.steps_to_result().unwrap();
        for (point, number) in (0..3).flat_map(|point| (0..16).map(move |number| (point, number))) {
            let slower = times + 0.1 * f64::from(point) + 0.1 * normal(1000 * place as u64 + u64::from(16 * point + number));
            let steps = (f64::from(least) * slower) as u32;
            let mut run = cell.trials[0].clone();
            (run.index, run.steps, run.steps_run) = (point, Some(steps), steps);
            if point == 0 && number == 5 {
                (run.status, run.steps, run.steps_run) = (Status::Incomplete, None, 4 * least);
            }
            let (every, evaluation) = (least.div_ceil(50), run.curve[0]);
            run.curve = [run.steps_run - every, run.steps_run].map(|step| CurvePoint { step, ..evaluation }).to_vec();
            let seeds = Seeds { weights: u64::from(number), order: u64::from(number) };
            let training = Training { point, number, seeds, evaluate_every: every };
            cell.confirmations.push(Confirmation { training, run });
        }
    }
    results
}

/// The report has the steps with errors, how lucky K* was, and the law of the means.
#[test]
fn confirmed_steps_stand_beside_the_lucky_ones() {
    let results = confirmed_results(1.25);
    let folder = tempfile::tempdir().unwrap();
    let made = dps::analysis::report(vec![("x.h5".to_owned(), results.clone())], folder.path(), &Default::default()).unwrap();
    assert!(made.summary.contains("### Confirmed steps") && made.summary.contains("| 9 of 10 are there |"), "{}", made.summary);
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("<summary>Confirmed steps</summary>") && page.contains("Goodness of the fit"));
    assert_eq!(std::fs::read_to_string(folder.path().join("confirmed.csv")).unwrap().lines().count(), 1 + 8);
    let cells = confirmed_cells(&gather(vec![("x.h5".to_owned(), results)])[0]);
    for cell in &cells {
        let luck = cell.luck.unwrap();
        assert!((0.65..0.9).contains(&luck.value) && luck.low < luck.value && luck.value < luck.high && luck.high < 1.0, "{cell:?}");
        assert!(cell.confirmed.trainings.len() == 16 && cell.points == [0, 1, 2], "{cell:?}");
    }
    let fits = confirmed_fits(&cells);
    assert!(fits.len() == 2 && fits.iter().all(|fit| fit.goodness > 0.001 && fit.fitted.points.len() == 4), "{fits:?}");
    // The made truth: c1 and c2 of the sparse network are equal times those of the dense one.
    let ratio = fits[1].fitted.critical_ratio.unwrap();
    assert!(ratio.holds(1.0) && ratio.low > 0.5 && ratio.high < 2.0, "{ratio:?}");
    let claims = std::fs::read_to_string(folder.path().join("claims.csv")).unwrap();
    let of = |claim: Claim| claims.lines().filter(move |line| line.contains(claim.words())).map(str::to_owned).collect::<Vec<_>>();
    // One statement is decided once, by confirmed steps, and K* is told beside it.
    let critical = of(Claim::CriticalBatchSize);
    assert!(critical.len() == 1 && critical[0].contains("by confirmed steps: ") && critical[0].contains("; by K*: "), "{critical:?}");
    assert!(of(Claim::LearningRate).iter().all(|line| !line.contains("by confirmed steps")));
    for (file, lines) in [("confirmed-fits.csv", 1 + 2), ("critical.csv", 1 + 2 * 6)] {
        assert_eq!(std::fs::read_to_string(folder.path().join(file)).unwrap().lines().count(), lines, "{file}");
    }
    assert!(page.contains("id=\"x-luck\"") || page.contains("How much luck"), "no figure of luck");
    // The answer comes first: the ratio with its interval, what sparsity costs, and the weakest point.
    let answer = [
        "- By confirmed steps, the critical batch size c1/c2 is ",
        "- By the fits, the network of sparsity 0.9 takes ",
        "- The weakest point: ",
    ];
    assert!(answer.iter().all(|sentence| made.summary[..made.summary.find("Goal: ").unwrap()].contains(sentence)), "{}", made.summary);
    assert!(page.find("The weakest point: ").unwrap() < page.find("<svg").unwrap());
}

/// A study with shuffled masks is a control of the same study without, whichever file comes first, and no study of another split is one.
#[test]
fn a_control_stands_beside_its_study() {
    let (own, mut control, mut split) = (confirmed_results(1.25), confirmed_results(1.875), confirmed_results(1.25));
    control.configuration += "\n[pruning]\nshuffle = true\n";
    split.configuration += "\n[data]\nvalidation_fraction = 0.2\n";
    let files = [("shuffled.h5", control), ("own.h5", own), ("split.h5", split)].map(|(name, results)| (name.to_owned(), results));
    let folder = tempfile::tempdir().unwrap();
    let made = dps::analysis::report(files.to_vec(), folder.path(), &Default::default()).unwrap();
    let rows = std::fs::read_to_string(folder.path().join("controls.csv")).unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|line| line.split(',').collect()).collect();
    // Two sparsities of four batch sizes, and a row for all of each.
    assert_eq!((rows.len(), rows.iter().filter(|row| row[2].is_empty()).count()), (2 * 5, 2), "{rows:?}");
    for row in &rows {
        assert!(row[0].contains("shuffled") || row[0] != row[1], "{row:?}");
        let [steps, low, high] = [4, 5, 6].map(|column| row[column].parse::<f64>().unwrap());
        assert!((1.3..1.7).contains(&steps) && low < steps && steps < high && low > 1.0, "{row:?}");
        // The made truth: all steps are 1.5 times as many, and the critical batch size is the same.
        assert!(row[2].is_empty() == row[10..].iter().all(|field| !field.is_empty()), "{row:?}");
    }
    let said = "by `pruning.shuffle` (true, there nothing) alone";
    assert!(made.summary.matches(said).count() == 1 && made.summary.contains(", so more, and 1."), "{}", made.summary);
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert_eq!(page.matches("<summary>Beside the study that it is a control of</summary>").count(), 1);
    // The curves of one optimizer are those of studies.
    assert!(page.contains("Studies compared") && !page.contains("Optimizers compared"));
}

/// Where many trainings failed, the mean is that of the most likely normal distribution of the logarithms: of these 323.45 steps, by SciPy's
/// `minimize` of the likelihood.
#[test]
fn a_mean_with_failures_is_the_most_likely_one() {
    let reached = [100.0, 120.0, 110.0, 105.0].map(|steps| Some((steps - 1.0, steps)));
    let trainings: Vec<Reached> = reached.into_iter().chain([None; 4]).collect();
    let mean = Confirmed::new(&[trainings], 400.0).unwrap().mean.value;
    assert!((mean / 323.45 - 1.0).abs() < 0.01, "{mean}");
}
