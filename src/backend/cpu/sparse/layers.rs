//! The layers of a lane that visit kept weights alone, on one image at a time.

use super::super::floats::Floats;
use super::super::plan::Plan;
use super::super::pooled::Event;
use super::super::pruned::Taps;
use super::super::simd::{Kernel, Simd};
use super::super::vector_unit::VectorUnit;
use super::products::{self, Target};
use super::submaps::{self, SUBMAPS, channel_map, submaps_len, submaps_of};
use super::weights::{KeptWeights, received};
use crate::network::{Convolution, Epilogue, Layer, Map, Network};

/// Gradients that are there at once.
const TURNS: usize = 3;

/// One image's maps and gradients in sub-maps, and kept weights with their values. Empty until a lane has a layer that needs them.
pub(in super::super) struct SparseLayers {
    unit: VectorUnit,
    /// One a map.
    maps: Vec<Floats>,
    /// The gradient of a convolution's sum, with the border that its data gradient reads. A backward pass has its own, its producer's and its
    /// block's, which are neighbours in the list of layers, so that three in turns are enough, and stay in the cache.
    gradients: [Floats; TURNS],
    /// One a layer: [`KeptWeights::forward`] and [`KeptWeights::backward`] with their weights.
    forward: Vec<Vec<Event>>,
    backward: Vec<Vec<Event>>,
    /// One a layer: sums for its gradient, `[tap][submap]`, then `[output channel][submap]` for its biases.
    sums: Vec<Floats>,
    /// Some rows of one channel.
    band: Floats,
}

impl SparseLayers {
    pub(in super::super) fn new(network: &Network, unit: VectorUnit) -> SparseLayers {
        let floats = |count: usize| (0..count).map(|_| Floats::default()).collect::<Vec<_>>();
        let events = || network.layers.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        SparseLayers {
            unit,
            maps: floats(network.maps.len()),
            gradients: std::array::from_fn(|_| Floats::default()),
            forward: events(),
            backward: events(),
            sums: floats(network.layers.len()),
            band: Floats::default(),
        }
    }

    /// Makes room for a plan's layers and their neighbours, and reads the kept weights.
    pub(in super::super) fn prepare(&mut self, network: &Network, plan: &Plan, weights: &[f32], backward: bool) {
        if !plan.has_sparse() {
            return;
        }
        for (submaps, &map) in self.maps.iter_mut().zip(&network.maps).filter(|(_, map)| submaps::fit(**map)) {
            submaps.grow(submaps_len(map));
            self.band.grow(channel_map(map).len());
        }
        for (index, layer) in network.layers.iter().enumerate() {
            let Layer::Convolution(layer) = layer else { continue };
            self.gradients[index % TURNS].grow(submaps_len(received(layer)));
            let Some(kept) = plan.layers[index].path.kept() else { continue };
            self.sums[index].grow((kept.forward.taps.len() + layer.output.channels) * SUBMAPS);
            let weights = &weights[layer.weights..][..layer.weight_count()];
            let read = |taps: &Taps, events: &mut Vec<Event>| {
                events.clear();
                events.extend(taps.taps.iter().map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
            };
            read(&kept.forward, &mut self.forward[index]);
            if backward {
                read(&kept.backward, &mut self.backward[index]);
            }
        }
    }

    /// Begins the sum of a gradient over images.
    pub(in super::super) fn begin(&mut self, plan: &Plan) {
        for (sums, _) in self.sums.iter_mut().zip(&plan.layers).filter(|(_, plan)| plan.path.kept().is_some()) {
            sums.fill(0.0);
        }
    }

    /// Adds the sum to a leaf's gradient.
    pub(in super::super) fn end(&mut self, network: &Network, plan: &Plan, gradient: &mut [f32]) {
        for (index, layer) in network.layers.iter().enumerate() {
            if let (Layer::Convolution(layer), Some(kept)) = (layer, plan.layers[index].path.kept()) {
                let (weights, bias) = (plan.layers[index].weights, plan.layers[index].bias);
                let (weights, biases) = gradient[weights..bias + layer.output.channels].split_at_mut(bias - weights);
                self.unit.run(End { kept, sums: &self.sums[index], weights, biases });
            }
        }
    }

    /// Brings the maps that a convolution reads from the layout of the layer that wrote them into that of the convolution. `maps` have channels
    /// last.
    pub(in super::super) fn bring_maps(&mut self, network: &Network, plan: &Plan, index: usize, layer: &Convolution, maps: &mut [Floats]) {
        self.bring_map(network, layer.input, [plan.is_sparse(layer.producer), plan.is_sparse(Some(index))], maps);
        if let (Epilogue::Stream { shortcut: Some(shortcut), .. }, Some(first)) = (&layer.epilogue, layer.producer) {
            let writer = network.convolution(first).producer;
            self.bring_map(network, *shortcut, [plan.is_sparse(writer), plan.is_sparse(Some(index))], maps);
        }
    }

    /// Brings a map from one layout into another: true means sub-maps.
    pub(in super::super) fn bring_map(&mut self, network: &Network, slot: usize, layouts: [bool; 2], maps: &mut [Floats]) {
        let map = network.maps[slot];
        self.unit.run(Bring { layouts, image_map: map, image: &mut maps[slot], submaps_map: map, submaps: &mut self.maps[slot] });
    }

    /// Brings the gradient of a convolution's sum from one layout into another: true means sub-maps. `gradient` has channels last.
    pub(in super::super) fn bring_gradient(&mut self, network: &Network, index: usize, layouts: [bool; 2], gradient: &mut [f32]) {
        let layer = network.convolution(index);
        let (image_map, submaps_map) = (layer.output, received(layer));
        let (image, submaps) = (gradient, &mut self.gradients[index % TURNS][..]);
        self.unit.run(Bring { layouts, image_map, image, submaps_map, submaps });
    }

    /// Convolution, bias and epilogue of an image.
    pub(in super::super) fn forward(&mut self, network: &Network, plan: &Plan, index: usize, bias: &[f32]) {
        if let Some(kept) = plan.layers[index].path.kept() {
            let layer = network.convolution(index);
            self.unit.run(Forward { layers: self, network, layer, kept, index, bias });
        }
    }

    /// Adds to the sums for the layer's gradient, and writes the gradient of the producer's sum, if there is a producer.
    pub(in super::super) fn backward(&mut self, network: &Network, plan: &Plan, index: usize) {
        if let Some(kept) = plan.layers[index].path.kept() {
            let layer = network.convolution(index);
            self.unit.run(FilterGradient { layers: self, layer, kept, index });
            let Some(producer) = layer.producer else { return };
            assert!(producer + 1 == index && layer.bypass.is_none_or(|bypass| bypass == index + 1));
            let live = plan.layers[producer].path.kept().map(|kept| &kept.live[..]);
            self.unit.run(DataGradient { layers: self, network, layer, kept, index, producer, live });
        }
    }
}

/// One channel's events.
#[inline(always)]
fn of<'a>(events: &'a [Event], taps: &Taps, group: usize) -> &'a [Event] {
    &events[taps.starts[group] as usize..taps.starts[group + 1] as usize]
}

struct Bring<'a> {
    layouts: [bool; 2],
    image_map: Map,
    image: &'a mut [f32],
    submaps_map: Map,
    submaps: &'a mut [f32],
}

impl Kernel for Bring<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Bring { layouts, image_map, image, submaps_map, submaps } = self;
        let [from, to] = layouts;
        if from != to {
            let image = &mut image[..image_map.len()];
            // SAFETY: the maps are the physical network's, cut where `fit` says that they can be; both functions check the lengths.
            unsafe {
                if to {
                    submaps::cut::<S>(image_map, image, submaps_map, submaps)
                } else {
                    submaps::join::<S>(submaps_map, submaps, image_map, image)
                }
            }
        }
    }
}

struct Forward<'a> {
    layers: &'a mut SparseLayers,
    network: &'a Network,
    layer: &'a Convolution,
    kept: &'a KeptWeights,
    index: usize,
    bias: &'a [f32],
}

impl Kernel for Forward<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { layers, network, layer, kept, index, bias } = self;
        let (read, out, written) = (channel_map(layer.input_map), channel_map(layer.output), layer.epilogue.written());
        let to = channel_map(network.maps[written]);
        let mut rectified = std::mem::take(&mut layers.maps[written]);
        let mut kept_stream = match layer.epilogue {
            Epilogue::Stream { stream, .. } => std::mem::take(&mut layers.maps[stream]),
            _ => Floats::default(),
        };
        let input = submaps_of(&layers.maps[layer.input], layer.input_map).as_ptr();
        let rows = products::band::<S>(out.width);
        let target = Target { row: out.row(), point: SUBMAPS };
        for first in (0..out.height).step_by(rows) {
            for channel in (0..layer.output.channels).filter(|&channel| kept.live[channel]) {
                let taps = of(&layers.forward[index], &kept.forward, channel);
                let sums = match layer.epilogue {
                    Epilogue::Stream { .. } => &mut kept_stream[channel * out.len() + out.at_row(first)..][..rows * out.row()],
                    _ => &mut layers.band[..rows * out.row()],
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
                    add_shortcut::<S>(from, &layers.maps[shortcut][channel * from.len()..][..from.len()], out, first, sums);
                }
                for (y, sums) in sums.chunks_exact(out.row()).enumerate() {
                    let to = &mut rectified[channel * to.len() + to.at_row(first + y)..][..sums.len()];
                    for (to, &sum) in to.iter_mut().zip(sums) {
                        *to = if sum <= 0.0 { 0.0 } else { sum };
                    }
                }
            }
        }
        for (points, _) in rectified.chunks_exact_mut(to.len()).zip(&kept.live).filter(|(_, live)| **live) {
            // SAFETY: the map is the physical network's, cut where `fit` says that it can be.
            unsafe { submaps::fill_borders::<S>(to, points) };
        }
        layers.maps[written] = rectified;
        if let Epilogue::Stream { stream, .. } = layer.epilogue {
            layers.maps[stream] = kept_stream;
        }
    }
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

struct FilterGradient<'a> {
    layers: &'a mut SparseLayers,
    layer: &'a Convolution,
    kept: &'a KeptWeights,
    index: usize,
}

impl Kernel for FilterGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let FilterGradient { layers, layer, kept, index } = self;
        let (read, d) = (channel_map(layer.input_map), channel_map(received(layer)));
        let (input, gradient) = (submaps_of(&layers.maps[layer.input], layer.input_map).as_ptr(), &layers.gradients[index % TURNS]);
        let (sums, biases) = layers.sums[index].split_at_mut(kept.forward.taps.len() * SUBMAPS);
        let rows = products::band::<S>(d.width);
        for first in (0..d.height).step_by(rows) {
            for (channel, bias) in biases.as_chunks_mut::<SUBMAPS>().0.iter_mut().enumerate() {
                if !kept.live.get(channel).is_some_and(|&live| live) {
                    continue;
                }
                let taps = of(&layers.forward[index], &kept.forward, channel);
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
}

struct DataGradient<'a> {
    layers: &'a mut SparseLayers,
    network: &'a Network,
    layer: &'a Convolution,
    kept: &'a KeptWeights,
    index: usize,
    producer: usize,
    /// The producer's live channels; none: all.
    live: Option<&'a [bool]>,
}

impl Kernel for DataGradient<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let DataGradient { layers, network, layer, kept, index, producer, live } = self;
        let is_live = |channel: usize| live.is_none_or(|live| live[channel]);
        let (input, d, stride) = (channel_map(layer.input_map), channel_map(received(layer)), layer.stride);
        let to = channel_map(received(network.convolution(producer)));
        let mut output = std::mem::take(&mut layers.gradients[producer % TURNS]);
        let row = to.width * SUBMAPS;
        let rows = products::band::<S>(d.width);
        let band = &mut layers.band[..rows * stride * row];
        let target = Target { row: stride * row, point: stride * SUBMAPS };
        for first in (0..d.height).step_by(rows) {
            for channel in (0..layer.input_map.channels).filter(|&channel| is_live(channel)) {
                for phase in 0..stride * stride {
                    let taps = of(&layers.backward[index], &kept.backward, channel * stride * stride + phase);
                    let corner = phase / stride * row + phase % stride * SUBMAPS;
                    // SAFETY: `taps` are the layer's, whose offsets `KeptWeights` has made for the first point of the gradient in sub-maps, which
                    // is there whole; a band's other points lie within the border; `band` has `stride` rows and columns for each of the gradient's.
                    unsafe {
                        let d_rows = submaps_of(&layers.gradients[index % TURNS], received(layer)).as_ptr().add(first * d.row());
                        products::sums::<S>(d.width, 1, taps, d_rows, d, 0.0, band.as_mut_ptr().add(corner), target);
                    }
                }
                let rectified = &layers.maps[layer.input][channel * input.len()..][..input.len()];
                let shortcut = layer.bypass.map(|bypass| {
                    let from = channel_map(received(network.convolution(bypass)));
                    (from, &layers.gradients[bypass % TURNS][channel * from.len()..][..from.len()])
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
        for (_, points) in channels.filter(|&(channel, _)| is_live(channel)) {
            // SAFETY: the map is the physical network's, cut where `fit` says that it can be.
            unsafe { submaps::fill_borders::<S>(to, points) };
        }
        layers.gradients[producer % TURNS] = output;
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

struct End<'a> {
    kept: &'a KeptWeights,
    sums: &'a [f32],
    weights: &'a mut [f32],
    biases: &'a mut [f32],
}

impl Kernel for End<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let End { kept, sums, weights, biases } = self;
        let (sums, _) = sums.as_chunks::<SUBMAPS>();
        let (taps, rest) = sums.split_at(kept.forward.taps.len());
        for (tap, submaps) in kept.forward.taps.iter().zip(taps) {
            weights[tap.weight as usize] += products::total(submaps);
        }
        for (bias, submaps) in biases.iter_mut().zip(rest) {
            *bias += products::total(submaps);
        }
    }
}
