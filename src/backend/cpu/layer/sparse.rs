//! A convolution without a pool that visits kept weights alone, one image at a time.

use super::super::epilogue::rectify;
use super::super::floats::Floats;
use super::super::pooled::Event;
use super::super::pruned::Taps;
use super::super::simd::Simd;
use super::super::sparse::products::{self, Target};
use super::super::sparse::submaps::{self, SUBMAPS, channel_map, submaps_of};
use super::super::sparse::{KeptWeights, SparseLayers, TURNS, received};
use super::kind::{CpuLayer, Place, Vectorised};
use super::workspace::{Pass, Workspace};
use crate::network::{Convolution, Epilogue, Map, Network};

pub(super) struct Sparse {
    layer: Convolution,
    kept: KeptWeights,
}

impl Sparse {
    pub(super) fn new(network: &Network, index: usize, layer: &Convolution, kept: &[bool]) -> Sparse {
        Sparse { layer: layer.clone(), kept: KeptWeights::new(network, index, layer, kept) }
    }
}

impl CpuLayer for Sparse {
    fn describe(&self) -> &'static str {
        "kept weights, in sub-maps"
    }

    fn is_in_submaps(&self) -> bool {
        true
    }

    fn work(&self, forward: f64) -> f64 {
        3.0 * forward * (self.kept.forward.taps.len() as f64 / self.layer.weight_count() as f64)
    }
}

impl Vectorised for Sparse {
    /// The kept weights with their values.
    #[inline(always)]
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        let (Sparse { layer, kept }, SparseLayers { forward, backward: sent, sums, .. }) = (self, &mut space.sparse);
        sums[place.index].grow((kept.forward.taps.len() + layer.output.channels) * SUBMAPS);
        let weights = &weights[layer.weights..layer.bias];
        let read = |taps: &Taps, events: &mut Vec<Event>| {
            events.clear();
            events.extend(taps.taps.iter().map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
        };
        read(&kept.forward, &mut forward[place.index]);
        if backward {
            read(&kept.backward, &mut sent[place.index]);
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let (Sparse { layer, kept }, Workspace { network, sparse, .. }) = (self, &mut *pass.space);
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let (read, out, written) = (channel_map(layer.input_map), channel_map(layer.output), layer.epilogue.written());
        let to = channel_map(network.maps[written]);
        let mut rectified = std::mem::take(&mut sparse.maps[written]);
        let mut kept_stream = match layer.epilogue {
            Epilogue::Stream { stream, .. } => std::mem::take(&mut sparse.maps[stream]),
            _ => Floats::default(),
        };
        let input = submaps_of(&sparse.maps[layer.input], layer.input_map).as_ptr();
        let rows = products::band::<S>(out.width);
        let target = Target { row: out.row(), point: SUBMAPS };
        for first in (0..out.height).step_by(rows) {
            for channel in (0..layer.output.channels).filter(|&channel| kept.live[channel]) {
                let taps = of(&sparse.forward[place.index], &kept.forward, channel);
                let sums = match layer.epilogue {
                    Epilogue::Stream { .. } => &mut kept_stream[channel * out.len() + out.at_row(first)..][..rows * out.row()],
                    _ => &mut sparse.band[..rows * out.row()],
                };
                // SAFETY: `taps` are the layer's, whose offsets `KeptWeights` has made for the first point of its input in sub-maps, which `input`
                // has whole; a band's other points are as many rows and columns further, within the border; `sums` has the band's rows.
                unsafe {
                    let input = input.add(first * layer.stride * read.row());
                    products::sums::<S>(out.width, layer.stride, taps, input, read, bias[channel], sums.as_mut_ptr(), target);
                }
                if let Epilogue::Stream { shortcut: Some(shortcut), .. } = layer.epilogue
                    && channel < network.maps[shortcut].channels
                {
                    let from = channel_map(network.maps[shortcut]);
                    add_shortcut::<S>(from, &sparse.maps[shortcut][channel * from.len()..][..from.len()], out, first, sums);
                }
                for (y, sums) in sums.chunks_exact(out.row()).enumerate() {
                    let to = &mut rectified[channel * to.len() + to.at_row(first + y)..][..sums.len()];
                    for (to, &sum) in to.iter_mut().zip(sums) {
                        *to = rectify(sum);
                    }
                }
            }
        }
        for (points, _) in rectified.chunks_exact_mut(to.len()).zip(&kept.live).filter(|(_, live)| **live) {
            // SAFETY: the map is the physical network's, cut where `fit` says that it can be.
            unsafe { submaps::fill_borders::<S>(to, points) };
        }
        sparse.maps[written] = rectified;
        if let Epilogue::Stream { stream, .. } = layer.epilogue {
            sparse.maps[stream] = kept_stream;
        }
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let (Sparse { layer, kept }, Workspace { network, sparse, .. }) = (self, &mut *pass.space);
        if pass.is_first {
            sparse.sums[place.index].fill(0.0);
        }
        self.add_filter_gradient::<S>(place, sparse);
        if let Some(producer) = layer.producer {
            self.send::<S>(place, producer, network, sparse);
        }
        if !pass.is_last {
            return;
        }
        let (sums, _) = sparse.sums[place.index].as_chunks::<SUBMAPS>();
        let (taps, biases) = sums.split_at(kept.forward.taps.len());
        for (tap, submaps) in kept.forward.taps.iter().zip(taps) {
            pass.gradient[place.weights + tap.weight as usize] += products::total(submaps);
        }
        for (bias, submaps) in pass.gradient[place.bias..][..layer.output.channels].iter_mut().zip(biases) {
            *bias += products::total(submaps);
        }
    }
}

impl Sparse {
    /// Adds the gradient of an image's weights and biases to their sums.
    #[inline(always)]
    fn add_filter_gradient<S: Simd>(&self, place: &Place, sparse: &mut SparseLayers) {
        let Sparse { layer, kept } = self;
        let (read, d) = (channel_map(layer.input_map), channel_map(received(layer)));
        let (input, gradient) = (submaps_of(&sparse.maps[layer.input], layer.input_map).as_ptr(), &sparse.gradients[place.index % TURNS]);
        let (sums, biases) = sparse.sums[place.index].split_at_mut(kept.forward.taps.len() * SUBMAPS);
        let rows = products::band::<S>(d.width);
        for first in (0..d.height).step_by(rows) {
            for (channel, bias) in biases.as_chunks_mut::<SUBMAPS>().0.iter_mut().enumerate() {
                if !kept.live.get(channel).is_some_and(|&live| live) {
                    continue;
                }
                let taps = of(&sparse.forward[place.index], &kept.forward, channel);
                let gradient = &gradient[channel * d.len()..][..d.len()];
                // SAFETY: `taps` are the layer's, whose offsets `KeptWeights` has made for the first point of its input in sub-maps, which `input`
                // has whole; a band's other points are as many rows and columns further, within the border; `gradient` has the band's rows, and
                // `sums` a vector for each tap from the channel's first on.
                unsafe {
                    let input = input.add(first * layer.stride * read.row());
                    let sums = sums.as_mut_ptr().add(kept.forward.starts[channel] as usize * SUBMAPS);
                    products::gradients::<S>(d.width, layer.stride, taps, input, read, gradient.as_ptr().add(d.at_row(first)), d, sums);
                }
                let mut sum = *bias;
                for y in first..first + rows {
                    for point in gradient[d.at_row(y)..][..d.width * SUBMAPS].as_chunks::<SUBMAPS>().0 {
                        for (sum, &value) in sum.iter_mut().zip(point) {
                            *sum += value;
                        }
                    }
                }
                *bias = sum;
            }
        }
    }

    /// Writes the gradient of the producer's sum.
    #[inline(always)]
    fn send<S: Simd>(&self, place: &Place, producer: usize, network: &Network, sparse: &mut SparseLayers) {
        let Sparse { layer, kept } = self;
        assert!(producer + 1 == place.index && layer.bypass.is_none_or(|bypass| bypass == place.index + 1));
        let (input, d, stride) = (channel_map(layer.input_map), channel_map(received(layer)), layer.stride);
        let to = channel_map(received(network.convolution(producer)));
        let mut output = std::mem::take(&mut sparse.gradients[producer % TURNS]);
        let row = to.width * SUBMAPS;
        let rows = products::band::<S>(d.width);
        let band = &mut sparse.band[..rows * stride * row];
        let target = Target { row: stride * row, point: stride * SUBMAPS };
        for first in (0..d.height).step_by(rows) {
            for channel in (0..layer.input_map.channels).filter(|&channel| kept.sources[channel]) {
                for phase in 0..stride * stride {
                    let taps = of(&sparse.backward[place.index], &kept.backward, channel * stride * stride + phase);
                    let corner = phase / stride * row + phase % stride * SUBMAPS;
                    // SAFETY: `taps` are the layer's, whose offsets `KeptWeights` has made for the first point of the gradient in sub-maps, which
                    // is there whole; a band's other points lie within the border; `band` has `stride` rows and columns for each of the gradient's.
                    unsafe {
                        let d_rows = submaps_of(&sparse.gradients[place.index % TURNS], received(layer)).as_ptr().add(first * d.row());
                        products::sums::<S>(d.width, 1, taps, d_rows, d, 0.0, band.as_mut_ptr().add(corner), target);
                    }
                }
                let rectified = &sparse.maps[layer.input][channel * input.len()..][..input.len()];
                let shortcut = layer.bypass.map(|bypass| {
                    let from = channel_map(received(network.convolution(bypass)));
                    (from, &sparse.gradients[bypass % TURNS][channel * from.len()..][..from.len()])
                });
                for (y, sums) in band.chunks_exact(row).enumerate() {
                    let y = first * stride + y;
                    let to = &mut output[channel * to.len() + to.at_row(y)..][..row];
                    let rectified = &rectified[input.at_row(y)..][..row];
                    rectified_backward::<S>(sums, shortcut, y, rectified, to);
                }
            }
        }
        let channels = output.chunks_exact_mut(to.len()).take(layer.input_map.channels).enumerate();
        for (_, points) in channels.filter(|&(channel, _)| kept.sources[channel]) {
            // SAFETY: the map is the physical network's, cut where `fit` says that it can be.
            unsafe { submaps::fill_borders::<S>(to, points) };
        }
        sparse.gradients[producer % TURNS] = output;
    }
}

/// One channel's events.
#[inline(always)]
fn of<'a>(events: &'a [Event], taps: &Taps, group: usize) -> &'a [Event] {
    &events[taps.starts[group] as usize..taps.starts[group + 1] as usize]
}

/// Adds the shortcut to some rows of sums: as it is, or rectified and averaged over 2 × 2.
#[inline(always)]
fn add_shortcut<S: Simd>(from: Map, stream: &[f32], out: Map, first: usize, sums: &mut [f32]) {
    let factor = from.width / out.width;
    let stream = &stream[from.at_row(factor * first)..][..factor * sums.len() * factor];
    if factor == 1 {
        for (sum, &value) in sums.iter_mut().zip(stream) {
            *sum += value;
        }
        return;
    }
    assert!(from.row() >= 2 * out.row() && out.row().is_multiple_of(SUBMAPS), "a row of the stream has two points for each of the sums");
    for (y, sums) in sums.chunks_exact_mut(out.row()).enumerate() {
        let (upper, lower) = stream[2 * y * from.row()..][..2 * from.row()].split_at(from.row());
        for at in (0..out.row()).step_by(S::WIDTH) {
            let corner = at / SUBMAPS * 2 * SUBMAPS + at % SUBMAPS;
            // SAFETY: `at` is a vector's place in a row of sums. `corner` is that of the left-hand one of its two points in the rows of the stream,
            // which are at least twice as long (the assert).
            unsafe {
                // The products are exact.
                let (one, quarter) = (S::splat(1.0), S::splat(0.25));
                let pair = |row: &[f32]| {
                    let row = row.as_ptr().add(corner);
                    S::multiply_add(S::relu(S::load(row)), one, S::relu(S::load(row.add(SUBMAPS))))
                };
                let sum = sums.as_mut_ptr().add(at);
                S::store(sum, S::multiply_add(S::multiply_add(pair(upper), one, pair(lower)), quarter, S::load(sum)));
            }
        }
    }
}

/// Writes row `y` of the gradient of a layer's input, whose ReLU is `rectified`: `sums` where it is above zero, and what comes through a shortcut,
/// whose gradient and its map are given: as it is, or where 2 × 2 were averaged, a quarter of it where the ReLU is above zero.
///
/// # Panics
/// Unless all rows are as long, in whole points.
#[inline(always)]
fn rectified_backward<S: Simd>(sums: &[f32], shortcut: Option<(Map, &[f32])>, y: usize, rectified: &[f32], to: &mut [f32]) {
    let len = to.len();
    assert!(sums.len() == len && rectified.len() == len && len.is_multiple_of(SUBMAPS));
    let (same, halved) = match shortcut {
        Some((from, gradient)) if from.width * SUBMAPS == len => (Some(&gradient[from.at_row(y)..][..len]), None),
        Some((from, gradient)) => (None, Some(&gradient[from.at_row(y / 2)..][..len.div_ceil(2 * SUBMAPS) * SUBMAPS])),
        None => (None, None),
    };
    for at in (0..len).step_by(S::WIDTH) {
        // SAFETY: `at` is a vector's place in rows of `len` floats, whole points of 16; of a halved row it is that of one point for two, which the
        // slice has.
        unsafe {
            let (mut sum, positive) = (S::load(sums.as_ptr().add(at)), S::load(rectified.as_ptr().add(at)));
            if let Some(gradient) = halved {
                let value = S::load(gradient.as_ptr().add(at / (2 * SUBMAPS) * SUBMAPS + at % SUBMAPS));
                sum = S::multiply_add(value, S::splat(0.25), sum);
            }
            let mut row = S::where_positive(sum, positive);
            if let Some(gradient) = same {
                row = S::add(row, S::load(gradient.as_ptr().add(at)));
            }
            S::store(to.as_mut_ptr().add(at), row);
        }
    }
}
