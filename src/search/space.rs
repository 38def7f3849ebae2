//! From Sobol points to metaparameters.

use super::section::Search;
use super::sobol::Points;
use crate::optimizer::{Metaparameter, Metaparameters, Range, Scale, Setting};

impl Search {
    /// The metaparameters of `trials` trials of a cell from [`Search::first_trial`] on, the same for every cell.
    ///
    /// Each ranged metaparameter takes one dimension of the sequence, in the order of [`Metaparameter`]; a fixed one
    /// takes none. Source: the paper's section 2 and public code.
    pub fn draw(&self, trials: u32) -> Vec<Metaparameters> {
        self.points().skip(self.first_trial as usize).take(trials as usize).map(|point| self.at(&point)).collect()
    }

    /// The metaparameters of the trial of this number; in time proportional to the number.
    pub fn metaparameters(&self, index: u32) -> Metaparameters {
        // The sequence has 2^53 points, more than any index.
        self.at(&self.points().nth(index as usize).unwrap_or_default())
    }

    fn points(&self) -> Points {
        Points::new(self.sobol, self.ranges().count())
    }

    /// The metaparameters that are searched, with their ranges.
    pub fn ranges(&self) -> impl Iterator<Item = (Metaparameter, Range)> {
        self.settings.iter().filter_map(|(name, setting)| if let Setting::Range(range) = setting { Some((name, range)) } else { None })
    }

    fn at(&self, point: &[f64]) -> Metaparameters {
        let mut coordinates = point.iter().copied();
        let value = |setting: Setting| match setting {
            Setting::Fixed(value) => value,
            Setting::Range(range) => range.at(coordinates.next().unwrap_or(0.5)),
        };
        self.settings.map(value)
    }
}

impl Range {
    /// The value at `u` in [0, 1] on the range's scale: from min to max, except that the reverse log runs from max to min.
    ///
    /// The logarithms are a fixed implementation, not the system's, so that every machine draws the same bits.
    pub fn at(&self, u: f64) -> f64 {
        let Range { min, max, scale } = *self;
        let between = |low: f64, high: f64| u * (high - low) + low;
        let logarithmic = |low: f64, high: f64| libm::pow(10.0, between(libm::log10(low), libm::log10(high)));
        let value = match scale {
            Scale::Integer => between(min, max).floor(),
            Scale::Linear => between(min, max),
            Scale::Log => logarithmic(min, max),
            Scale::ReverseLog => 1.0 - logarithmic(1.0 - max, 1.0 - min),
        };
        // Rounding may step a few units in the last place over a limit.
        value.clamp(min, max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::SobolNumbers;

    const LEARNING_RATE: Range = Range { min: 1e-4, max: 1.0, scale: Scale::Log };
    const MOMENTUM: Range = Range { min: 0.9, max: 0.9999, scale: Scale::ReverseLog };
    const DECAY_STEPS: Range = Range { min: 30_000.0, max: 60_000.0, scale: Scale::Integer };
    const FACTOR: Range = Range { min: 1e-4, max: 0.1, scale: Scale::Log };

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-14 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn scales_are_those_of_the_protocol() {
        near(LEARNING_RATE.at(0.5), 1e-2);
        near(LEARNING_RATE.at(0.25), 1e-3);
        near(LEARNING_RATE.at(0.75), 1e-1);
        // 1 − 10^((−1 − 4)·u + …): half way between 1e-1 and 1e-4 in the distance to 1.
        near(MOMENTUM.at(0.5), 1.0 - 10f64.powf(-2.5));
        near(MOMENTUM.at(1.0 / 3.0), 0.999);
        near(MOMENTUM.at(2.0 / 3.0), 0.99);
        assert_eq!(DECAY_STEPS.at(0.5), 45_000.0);
        assert_eq!(DECAY_STEPS.at(0.375), 41_250.0);
        assert_eq!(DECAY_STEPS.at(0.99999), 59_999.0);
        near(FACTOR.at(0.5), 10f64.powf(-2.5));
        near(Range { min: 2.0, max: 3.0, scale: Scale::Linear }.at(0.25), 2.25);
    }

    #[test]
    fn limits_are_met_and_the_reverse_log_runs_backwards() {
        for range in [LEARNING_RATE, DECAY_STEPS, FACTOR] {
            near(range.at(0.0), range.min);
            near(range.at(1.0), range.max);
            assert!(range.at(0.3) < range.at(0.6));
        }
        near(MOMENTUM.at(0.0), 0.9999);
        near(MOMENTUM.at(1.0), 0.9);
        assert!(MOMENTUM.at(0.3) > MOMENTUM.at(0.6));
    }

    fn search() -> Search {
        let settings = [
            (Metaparameter::LearningRate, Setting::Range(LEARNING_RATE)),
            (Metaparameter::Momentum, Setting::Range(MOMENTUM)),
            (Metaparameter::DecaySteps, Setting::Range(DECAY_STEPS)),
            (Metaparameter::EndLearningRateFactor, Setting::Range(FACTOR)),
        ];
        Search { sobol: SobolNumbers::BratleyFox, first_trial: 0, settings: settings.into() }
    }

    #[test]
    fn dimensions_follow_the_order_of_the_protocol() {
        // The fourth point is (.375 .375 .625 .125).
        let fourth = [
            (Metaparameter::LearningRate, LEARNING_RATE.at(0.375)),
            (Metaparameter::Momentum, MOMENTUM.at(0.375)),
            (Metaparameter::DecaySteps, 48_750.0),
            (Metaparameter::EndLearningRateFactor, FACTOR.at(0.125)),
        ];
        assert_eq!(search().metaparameters(3), fourth.into());
    }

    #[test]
    fn fixed_metaparameters_take_no_dimension() {
        let mut fixed = search();
        fixed.settings.set(Metaparameter::Momentum, Some(Setting::Fixed(0.5)));
        fixed.settings.set(Metaparameter::EndLearningRateFactor, None);
        // The second point is (.75 .25): the decay steps move up to the second dimension.
        let second =
            [(Metaparameter::LearningRate, LEARNING_RATE.at(0.75)), (Metaparameter::Momentum, 0.5), (Metaparameter::DecaySteps, 37_500.0)];
        assert_eq!(fixed.metaparameters(1), second.into());

        let nothing_searched = Search { settings: [(Metaparameter::LearningRate, Setting::Fixed(0.1))].into(), ..fixed };
        assert_eq!(nothing_searched.draw(3), [[(Metaparameter::LearningRate, 0.1)].into(); 3]);
    }

    #[test]
    fn a_draw_is_its_trials_one_by_one() {
        for sobol in [SobolNumbers::BratleyFox, SobolNumbers::JoeKuo] {
            let search = Search { sobol, ..search() };
            let one_by_one: Vec<Metaparameters> = (0..100).map(|index| search.metaparameters(index)).collect();
            assert_eq!(search.draw(100), one_by_one);
            assert_eq!(Search { first_trial: 90, ..search }.draw(10), one_by_one[90..]);
        }
    }

    proptest! {
        #[test]
        fn values_stay_inside_the_range(a in 1e-9f64..0.999_999_999, b in 1e-9f64..0.999_999_999, u in 0.0..=1.0) {
            for scale in [Scale::Linear, Scale::Log, Scale::ReverseLog] {
                let range = Range { min: a.min(b), max: a.max(b), scale };
                let value = range.at(u);
                prop_assert!((range.min..=range.max).contains(&value), "{:?} at {} is {}", range, u, value);
            }
        }

        #[test]
        fn whole_numbers_stay_whole_and_inside(low in 1u32..u32::MAX, high in 1u32..u32::MAX, u in 0.0..=1.0) {
            let range = Range { min: f64::from(low.min(high)), max: f64::from(low.max(high)), scale: Scale::Integer };
            let value = range.at(u);
            prop_assert!((range.min..=range.max).contains(&value) && value.fract() == 0.0, "{:?} at {} is {}", range, u, value);
        }
    }
}
