//! The axes of every figure: they turn values in natural units into positions and labels.

use crate::readable::count;

/// Where an axis in powers of ten begins below this, its labels are powers.
const SHORTEST: f64 = 9e-4;

/// Where an axis in powers of ten ends above this value, its labels are powers too.
const LONGEST: f64 = 1.1e6;

/// How an axis spaces its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Values as they are.
    Linear,
    /// Logarithms of the values, labelled at powers of two.
    Log2,
    /// Logarithms of the values, labelled at powers of ten, or at 1, 2 and 5 where there are few of those.
    Log10,
    /// The logarithm of their distance to 1, labelled 0.9, 0.99 …: the scale of momentum.
    ReverseLog,
}

/// One axis: a scale, its limits in natural units and its title.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    title: String,
    /// Names at 0, 1, 2 … of an axis of names; else none.
    names: Vec<String>,
}

impl Axis {
    /// An axis around `values` that the scale can show, or around `otherwise` where there are none, with padding for the markers.
    pub fn around(scale: Scale, title: &str, values: impl IntoIterator<Item = f64>, otherwise: (f64, f64)) -> Axis {
        let positions = values.into_iter().map(|value| scale.position(value)).filter(|position| position.is_finite());
        let (mut low, mut high) = positions.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        if low > high {
            (low, high) = (scale.position(otherwise.0), scale.position(otherwise.1));
            (low, high) = (low.min(high), low.max(high));
        }
        // Whole powers of two around the data; at least a quarter decade elsewhere.
        let padding = match scale {
            Scale::Log2 => {
                (low, high) = (low.floor(), high.ceil());
                0.35
            }
            Scale::Linear => 0.06 * (high - low).max(1e-3),
            Scale::Log10 | Scale::ReverseLog => 0.06 * (high - low).max(2.0),
        };
        let (low, high) = (scale.value(low - padding), scale.value(high + padding));
        Axis { scale, low, high, title: title.to_owned(), names: Vec::new() }
    }

    /// An axis with a name at each of 0, 1, 2 …
    pub fn named(title: &str, names: Vec<String>) -> Axis {
        let last = names.len().max(2) as f64 - 1.0;
        Axis { names, ..Axis::around(Scale::Linear, title, [0.0, last], (0.0, 1.0)) }
    }

    /// Quantity of the axis, with its unit.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The axis's limits, the first the one at the left or at the bottom.
    pub fn limits(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether a value lies between its limits.
    pub fn contains(&self, value: f64) -> bool {
        (0.0..=1.0).contains(&self.share(value))
    }

    /// `count` values from one limit to the other, evenly apart on the axis.
    pub fn samples(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        let (low, high) = (self.scale.position(self.low), self.scale.position(self.high));
        (0..count).map(move |i| self.scale.value(low + (high - low) * i as f64 / (count.max(2) - 1) as f64))
    }

    /// Where a value lies: 0 at the lower limit, 1 at the upper.
    fn share(&self, value: f64) -> f64 {
        let (low, high) = (self.scale.position(self.low), self.scale.position(self.high));
        (self.scale.position(value) - low) / (high - low)
    }

    /// Where a value is drawn between the places of the limits. A value beyond the limits stops at them: nothing is drawn outside a panel.
    pub fn place(&self, value: f64, (first, last): (i32, i32)) -> i32 {
        first + (self.share(value).clamp(0.0, 1.0) * f64::from(last - first)).round() as i32
    }

    /// The values that get labels: about `most` of them.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        if !self.names.is_empty() {
            return (0..self.names.len()).map(|place| place as f64).collect();
        }
        let most = most.max(2) as f64;
        let (low, high) = (self.scale.position(self.low), self.scale.position(self.high));
        let whole = || {
            let apart = (((high - low) / most).ceil() as usize).max(1);
            (low.ceil() as i32..=high.floor() as i32).step_by(apart).map(|power| self.scale.value(f64::from(power)))
        };
        match self.scale {
            Scale::Log2 => whole().collect(),
            Scale::ReverseLog if high - low > 2.2 => whole().collect(),
            Scale::ReverseLog => {
                let powers = low.floor() as i32..=high.ceil() as i32;
                let all = powers.flat_map(|power| [1.0, 0.5, 0.2].map(|digit| 1.0 - digit * 10f64.powi(-power)));
                all.filter(|&value| self.contains(value)).collect()
            }
            // Three labels a decade need space.
            Scale::Log10 if high - low > 2.2 && 4.0 * (high - low) > most => whole().collect(),
            Scale::Log10 => {
                let powers = low.floor() as i32..=high.floor() as i32;
                let digits: &[f64] = if high - low > 0.8 { &[1.0, 2.0, 5.0] } else { &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0] };
                let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
                all.filter(|&value| self.contains(value)).collect()
            }
            Scale::Linear => {
                let rough = (high - low) / most.min(6.0);
                let power = 10f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|&step| step >= rough).unwrap_or(rough);
                ((low / step).ceil() as i64..=(high / step).floor() as i64).map(|count| count as f64 * step).collect()
            }
        }
    }

    /// The label that stands at a value.
    pub fn label(&self, value: f64) -> String {
        if let Some(name) = self.names.get(value.round().max(0.0) as usize) {
            return name.clone();
        }
        match self.scale {
            Scale::Log2 => power("2", value.log2()),
            // One notation an axis: powers of ten where decimals would be long for any of its values.
            Scale::Log10 if self.low < SHORTEST || self.high > LONGEST => {
                let exponent = (value.log10() + 1e-9).floor();
                let digit = value / 10f64.powf(exponent);
                if (digit - 1.0).abs() < 1e-6 { power("10", exponent) } else { format!("{}·{}", decimal(digit), power("10", exponent)) }
            }
            _ => decimal(value),
        }
    }
}

impl Scale {
    fn position(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
            Scale::ReverseLog => -(1.0 - value).log10(),
        }
    }

    fn value(self, position: f64) -> f64 {
        match self {
            Scale::Linear => position,
            Scale::Log2 => position.exp2(),
            Scale::Log10 => 10f64.powf(position),
            Scale::ReverseLog => 1.0 - 10f64.powf(-position),
        }
    }
}

/// A base with an exponent.
pub fn power(base: &str, exponent: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |digit: char| digit.to_digit(10).and_then(|digit| DIGITS.get(digit as usize).copied()).unwrap_or('⁻');
    let exponent = format!("{:.0}", exponent.round() + 0.0);
    base.chars().chain(exponent.chars().map(raised)).collect()
}

/// Six decimals at most, without the zeros at the end; of thousands none.
fn decimal(value: f64) -> String {
    if (1e3..1e9).contains(&value) {
        return count(value.round() as u64);
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks(8).into_iter().map(|value| axis.label(value)).collect()
    }

    #[test]
    fn each_scale_has_its_own_labels() {
        let axis = |scale, low, high| labels(&Axis::around(scale, "", [low, high], (1.0, 2.0)));
        assert_eq!(axis(Scale::Log2, 2.0, 64.0), ["2¹", "2²", "2³", "2⁴", "2⁵", "2⁶"]);
        assert_eq!(axis(Scale::Log2, 0.25, 1.0), ["2⁻²", "2⁻¹", "2⁰"]);
        assert_eq!(axis(Scale::Log10, 1e-4, 1.0), ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(axis(Scale::Log10, 5e-3, 1.0), ["0.01", "0.1", "1"]);
        assert_eq!(axis(Scale::Log10, 2e-5, 5e-5), ["2·10⁻⁵", "3·10⁻⁵", "4·10⁻⁵", "5·10⁻⁵"]);
        assert_eq!(axis(Scale::Log10, 7e3, 1e5), ["10,000", "20,000", "50,000", "100,000"]);
        assert_eq!(axis(Scale::Log10, 1.0, 1e3), ["1", "10", "100", "1,000"]);
        assert_eq!(axis(Scale::Log10, 0.02, 0.9), ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]);
        assert_eq!(axis(Scale::ReverseLog, 0.9, 0.9999), ["0.9", "0.99", "0.999", "0.9999"]);
        assert_eq!(axis(Scale::ReverseLog, 0.7, 0.95), ["0.8", "0.9", "0.95"]);
        assert_eq!(axis(Scale::Linear, 0.0, 4.4), ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn names_stand_at_whole_numbers() {
        let axis = Axis::named("", ["η", "m", "steps"].map(str::to_owned).to_vec());
        assert_eq!(labels(&axis), ["η", "m", "steps"]);
        assert!(axis.contains(0.0) && axis.contains(2.0) && !axis.contains(2.5));
    }

    #[test]
    fn an_axis_holds_its_values_and_no_others_and_one_value_is_enough() {
        let axis = Axis::around(Scale::Log2, "", [16.0], (1.0, 2.0));
        assert!(axis.contains(16.0) && !axis.contains(8.0) && !axis.contains(0.0) && !axis.contains(f64::NAN));
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10, Scale::ReverseLog] {
            let axis = Axis::around(scale, "", [f64::NAN, 0.5], (0.1, 0.2));
            assert!(axis.contains(0.5) && axis.limits().0 < axis.limits().1, "{scale:?}");
            assert_eq!(axis.samples(3).count(), 3);
            assert_eq!(axis.place(f64::NEG_INFINITY, (0, 100)), 0);
            let empty = Axis::around(scale, "", [], (0.1, 0.2));
            assert!(empty.contains(0.1) && empty.contains(0.2), "{scale:?}");
        }
    }
}
