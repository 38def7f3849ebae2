//! Normalisation of a data set's pixels.

use super::{Examples, Pixels};

/// Mean and standard deviation of one channel, over the whole training file before the split: of pixels / 255 where they are bytes, else of the
/// values themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalisation {
    /// Mean.
    pub mean: f64,
    /// Standard deviation (of the population, not of a sample).
    pub std: f64,
}

impl Normalisation {
    /// Mean and deviation of each channel.
    ///
    /// For bytes both come from exact sums of integers. For floating point both come from sums in 64 bits in the order of the file, first of the
    /// values, then of the squares of what they are off the mean. Neither depends on ranks or threads.
    ///
    /// # Errors
    /// A sentence where all values of a channel are equal.
    pub(super) fn of(examples: &Examples) -> Result<Vec<Normalisation>, String> {
        let channels = examples.shape.channels;
        let all = match &examples.images {
            Pixels::Bytes(values) => of_bytes(values, channels),
            Pixels::Floats(values) => of_floats(values, channels),
        };
        match all.iter().position(|channel| channel.std.is_nan() || channel.std <= 0.0) {
            Some(channel) => Err(format!(
                "expected images, found the same value in every pixel of channel {channel} of the training file; remove the channel, or give other images"
            )),
            None => Ok(all),
        }
    }

    /// The network's input for a value in the scale of the mean, computed in 64 bits and rounded once.
    pub(super) fn apply(&self, value: f64) -> f32 {
        ((value - self.mean) / self.std) as f32
    }
}

fn of_bytes(values: &[u8], channels: usize) -> Vec<Normalisation> {
    let mut histograms = vec![[0u64; 256]; channels];
    for pixel in values.chunks_exact(channels) {
        histograms.iter_mut().zip(pixel).for_each(|(histogram, &value)| histogram[usize::from(value)] += 1);
    }
    let of = |histogram: &[u64; 256]| {
        let moment = |power: u32| histogram.iter().zip(0u64..).map(|(count, value)| u128::from(count * value.pow(power))).sum::<u128>();
        let (n, sum, squares) = (moment(0), moment(1), moment(2));
        let mean = sum as f64 / (n as f64 * 255.0);
        let std = ((n * squares - sum * sum) as f64).sqrt() / (n as f64 * 255.0);
        Normalisation { mean, std }
    };
    histograms.iter().map(of).collect()
}

fn of_floats(values: &[f32], channels: usize) -> Vec<Normalisation> {
    let n = (values.len() / channels) as f64;
    let mut means = vec![0.0; channels];
    for pixel in values.chunks_exact(channels) {
        means.iter_mut().zip(pixel).for_each(|(mean, &value)| *mean += f64::from(value));
    }
    means.iter_mut().for_each(|mean| *mean /= n);
    let mut squares = vec![0.0; channels];
    for pixel in values.chunks_exact(channels) {
        for ((square, mean), &value) in squares.iter_mut().zip(&means).zip(pixel) {
            *square += (f64::from(value) - mean).powi(2);
        }
    }
    means.iter().zip(squares).map(|(&mean, square)| Normalisation { mean, std: (square / n).sqrt() }).collect()
}

/// Normalises floating-point values in place; bytes stay as they are.
pub(super) fn normalise(examples: &mut Examples, normalisation: &[Normalisation]) {
    if let Pixels::Floats(values) = &mut examples.images {
        for pixel in values.chunks_exact_mut(normalisation.len()) {
            pixel.iter_mut().zip(normalisation).for_each(|(value, channel)| *value = channel.apply(f64::from(*value)));
        }
    }
}
