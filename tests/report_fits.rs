//! Fits against curves whose law is known.

mod support;

use dps::analysis::fit::{Estimate, Fit, Regime, slope};
use dps::analysis::{EnoughTrials, fits, gather};
use dps::config::Race;
use dps::records::Status;
use support::synthetic::{EVERY, Synthetic};

#[test]
fn a_curve_without_noise_is_met_exactly_and_its_regimes_follow() {
    let curve: Vec<(u32, u32)> = (0..14).map(|power| (1 << power, (1_638_400 >> power) + 400)).collect();
    let fit = Fit::new(&curve).unwrap();
    for (estimate, known) in [(fit.c1, 1_638_400.0), (fit.c2, 400.0), (fit.critical, 4096.0)] {
        assert!((estimate.value / known - 1.0).abs() < 1e-4 && estimate.high / estimate.low < 1.001, "{estimate:?} of {known}");
    }
    assert!((fit.steps(4096.0).value - 800.0).abs() < 0.1 && fit.points == 14 && fit.deviation < 1e-4);
    // B_crit/19 = 215.6 and 19·B_crit = 77,824.
    let regimes = [215.0, 217.0, 4096.0, 77_000.0, 78_000.0].map(|size| fit.regime(size));
    assert_eq!(regimes, [Regime::Linear, Regime::Diminishing, Regime::Diminishing, Regime::Diminishing, Regime::Maximal].map(Some));
    let (linear, maximal) = fit.borders();
    assert!((linear.value - 4096.0 / 19.0).abs() < 0.1 && (maximal.value - 4096.0 * 19.0).abs() < 40.0);
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
    let linear = Fit::new(&[(1, 65_536), (16, 4096), (256, 256)]).unwrap();
    assert!((linear.c1.value - 65_536.0).abs() < 1.0 && linear.c2.value == 0.0 && linear.critical.value == f64::INFINITY);
    assert_eq!(linear.regime(256.0), Some(Regime::Linear));
    let flat = Fit::new(&[(2, 320), (4, 320), (1024, 320)]).unwrap();
    assert!((flat.c2.value - 320.0).abs() < 0.1 && flat.c1.value < 1e-2 * 320.0, "{flat:?}");
    assert_eq!(flat.regime(2.0), Some(Regime::Maximal));
}

/// Four scattered points allow a critical batch size of nearly anything: then no regime is named.
#[test]
fn a_regime_that_the_interval_does_not_decide_is_not_named() {
    let fit = Fit::new(&[(32, 400), (64, 150), (128, 260), (256, 90)]).unwrap();
    assert!(fit.critical.low < 10.0 && fit.critical.high > 10_000.0, "{:?}", fit.critical);
    assert_eq!([32.0, 256.0].map(|size| fit.regime(size)), [None, None]);
}

#[test]
fn too_few_batch_sizes_are_no_fit_and_zeros_no_panic() {
    assert!(Fit::new(&[]).unwrap_err().contains("there are 0"));
    assert!(Fit::new(&[(2, EVERY), (2, EVERY), (4, EVERY)]).unwrap_err().contains("needs 3 batch sizes with a result, and there are 2"));
    let odd = Fit::new(&[(0, 0), (u32::MAX, 0), (7, u32::MAX)]).unwrap();
    assert!([odd.c1, odd.c2, odd.critical].iter().all(|Estimate { value, low, high }| !value.is_nan() && low <= high));
}
