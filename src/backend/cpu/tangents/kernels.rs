//! Training's kernels, as the product calls them.

use super::pair::image;
use crate::backend::cpu::convolution::{ForwardRows, data_gradient_rows, filter_gradient_rows, group_rows, lay_out, transpose};
use crate::backend::cpu::simd::{Kernel, Simd};
use crate::backend::cpu::tile::{Live, Start};
use crate::backend::cpu::winograd::{Points, Tiles};
use crate::network::Convolution;
use crate::settings::Convolutions;

/// Tiles of a convolution that scores are computed by: those of direct convolutions, so that masks do not depend on `execution.convolutions`.
pub(super) fn tiles(layer: &Convolution) -> Option<Tiles> {
    Tiles::of(layer, Convolutions::Direct)
}

pub(super) struct LayOut<'a> {
    pub(super) layer: &'a Convolution,
    pub(super) adjoint: Option<&'a Convolution>,
    pub(super) values: &'a [f32],
    pub(super) forward: &'a mut [f32],
    pub(super) backward: &'a mut [f32],
    pub(super) scratch: &'a mut [f32],
}

impl Kernel for LayOut<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let LayOut { layer, adjoint, values, forward, backward, scratch } = self;
        lay_out::<S>(layer, tiles(layer), values, forward);
        if layer.producer.is_some() {
            transpose::<S>(layer, adjoint.map(|adjoint| (adjoint, tiles(adjoint))), values, scratch, backward);
        }
    }
}

/// Adds Σ input · d over some images to the gradient of a layer's weights.
pub(super) struct Filter<'a> {
    pub(super) layer: &'a Convolution,
    pub(super) count: usize,
    pub(super) input: &'a [f32],
    pub(super) d: &'a [f32],
    pub(super) gradient: &'a mut [f32],
    pub(super) points: &'a mut Points,
}

impl Kernel for Filter<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Filter { layer, count, input, d, gradient, points } = self;
        let (length, row, group) = (layer.output.len(), layer.output.row(), group_rows(layer, tiles(layer)));
        let live = Live::all(layer.input_map.channels);
        let input = |at: usize| image(input, layer.input_map.len(), at);
        let d = |at: usize| image(d, length, at);
        if let Some(tiles) = tiles(layer) {
            // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
            return unsafe { tiles.filter_gradient::<S>(layer, live, count, input, d, gradient, points) };
        }
        for at in 0..count {
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe { filter_gradient_rows::<S>(layer, live, input(at), &d(at)[first * row..], first, rows, Start::Chain, gradient) };
            }
        }
    }
}

/// The gradient of one image's input.
pub(super) struct Data<'a> {
    pub(super) layer: &'a Convolution,
    pub(super) adjoint: Option<&'a Convolution>,
    pub(super) weights: &'a [f32],
    pub(super) d: &'a [f32],
    pub(super) to: &'a mut [f32],
    pub(super) bordered: &'a mut [f32],
    pub(super) points: &'a mut Points,
}

impl Kernel for Data<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Data { layer, adjoint, weights, d, to, bordered, points } = self;
        let row = layer.output.row();
        let Some(adjoint) = adjoint else {
            to.fill(0.0);
            let group = group_rows(layer, None);
            for first in (0..layer.output.height).step_by(group) {
                let rows = group.min(layer.output.height - first);
                // SAFETY: the layer is the physical network's, whose extents `check` has bounded.
                unsafe { data_gradient_rows::<S>(layer, Live::all(layer.output.channels), weights, &d[first * row..], first, rows, to) };
            }
            return;
        };
        let bordered = &mut bordered[..adjoint.input_map.len()];
        bordered.fill(0.0);
        for (y, from) in d.chunks_exact(row).enumerate() {
            bordered[adjoint.input_map.at_row(y)..][..row].copy_from_slice(from);
        }
        let (tiles, live) = (tiles(adjoint), Live::all(adjoint.input_map.channels));
        let group = group_rows(adjoint, tiles);
        for (index, sums) in to.chunks_mut(group * adjoint.output.row()).enumerate() {
            // SAFETY: the adjoint has the extents of a physical network's layer, which `check` has bounded.
            S::call(unsafe { ForwardRows::new(adjoint, tiles, live, bordered, weights, None, index * group, sums, points) });
        }
    }
}
