//! The logits of few classes: a row of weights for each input is a vector or two.

use std::ops::Range;

use super::super::dense::{LOGITS, ROWS};
use super::super::simd::{Kernel, Simd};
use super::super::tile::{Positions, Runs, Start, outer, product};
use super::super::vector_unit::VectorUnit;
use super::buffers::{Buffers, Scratch};
use super::kind::{CpuLayer, DenseLayer, Place, Vectorised, VectorisedDense};
use super::workspace::{Pass, Workspace};
use crate::network::{Dense, Network};

/// A layer with less than this part of its inputs computes with those alone that a kept weight reads.
const KEPT_ROWS: f64 = 0.6;

pub(super) struct Logits {
    layer: Dense,
    /// The inputs that a kept weight reads; none where all are computed.
    rows: Option<Vec<u32>>,
}

impl Logits {
    /// The layer where `kept` flags the network's parameters.
    pub(super) fn new(layer: &Dense, kept: Option<&[bool]>) -> Logits {
        let rows = kept.and_then(|kept| {
            let read = kept[layer.weights..layer.bias].chunks_exact(layer.outputs).enumerate().filter(|(_, row)| row.contains(&true));
            let rows: Vec<u32> = read.map(|(input, _)| input as u32).collect();
            ((rows.len() as f64) < KEPT_ROWS * layer.inputs as f64).then_some(rows)
        });
        Logits { layer: layer.clone(), rows }
    }

    /// Rows that are computed with, in whole groups: at least one, of zeros, where no weight is kept.
    fn computed_rows(&self) -> usize {
        self.rows.as_ref().map_or(self.layer.inputs, |rows| rows.len().max(1)).next_multiple_of(ROWS)
    }

    /// The input of each row that is not of zeros.
    fn inputs(&self) -> impl Iterator<Item = usize> {
        let count = self.rows.as_ref().map_or(self.layer.inputs, Vec::len);
        (0..count).map(|row| self.rows.as_ref().map_or(row, |rows| rows[row] as usize))
    }
}

impl CpuLayer for Logits {
    fn describe(&self) -> &'static str {
        if self.rows.is_some() { "logits of few classes, from kept inputs" } else { "logits of few classes" }
    }

    fn make_room(&self, _network: &Network, images: usize, buffers: &mut Buffers, scratch: &mut Scratch) {
        let inputs = self.layer.inputs;
        buffers.forward.grow(inputs * LOGITS);
        buffers.backward.grow(LOGITS * inputs);
        for floats in [&mut scratch.input_gradient, &mut scratch.logits_input, &mut scratch.logits_sent] {
            floats.grow(inputs * images);
        }
    }

    /// A row of the weights has [`LOGITS`] floats there.
    fn lay_out(&self, places: &mut [u32]) -> usize {
        for (row, input) in self.inputs().enumerate() {
            for (output, place) in places[input * self.layer.outputs..][..self.layer.outputs].iter_mut().enumerate() {
                *place = (row * LOGITS + output) as u32;
            }
        }
        self.computed_rows() * LOGITS
    }

    fn collect(&self, unit: VectorUnit, from: &[f32], to: &mut [f32]) {
        unit.run(Collect { logits: self, from, to });
    }

    fn most_bytes(&self) -> u64 {
        4 * self.layer.inputs as u64
    }

    fn dense(&self) -> Option<&dyn DenseLayer> {
        Some(self)
    }
}

struct Collect<'a> {
    logits: &'a Logits,
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Kernel for Collect<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Collect { logits, from, to } = self;
        for (input, from) in logits.inputs().zip(from.chunks_exact(LOGITS)) {
            let to = &mut to[input * logits.layer.outputs..][..LOGITS];
            // A store of LOGITS floats may reach beyond the end of a row. The next row, if it is computed, overwrites the floats beyond the end;
            // after the last row the bias overwrites these floats.
            for v in (0..LOGITS).step_by(S::WIDTH) {
                // SAFETY: both slices have LOGITS floats, which are whole vectors.
                unsafe { S::store(to.as_mut_ptr().add(v), S::load(from.as_ptr().add(v))) };
            }
        }
    }
}

/// `[image][row]` of what the rows read of the input; the input itself where all of it is read.
#[inline(always)]
fn gathered<'a>(layer: &Dense, rows: Option<&[u32]>, computed: usize, input: &'a [f32], scratch: &'a mut [f32], count: usize) -> &'a [f32] {
    let Some(rows) = rows else { return input };
    for (to, from) in scratch.chunks_exact_mut(computed).zip(input.chunks_exact(layer.inputs)).take(count) {
        to[rows.len()..].fill(0.0);
        to.iter_mut().zip(rows).for_each(|(to, &row)| *to = from[row as usize]);
    }
    scratch
}

impl Vectorised for Logits {
    /// The weights of the computed rows, as `[in][LOGITS]` and, if `backward`, as `[LOGITS][in]`.
    #[inline(always)]
    fn prepare<S: Simd>(&self, place: &Place, space: &mut Workspace, weights: &[f32], backward: bool) {
        let buffers = &mut space.layers[place.index];
        let (layer, count) = (&self.layer, self.computed_rows());
        // A row is read beyond its end: into the next one, or the bias.
        let weights = &weights[layer.weights..][..(layer.inputs + 1) * layer.outputs];
        assert!(LOGITS <= 2 * layer.outputs && layer.outputs <= LOGITS && count <= layer.inputs && count.is_multiple_of(ROWS));
        assert!(!backward || buffers.backward.len() >= LOGITS * count);
        let nothing = [0.0; LOGITS];
        let row = |row: usize| match &self.rows {
            Some(rows) => rows.get(row).map_or(nothing.as_ptr(), |&input| weights[input as usize * layer.outputs..][..LOGITS].as_ptr()),
            None => weights[row * layer.outputs..][..LOGITS].as_ptr(),
        };
        for (index, to) in buffers.forward.chunks_exact_mut(LOGITS).enumerate().take(count) {
            for v in (0..LOGITS).step_by(S::WIDTH) {
                // SAFETY: `to` and a row, or the zeros in its place, have LOGITS floats, which are whole vectors.
                unsafe { S::store(to.as_mut_ptr().add(v), S::load(row(index).add(v))) };
            }
        }
        for first in (0..if backward { count } else { 0 }).step_by(S::WIDTH) {
            for v in (0..LOGITS).step_by(S::WIDTH) {
                let to = buffers.backward[v * count + first..].as_mut_ptr();
                // SAFETY: inputs come in groups of 32 (the assert), so that there are rows of LOGITS floats for a whole vector of them; `backward`
                // has as many floats as LOGITS rows of `count` (the assert), of which these vectors are some.
                unsafe { S::transpose(|i| row(first + i).add(v), to, count) };
            }
        }
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let space = &mut *pass.space;
        let (layer, rows, inputs) = (&self.layer, self.rows.as_deref(), self.computed_rows());
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        for logits in space.logits.chunks_exact_mut(LOGITS).take(pass.count) {
            logits[..layer.outputs].copy_from_slice(bias);
        }
        let runs = Runs::one(inputs);
        let input = gathered(layer, rows, inputs, &space.maps[layer.input], &mut space.scratch.logits_input, pass.count);
        let (input, weights) = (&input[..pass.count * inputs], &space.layers[place.index].forward[..inputs * LOGITS]);
        let logits = space.logits[..pass.count * LOGITS].as_mut_ptr();
        let mut image = 0;
        macro_rules! tiles {
            ($images:literal) => {
                while pass.count - image >= $images {
                    // SAFETY: `input` has `inputs` floats and `logits` a row of LOGITS for each image of the pass, and `weights` a row for each
                    // input: the slices that they are taken from say so.
                    unsafe {
                        let (a, b, c) = (input.as_ptr().add(image * inputs), weights.as_ptr(), logits.add(image * LOGITS));
                        if S::WIDTH == LOGITS {
                            product::<S, $images, 1, true>(a, inputs, runs, b, LOGITS, c, LOGITS);
                        } else {
                            product::<S, $images, 2, true>(a, inputs, runs, b, LOGITS, c, LOGITS);
                        }
                    }
                    image += $images;
                }
            };
        }
        tiles!(8);
        tiles!(4);
        tiles!(1);
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        VectorisedDense::leaf_gradient::<S>(self, place, pass, 0..pass.count);
        VectorisedDense::send::<S>(self, place, pass);
    }
}

impl VectorisedDense for Logits {
    #[inline(always)]
    fn leaf_gradient<S: Simd>(&self, place: &Place, pass: &mut Pass, images: Range<usize>) {
        let space = &mut *pass.space;
        let (layer, inputs) = (&self.layer, self.computed_rows());
        let d = &space.logit_gradients[images.start * LOGITS..images.end * LOGITS];
        let (gradient, bias_gradient) = pass.gradient[place.weights..].split_at_mut(inputs * LOGITS);
        for gradient in d.chunks_exact(LOGITS) {
            for (sum, &value) in bias_gradient[..layer.outputs].iter_mut().zip(gradient) {
                *sum += value;
            }
        }
        // The forward pass has left the inputs of the computed rows in `logits_input`.
        let read = if self.rows.is_some() { &space.scratch.logits_input } else { &space.maps[layer.input] };
        let read = &read[images.start * inputs..images.end * inputs];
        let positions = Positions { rows: 1, columns: images.len(), x_row: 0, x_stride: inputs, d_stride: LOGITS };
        // Rows come in groups of 32.
        let tall = if S::WIDTH == LOGITS { 8 } else { 4 };
        for from in (0..inputs).step_by(tall) {
            // SAFETY: inputs come in groups of 32, of which `tall` are some; `read` has all of them and `d` a row of LOGITS for each image,
            // `gradient` a row for each input: the slices say so.
            unsafe {
                let (x, g) = (read.as_ptr().add(from), gradient.as_mut_ptr().add(from * LOGITS));
                if S::WIDTH == LOGITS {
                    outer::<S, 8, 1>(x, d.as_ptr(), positions, Start::Chain, g, LOGITS);
                } else {
                    outer::<S, 4, 2>(x, d.as_ptr(), positions, Start::Chain, g, LOGITS);
                }
            }
        }
    }

    #[inline(always)]
    fn send<S: Simd>(&self, place: &Place, pass: &mut Pass) {
        let (layer, rows) = (&self.layer, self.rows.as_deref());
        let Some(producer) = layer.producer else { return };
        let space = &mut *pass.space;
        let (inputs, count) = (self.computed_rows(), pass.count);
        let d = space.logit_gradients[..count * LOGITS].as_ptr();
        let scratch = &mut space.scratch;
        let sent = if rows.is_some() { &mut scratch.logits_sent } else { &mut scratch.input_gradient };
        let sent = &mut sent[..count * inputs];
        sent.fill(0.0);
        let weights = &space.layers[place.index].backward[..LOGITS * inputs];
        let runs = Runs::one(layer.outputs);
        for image in 0..count {
            for from in (0..inputs).step_by(2 * S::WIDTH) {
                // SAFETY: inputs come in groups of 32, at least two vectors; `weights` has LOGITS rows of them, of which the layer's outputs are
                // read, `sent` a row and `d` LOGITS floats for each image: the slices say so.
                unsafe {
                    let (b, c) = (weights.as_ptr().add(from), sent.as_mut_ptr().add(image * inputs + from));
                    product::<S, 1, 2, true>(d.add(image * LOGITS), LOGITS, runs, b, inputs, c, inputs);
                }
            }
        }
        let to = &mut scratch.input_gradient[..count * layer.inputs];
        if let Some(rows) = rows {
            to.fill(0.0);
            for (to, from) in to.chunks_exact_mut(layer.inputs).zip(scratch.logits_sent.chunks_exact(inputs)) {
                rows.iter().zip(from).for_each(|(&row, &from)| to[row as usize] = from);
            }
        }
        space.keep_all(producer, layer.input, count);
    }
}
