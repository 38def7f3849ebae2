//! Group normalisation, sixteen channels side by side.
//!
//! A sum over a map's positions goes through them in a fixed number of chains for each channel, whatever the vector unit; a group's sum then goes
//! through its channels in order. Channels behind those of the groups, by which the network was widened, are zero, and nothing divides by them.

use super::super::check::VECTOR;
use super::super::epilogue::rectify;
use super::super::simd::Simd;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, Place, Vectorised};
use super::workspace::{Pass, Workspace, image_of};
use crate::network::{EPSILON, GroupNorm, Network};

/// Chains of a channel's sum over positions, added in order: enough that no addition waits for the one before it.
const CHAINS: usize = 4;

/// Numbers kept for each channel of an image.
const NUMBERS: usize = 4;

impl CpuLayer for GroupNorm {
    fn describe(&self) -> &'static str {
        "channels in vectors"
    }

    fn make_room(&self, network: &Network, _images: usize, _buffers: &mut Buffers, scratch: &mut Scratch) {
        scratch.input_gradient.grow(network.maps[self.input].len());
        scratch.channels.grow(NUMBERS * self.channels);
    }
}

/// Some channels of a position.
type Channels = [f32; VECTOR];

/// Σ over the positions of an image, for the sixteen channels from `channel` on, of the N terms that `terms` makes of where they begin in the image.
#[inline(always)]
fn sums<const N: usize>(layer: &GroupNorm, channel: usize, terms: impl Fn(usize) -> [Channels; N]) -> [Channels; N] {
    let mut chains = [[[0.0; VECTOR]; N]; CHAINS];
    let whole = layer.positions - layer.positions % CHAINS;
    for first in (0..whole).step_by(CHAINS) {
        for (position, chain) in (first..).zip(&mut chains) {
            add(chain, &terms(position * layer.channels + channel));
        }
    }
    for (position, chain) in (whole..).zip(&mut chains) {
        if position < layer.positions {
            add(chain, &terms(position * layer.channels + channel));
        }
    }
    let mut sums = [[0.0; VECTOR]; N];
    chains.iter().for_each(|chain| add(&mut sums, chain));
    sums
}

#[inline(always)]
fn add<const N: usize>(sums: &mut [Channels; N], terms: &[Channels; N]) {
    for (sums, terms) in sums.iter_mut().zip(terms) {
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
}

/// Sixteen numbers from a place on.
#[inline(always)]
fn sixteen(values: &[f32], at: usize) -> Channels {
    let mut sixteen = [0.0; VECTOR];
    sixteen.copy_from_slice(&values[at..at + VECTOR]);
    sixteen
}

/// Adds up the numbers of each group's channels, divides the sum by the count of the group's values, and writes what `of` makes of the quotient to
/// each of the channels.
#[inline(always)]
fn over_groups(layer: &GroupNorm, numbers: &mut [f32], of: impl Fn(f32) -> f32) {
    let count = (layer.positions * layer.group_channels) as f32;
    for group in numbers.chunks_exact_mut(layer.group_channels).take(layer.groups) {
        let mean = group.iter().sum::<f32>() / count;
        group.fill(of(mean));
    }
}

/// Writes, for each channel of an image, the mean of its group and 1 / √(variance + [`EPSILON`]).
#[inline(always)]
fn statistics(layer: &GroupNorm, image: &[f32], means: &mut [f32], factors: &mut [f32]) {
    for (channel, means) in (0..).step_by(VECTOR).zip(means.chunks_exact_mut(VECTOR)) {
        let [sums] = sums(layer, channel, |at| [sixteen(image, at)]);
        means.copy_from_slice(&sums);
    }
    over_groups(layer, means, |mean| mean);
    for (channel, factors) in (0..).step_by(VECTOR).zip(factors.chunks_exact_mut(VECTOR)) {
        let means = sixteen(means, channel);
        let [squares] = sums(layer, channel, |at| {
            let values = sixteen(image, at);
            [std::array::from_fn(|i| (values[i] - means[i]) * (values[i] - means[i]))]
        });
        factors.copy_from_slice(&squares);
    }
    over_groups(layer, factors, |variance| 1.0 / (variance + EPSILON).sqrt());
}

impl Vectorised for GroupNorm {
    #[inline(always)]
    fn prepare<S: Simd>(&self, _place: &Place, _space: &mut Workspace, _weights: &[f32], _backward: bool) {}

    #[inline(always)]
    fn forward<S: Simd>(&self, _place: &Place, pass: &mut Pass) {
        let space = &mut *pass.space;
        let (from, to, channels) = (space.network.maps[self.input], space.network.maps[self.output], self.channels);
        let (scales, biases) = (&pass.weights[self.scale..][..channels], &pass.weights[self.bias..][..channels]);
        let (means, factors) = space.scratch.channels[..2 * channels].split_at_mut(channels);
        let mut output = std::mem::take(&mut space.maps[self.output]);
        for (index, output) in output.chunks_exact_mut(to.len()).enumerate().take(pass.count) {
            let image = image_of(&space.maps[self.input], from, index);
            statistics(self, image, means, factors);
            factors.iter_mut().zip(scales).for_each(|(factor, scale)| *factor *= scale);
            for (y, row) in image.chunks_exact(from.row()).enumerate() {
                let output = &mut output[to.at_row(y)..][..row.len()];
                for (output, values) in output.chunks_exact_mut(channels).zip(row.chunks_exact(channels)) {
                    for (channel, output) in (0..).step_by(VECTOR).zip(output.as_chunks_mut::<VECTOR>().0) {
                        let [values, means, factors, biases] =
                            [values, &*means, &*factors, biases].map(|numbers| sixteen(numbers, channel));
                        let value = |i: usize| (values[i] - means[i]) * factors[i] + biases[i];
                        *output = std::array::from_fn(|i| if self.relu { rectify(value(i)) } else { value(i) });
                    }
                }
            }
        }
        space.maps[self.output] = output;
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let space = &mut *pass.space;
        let (map, channels, len) = (space.network.maps[self.input], self.channels, self.positions * self.channels);
        let scales = &pass.weights[self.scale..][..channels];
        let (scale_gradient, bias_gradient) = pass.gradient[place.weights..].split_at_mut(place.bias - place.weights);
        for index in 0..pass.count {
            let image = image_of(&space.maps[self.input], map, index);
            let received = &space.layers[place.index].gradient[index * len..][..len];
            let (means, rest) = space.scratch.channels[..NUMBERS * channels].split_at_mut(channels);
            let (factors, rest) = rest.split_at_mut(channels);
            let (shifts, slopes) = rest.split_at_mut(channels);
            statistics(self, image, means, factors);
            for channel in (0..channels).step_by(VECTOR) {
                let centre = sixteen(means, channel);
                let [sums, products] = sums(self, channel, |at| {
                    let (received, values) = (sixteen(received, at), sixteen(image, at));
                    [received, std::array::from_fn(|i| received[i] * (values[i] - centre[i]))]
                });
                for (i, channel) in (channel..channel + VECTOR).enumerate() {
                    let (scale, normalised) = (scales[channel], products[i] * factors[channel]);
                    bias_gradient[channel] += sums[i];
                    scale_gradient[channel] += normalised;
                    (shifts[channel], slopes[channel]) = (scale * sums[i], scale * normalised);
                }
            }
            // Two terms are subtracted from the gradient of a group's normalised values: the mean gradient, and each normalised value times the
            // mean product of gradient and normalised value.
            over_groups(self, shifts, |mean| mean);
            over_groups(self, slopes, |mean| mean);
            for (channel, factor) in factors.iter_mut().enumerate() {
                shifts[channel] *= *factor;
                slopes[channel] *= *factor * *factor;
                *factor *= scales[channel];
            }
            let sent = &mut space.scratch.input_gradient[..len];
            let positions = sent.chunks_exact_mut(channels).zip(received.chunks_exact(channels)).zip(image.chunks_exact(channels));
            for ((sent, received), values) in positions {
                for (channel, sent) in (0..).step_by(VECTOR).zip(sent.as_chunks_mut::<VECTOR>().0) {
                    let [received, values, means] = [received, values, &*means].map(|numbers| sixteen(numbers, channel));
                    let [factors, shifts, slopes] = [&*factors, &*shifts, &*slopes].map(|numbers| sixteen(numbers, channel));
                    *sent = std::array::from_fn(|i| received[i] * factors[i] - shifts[i] - (values[i] - means[i]) * slopes[i]);
                }
            }
            space.keep(self.producer, self.input, index, map, 0);
        }
    }
}
