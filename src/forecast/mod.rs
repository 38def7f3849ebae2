//! Forecasts of a study's end: the seconds that its cells will take, learnt from those that are measured.
//!
//! `model` fits the seconds of cells and says those of others; `trainings` says the steps of a cell's trainings that end one by one. Nothing here
//! reads a file or a clock.

mod left;
mod model;
mod trainings;

pub use left::Left;
pub use trainings::Trainings;

use std::fmt;

use serde::Serialize;

use self::model::Model;
use crate::readable::{digits, some};
use crate::records::{Cell, CellKey};

/// A measured cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Trials of the cell.
    pub trials: usize,
    /// Wall-clock seconds of the cell, with those of its confirmations where it has any.
    pub seconds: f64,
}

/// Trainings under way may take this many times as long as their steps say, or this many times less.
const OFF: f64 = 1.5;

/// A forecast of a study's end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Forecast {
    /// The time that is left.
    #[serde(flatten)]
    pub left: Left,
    /// Cells that it is learnt from.
    pub cells: usize,
    /// Seconds of the cell measured last over what was forecast from those before it; none where those are none.
    pub last_over_forecast: Option<f64>,
}

impl Forecast {
    /// The forecast for the cells `left` of `trials` trials each, each with the seconds that it has taken so far, from those that are measured, in
    /// their order. `assumed` are the seconds of a dense cell where time does not depend on the batch size, by what is known before any is
    /// measured. None where there is neither an assumption nor a measured cell, and where nothing is left.
    pub fn new(measured: &[Measured], left: &[(CellKey, f64)], trials: usize, assumed: Option<f64>) -> Option<Forecast> {
        let known: Vec<(CellKey, f64)> = measured.iter().filter_map(|cell| cell.with(trials)).collect();
        if left.is_empty() || known.is_empty() && assumed.is_none() {
            return None;
        }
        let last_over_forecast = known.split_last().filter(|(_, before)| !before.is_empty()).map(|(last, before)| {
            let forecast = Model::new(before, None).left(&[(last.0, 0.0)]);
            last.1 / forecast.seconds
        });
        Some(Forecast { left: Model::new(&known, assumed).left(left), cells: known.len(), last_over_forecast })
    }

    /// The forecast where the first of the cells `left` is under way and will take about `seconds` more, by its own steps.
    pub fn with_first(measured: &[Measured], left: &[(CellKey, f64)], trials: usize, seconds: f64) -> Forecast {
        let rest = left.get(1..).and_then(|rest| Forecast::new(measured, rest, trials, None));
        let nothing = Forecast { left: Left { seconds: 0.0, low: 0.0, high: 0.0 }, cells: 0, last_over_forecast: None };
        let rest = rest.unwrap_or(nothing);
        let Left { seconds: median, low, high } = rest.left;
        Forecast { left: Left { seconds: median + seconds, low: low + seconds / OFF, high: high + seconds * OFF }, ..rest }
    }
}

impl Measured {
    /// The measured cell of a record.
    pub fn of(cell: &Cell) -> Measured {
        Measured { key: cell.key, trials: cell.trials.len(), seconds: cell.seconds + cell.confirmation_seconds() }
    }

    /// The seconds of so many trials, which train beside each other. None of a cell that took no time that can be measured.
    fn with(&self, trials: usize) -> Option<(CellKey, f64)> {
        let seconds = self.seconds * trials as f64 / self.trials as f64;
        (seconds.is_finite() && seconds > 0.0).then_some((self.key, seconds))
    }
}

/// Writes the forecast's time, and what that rests on.
impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.left)?;
        if self.cells > 0 {
            write!(f, ", from {}", some(self.cells, "measured cell"))?;
        }
        self.last_over_forecast.map_or(Ok(()), |times| write!(f, "; the last one took {} times what was forecast", digits(times, 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Numbers, Purpose};

    const SIZES: [u32; 8] = [4, 16, 64, 256, 1024, 4096, 8192, 16384];
    const SPARSITIES: [f64; 3] = [0.0, 0.5, 0.9];

    fn keys() -> Vec<CellKey> {
        SIZES.iter().flat_map(|&batch_size| SPARSITIES.map(|sparsity| CellKey { batch_size, sparsity })).collect()
    }

    /// Some of these, each with so many seconds behind it.
    fn begun(places: std::ops::Range<usize>, elapsed: f64) -> Vec<(CellKey, f64)> {
        keys()[places].iter().map(|&key| (key, elapsed)).collect()
    }

    /// A study drawn at random from what the model takes for likely: the seconds of its cells.
    fn study(seed: u64) -> Vec<Measured> {
        let mut draws = vec![0.0; 6 + keys().len()];
        Numbers::new(seed, Purpose::Split).normals(0, &mut draws);
        let [scale, critical, overhead, shift, half, most] = [0, 1, 2, 3, 4, 5].map(|at| draws[at]);
        let (critical, overhead) = ((256_f64.ln() + 1.4 * critical).exp(), (8_f64.ln() + 1.4 * overhead).exp());
        let cell = |(number, key): (usize, CellKey)| {
            let size = f64::from(key.batch_size);
            let offset = if key.sparsity == 0.9 { most } else { half };
            let slower = if key.sparsity > 0.0 { -(0.3 + 0.3 * shift) * (1.0 - key.sparsity).ln() + 0.2 * offset } else { 0.0 };
            let law = 300.0 * scale.exp() * (1.0 + size / critical) * (1.0 + overhead / size) * slower.exp();
            Measured { key, trials: 100, seconds: law * (0.15 * draws[6 + number]).exp() }
        };
        keys().into_iter().enumerate().map(cell).collect()
    }

    /// In many studies, about eight of ten forecasts hold what was left, from the first cell to the last but one.
    #[test]
    fn limits_hold_eight_of_ten() {
        for done in [1, 3, 9, 18, 23] {
            let studies = 100;
            let mut held = 0;
            for seed in 0..studies {
                let cells = study(seed);
                let rest: Vec<(CellKey, f64)> = cells[done..].iter().map(|cell| (cell.key, 0.0)).collect();
                let truth: f64 = cells[done..].iter().map(|cell| cell.seconds).sum();
                let Left { seconds, low, high } = Forecast::new(&cells[..done], &rest, 100, None).unwrap().left;
                assert!(low <= seconds && seconds <= high);
                held += i32::from((low..=high).contains(&truth));
            }
            let share = f64::from(held) / studies as f64;
            assert!((0.7..=0.9).contains(&share), "{done} cells: {share}");
        }
    }

    #[test]
    fn more_cells_make_it_narrower() {
        let cells = study(7);
        let width = |done: usize| {
            let Left { low, high, .. } = Forecast::new(&cells[..done], &begun(18..24, 0.0), 100, None).unwrap().left;
            high / low
        };
        assert!(width(18) < width(6) && width(6) < width(1), "{} {} {}", width(18), width(6), width(1));
    }

    #[test]
    fn assumptions_are_used_until_cells_are_there() {
        // Batch size 16 at three sparsities: by the means of the model 300 s times 1.6, and times 1, 1.2 and 2.
        let none = Forecast::new(&[], &begun(3..6, 0.0), 100, Some(300.0)).unwrap();
        assert_eq!((none.cells, none.last_over_forecast), (0, None));
        assert!((1_400.0..2_900.0).contains(&none.left.seconds) && none.left.high / none.left.low > 10.0, "{none}");
        assert_eq!(Forecast::new(&[], &begun(0..24, 0.0), 100, None), None);
        assert_eq!(Forecast::new(&study(1), &[], 100, Some(300.0)), None);
        // Ten thousand times as slow as assumed.
        let slow: Vec<Measured> = study(1).iter().map(|cell| Measured { seconds: cell.seconds * 1e4, ..*cell }).collect();
        let truth: f64 = slow[12..].iter().map(|cell| cell.seconds).sum();
        let found = Forecast::new(&slow[..12], &begun(12..24, 0.0), 100, Some(300.0)).unwrap().left.seconds;
        assert!((0.5..2.0).contains(&(found / truth)), "{found} of {truth}");
    }

    #[test]
    fn what_cells_have_taken_is_not_left() {
        let cells = study(3);
        let left = |elapsed: f64, trials: usize| Forecast::new(&cells[..23], &begun(23..24, elapsed), trials, None).unwrap().left;
        let whole = left(0.0, 100).seconds;
        assert!((left(whole / 2.0, 100).seconds / whole - 0.5).abs() < 0.1);
        assert!((left(0.0, 200).seconds / whole - 2.0).abs() < 0.01, "twice the trials take twice the time");
        // However long it takes, some of it is left.
        let late = left(1e9, 100);
        assert!(late.low > 0.0 && late.high.is_finite(), "{late}");
        // Any of the cells may have begun.
        let of_three = |elapsed: [f64; 3]| {
            let left: Vec<_> = keys()[21..].iter().copied().zip(elapsed).collect();
            Forecast::new(&cells[..21], &left, 100, None).unwrap().left.seconds
        };
        let spent = of_three([0.0; 3]) / 12.0;
        assert!((of_three([spent; 3]) / spent - 9.0).abs() < 0.3, "{} {spent}", of_three([spent; 3]));
    }

    #[test]
    fn odd_cells_are_no_harm() {
        let odd = |batch_size: u32, sparsity: f64, seconds: f64| Measured { key: CellKey { batch_size, sparsity }, trials: 3, seconds };
        let cells = [odd(0, 0.0, 0.0), odd(u32::MAX, 1.0, 1e300), odd(1, 0.999_999, f64::NAN), odd(2, 0.3, 1e-300), odd(2, 0.3, 5.0)];
        let left = [(CellKey { batch_size: 0, sparsity: 1.0 }, f64::NAN), (CellKey { batch_size: u32::MAX, sparsity: 0.0 }, 0.0)];
        let found = Forecast::new(&cells, &left, 3, Some(0.0)).unwrap();
        assert!(!found.left.seconds.is_nan() && found.cells == 3, "{found:?}");
        assert!(!found.to_string().is_empty());
    }

    #[test]
    fn words() {
        let left = Left { seconds: 7_800.0, low: 3_900.0, high: 14_400.0 };
        let found = Forecast { left, cells: 5, last_over_forecast: Some(0.84) };
        assert_eq!(found.to_string(), "about 2h 10m (1h 5m to 4h), from 5 measured cells; the last one took 0.84 times what was forecast");
        assert_eq!(Forecast { cells: 0, last_over_forecast: None, ..found }.to_string(), "about 2h 10m (1h 5m to 4h)");
    }
}
