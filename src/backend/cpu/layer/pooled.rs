//! A convolution that ends in ReLU and 2 × 2 max-pooling, by the kernels that the plan chose.

use std::sync::OnceLock;

use super::super::convolution::{ForwardRows, RESIDENT_WEIGHTS, add_positions, group_rows, laid_out_len, lay_out, transpose_matrix};
use super::super::pooled::{self, Event};
use super::super::pruned::{BLOCK, Blocks, Taps, deep, forward_kept, most_bytes, reads};
use super::super::simd::{Kernel, Simd};
use super::super::taps;
use super::super::tile::Start;
use super::super::vector_unit::VectorUnit;
use super::super::winograd;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, Place, Vectorised};
use super::workspace::{Pass, Workspace, image_of};
use crate::network::{Convolution, Network};
use crate::settings::Convolutions;

pub(super) struct Pooled {
    layer: Convolution,
    forward: Forward,
    /// How the gradients go.
    gradient: Way,
}

/// How the forward pass goes.
enum Forward {
    /// With all weights.
    Rows,
    /// With all weights, by Winograd's formula.
    Winograd,
    /// With these weights alone.
    Kept(Taps),
}

/// How the gradients go.
enum Way {
    /// From window to window, with all weights: for a layer that reads few channels of the image, whose own gradient nobody needs.
    Windows,
    /// From event to event, with these blocks of weights. Blocks of all weights are made when they are first asked for: they are many, and who plans
    /// memory needs none.
    Events(OnceLock<Blocks>),
}

impl Pooled {
    /// The layer at `index`, between so many pairs of live channels, where `kept` flags the network's parameters that kernels are to make use of, and
    /// `flags` those that may be other than zero.
    pub(super) fn new(
        network: &Network,
        index: usize,
        layer: &Convolution,
        [kept, flags]: [Option<&[bool]>; 2],
        live: usize,
        convolutions: Convolutions,
    ) -> Pooled {
        let winograd = convolutions == Convolutions::Winograd && winograd::pooled::fits(layer);
        let kept = kept.map(|kept| &kept[layer.weights..layer.bias]);
        let read = |channel: usize| flags.is_none_or(|flags| reads(network, index, flags, channel));
        let all = layer.kernel * layer.kernel * live;
        assert!(deep(layer) || layer.producer.is_none(), "gradients go from window to window where no layer needs them");
        Pooled {
            layer: layer.clone(),
            forward: match kept.and_then(|kept| Taps::new(network, layer, kept, forward_kept(winograd) * all as f64, read)) {
                Some(taps) => Forward::Kept(taps),
                None if winograd => Forward::Winograd,
                None => Forward::Rows,
            },
            gradient: match kept {
                _ if !deep(layer) => Way::Windows,
                Some(kept) => Way::Events(Blocks::new(layer, Some(kept)).into()),
                None => Way::Events(OnceLock::new()),
            },
        }
    }

    /// Floats of the weights laid out for the forward pass: of a layer without a mask, room for those of any mask, and for those that connections are
    /// scored with.
    fn forward_len(&self) -> usize {
        let rows = laid_out_len(&self.layer, None);
        if let Forward::Winograd = self.forward { rows.max(winograd::pooled::weights_len(&self.layer)) } else { rows }
    }

    /// The blocks of weights that the gradients go through.
    fn blocks(&self) -> Option<&Blocks> {
        match &self.gradient {
            Way::Windows => None,
            Way::Events(blocks) => Some(blocks.get_or_init(|| Blocks::new(&self.layer, None))),
        }
    }

    /// The blocks, where some are left out, and the places of the kept weights in them.
    fn kept_blocks(&self) -> Option<(&Blocks, &[(u32, u32)])> {
        let Way::Events(blocks) = &self.gradient else { return None };
        blocks.get().and_then(|blocks| Some((blocks, blocks.places.as_deref()?)))
    }
}

impl CpuLayer for Pooled {
    fn describe(&self) -> &'static str {
        match (&self.forward, self.kept_blocks().is_some()) {
            (Forward::Rows, false) => "rows, pooled in registers",
            (Forward::Winograd, false) => "Winograd, pooled in registers",
            (Forward::Kept(_), false) => "kept weights, pooled in registers",
            (Forward::Rows, true) => "rows, pooled in registers; gradients by kept blocks",
            (Forward::Winograd, true) => "Winograd, pooled in registers; gradients by kept blocks",
            (Forward::Kept(_), true) => "kept weights, pooled in registers; gradients by kept blocks",
        }
    }

    fn make_room(&self, network: &Network, images: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
        let layer = &self.layer;
        scratch.rows.grow(group_rows(layer, None) * layer.output.row());
        buffers.forward.grow(self.forward_len());
        if let Forward::Winograd = self.forward {
            scratch.points.grow(winograd::pooled::lengths(layer));
        }
        buffers.choice = vec![0; network.maps[layer.epilogue.written()].inner_len() * images];
        if deep(layer) {
            scratch.events.grow(layer);
            scratch.input_gradient.grow(pooled::sent_len(layer.input_map));
        } else {
            scratch.patches.grow(pooled::patches_len(layer.input_map));
            scratch.input_gradient.grow(layer.input_map.len());
        }
        if layer.producer.is_some() {
            buffers.backward.grow(layer.weight_count());
        }
    }

    /// From event to event the weights stand as `[out][kernel][kernel][in]`, or as kept blocks of that.
    fn lay_out(&self, places: &mut [u32]) -> usize {
        if let Some((blocks, kept)) = self.kept_blocks() {
            kept.iter().for_each(|&(place, weight)| places[weight as usize] = place);
            return blocks.offsets.len() * BLOCK;
        }
        let (count, outputs, transposed) = (places.len(), self.layer.output.channels, self.is_transposed());
        for (weight, place) in places.iter_mut().enumerate() {
            *place = if transposed { weight % outputs * (count / outputs) + weight / outputs } else { weight } as u32;
        }
        count
    }

    fn collect(&self, unit: VectorUnit, from: &[f32], to: &mut [f32]) {
        let outputs = self.layer.output.channels;
        if let Some((_, kept)) = self.kept_blocks() {
            kept.iter().for_each(|&(place, weight)| to[weight as usize] = from[place as usize]);
        } else if self.is_transposed() {
            unit.run(Transpose { from, rows: outputs, columns: from.len() / outputs, to: &mut to[..from.len()] });
        } else {
            to[..from.len()].copy_from_slice(from);
        }
    }

    fn writes_weights(&self) -> bool {
        matches!(self.gradient, Way::Events(_))
    }

    fn is_transposed(&self) -> bool {
        matches!(self.gradient, Way::Events(_)) && self.kept_blocks().is_none()
    }

    fn work(&self, forward: f64) -> f64 {
        let part = |count: usize| count as f64 / self.layer.weight_count() as f64;
        let sums = match &self.forward {
            Forward::Rows => 1.0,
            Forward::Winograd => winograd::pooled::MULTIPLIED,
            Forward::Kept(taps) => part(taps.taps.len()),
        };
        // A pool lets the gradient of one of four positions through.
        let (filter, data) = self.kept_blocks().map_or((1.0, 1.0), |(blocks, _)| {
            let filter = part(blocks.offsets.len() * BLOCK);
            (filter, if blocks.sent.is_some() { filter } else { 1.0 })
        });
        forward * (sums + (filter + data) / 4.0)
    }

    fn most_bytes(&self) -> u64 {
        most_bytes(&self.layer)
    }

    fn floats(&self) -> [usize; 2] {
        let points = if let Forward::Winograd = self.forward { winograd::pooled::lengths(&self.layer).iter().sum() } else { 0 };
        [self.forward_len(), points]
    }
}

struct Transpose<'a> {
    from: &'a [f32],
    rows: usize,
    columns: usize,
    to: &'a mut [f32],
}

impl Kernel for Transpose<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        transpose_matrix::<S>(self.from, self.rows, self.columns, self.to);
    }
}

impl Vectorised for Pooled {
    /// Lays out the weights for the forward pass, and for the data gradient if `backward`: the weights of the blocks that are sent, or all weights
    /// as `[kernel][out][kernel · in]`.
    #[inline(always)]
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        let (layer, buffers, scratch) = (&self.layer, &mut space.layers[place.index], &mut space.scratch);
        let weights = &weights[layer.weights..layer.bias];
        match &self.forward {
            Forward::Kept(taps) => {
                buffers.taps.clear();
                buffers.taps.extend(taps.taps.iter().map(|tap| Event { at: tap.at, value: weights[tap.weight as usize] }));
                scratch.phases.grow(taps::phases_len(layer));
                scratch.planar.grow(taps::planar_len(layer));
            }
            Forward::Winograd => {
                winograd::pooled::weights::<S>(layer, weights, &mut buffers.forward[..winograd::pooled::weights_len(layer)])
            }
            Forward::Rows => lay_out::<S>(layer, None, weights, &mut buffers.forward[..laid_out_len(layer, None)]),
        }
        if !backward {
            return;
        }
        let to = &mut buffers.backward;
        if let Some((blocks, kept)) = self.kept_blocks().filter(|(blocks, _)| blocks.sent.is_some()) {
            to[..blocks.offsets.len() * BLOCK].fill(0.0);
            kept.iter().for_each(|&(place, weight)| to[place as usize] = weights[weight as usize]);
            return;
        }
        let (run, outputs) = (layer.run(), layer.output.channels);
        for (from, to) in weights.chunks_exact(run * outputs).zip(to.chunks_exact_mut(run * outputs)) {
            transpose_matrix::<S>(from, run, outputs, to);
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let is_training = pass.is_training;
        let (space, layer) = (&mut *pass.space, &self.layer);
        let bias = &pass.weights[layer.bias..][..layer.output.channels];
        let written = layer.epilogue.written();
        let map = space.network.maps[written];
        let mut output = std::mem::take(&mut space.maps[written]);
        let (group, live) = (group_rows(layer, None), place.inputs);
        if let Forward::Winograd = self.forward {
            let (input, buffers) = (&space.maps[layer.input], &mut space.layers[place.index]);
            let (weights, points) = (&buffers.forward[..winograd::pooled::weights_len(layer)], &mut space.scratch.points);
            let choice: &mut [u8] = if is_training { &mut buffers.choice } else { &mut [] };
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
            unsafe { winograd::pooled::forward::<S>(layer, live, pass.count, input, weights, bias, map, &mut output, choice, points) };
            space.maps[written] = output;
            return;
        }
        // Whether the weights fit the first-level cache chooses between two kernels that give the same bits.
        let resident = layer.kernel * layer.run() * S::WIDTH.min(layer.output.channels) * 2 <= RESIDENT_WEIGHTS;
        for image in 0..pass.count {
            let input = image_of(&space.maps[layer.input], layer.input_map, image);
            let (buffers, scratch) = (&mut space.layers[place.index], &mut space.scratch);
            let output = &mut output[image * map.len()..][..map.len()];
            let choice: &mut [u8] = if is_training { &mut buffers.choice[image * map.inner_len()..][..map.inner_len()] } else { &mut [] };
            let weights = &buffers.forward[..laid_out_len(layer, None)];
            if let Forward::Kept(plan) = &self.forward {
                let (phases, planar) = (&mut scratch.phases, &mut scratch.planar);
                // SAFETY: the plan is of this network (`Task::check_lanes`), so its taps and corners are the layer's, and `prepare` has made
                // `buffers.taps` of them; `Taps::new` has made sure of whole vectors and even rows.
                unsafe {
                    taps::phases::<S>(layer, &plan.corners, input, phases);
                    taps::forward_taps::<S>(layer, plan, &buffers.taps, phases, bias, planar, output, choice);
                }
            } else if resident {
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe { pooled::forward_resident::<S>(layer, input, weights, bias, map, output, choice) };
            } else {
                for first in (0..layer.output.height).step_by(group) {
                    let rows = group.min(layer.output.height - first);
                    let sums = &mut scratch.rows[..rows * layer.output.row()];
                    // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                    unsafe {
                        S::call(ForwardRows::new(layer, None, live, input, weights, Some(bias), first, sums, &mut scratch.points));
                        pooled::pool_rows::<S>(layer, sums, first, rows, map, output, choice);
                    }
                }
            }
        }
        space.maps[written] = output;
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let first = pass.start();
        let (space, layer, blocks) = (&mut *pass.space, &self.layer, self.blocks());
        let own = space.network.maps[layer.epilogue.written()].inner_len();
        let (weight_gradient, bias_gradient) = pass.gradient[place.weights..].split_at_mut(place.bias - place.weights);
        let bias_gradient = &mut bias_gradient[..layer.output.channels];
        for image in 0..pass.count {
            let start = if image == 0 { first } else { Start::Chain };
            let input = image_of(&space.maps[layer.input], layer.input_map, image);
            let (buffers, scratch) = (&space.layers[place.index], &mut space.scratch);
            let received = &buffers.gradient[image * own..][..own];
            let choice = &buffers.choice[image * own..][..own];
            let sent = if layer.producer.is_some() { layer.input_map.len() } else { 0 };
            scratch.input_gradient[..sent].fill(0.0);
            add_positions::<S>(received, bias_gradient);
            match blocks {
                None => {
                    pooled::patches(layer.input_map, input, &mut scratch.patches);
                    // SAFETY: `patches` has just been called with this map; channels of a physical network are whole vectors.
                    unsafe { pooled::filter_gradient_selected::<S>(layer, &scratch.patches, received, choice, weight_gradient) };
                }
                // SAFETY: the plan is of this network (`Task::check_lanes`), so its blocks are the layer's, whose events are listed first.
                Some(blocks) => unsafe {
                    let few = blocks.sent.is_some();
                    if few {
                        scratch.events.list_few::<S>(layer, blocks, received, choice);
                    } else {
                        scratch.events.list(layer, blocks, received, choice);
                    }
                    pooled::filter_gradient_events::<S>(layer, input, &scratch.events, blocks, start, weight_gradient);
                    if layer.producer.is_some() && few {
                        pooled::data_gradient_blocks::<S>(layer, blocks, &buffers.backward, &scratch.events, &mut scratch.input_gradient);
                    } else if layer.producer.is_some() {
                        pooled::data_gradient_events::<S>(layer, &buffers.backward, &scratch.events, &mut scratch.input_gradient[..sent]);
                    }
                },
            }
            if let Some(producer) = layer.producer {
                space.keep(producer, layer.input, image, layer.input_map, 0);
            }
        }
    }
}
