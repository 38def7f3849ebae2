//! The kept weights of a fully connected layer that is not narrow: vectors hold images, so that a kept weight meets whole vectors.
//!
//! The order of sums is the one of the kernels that compute with all weights ([`tile`](super::tile)): forward the bias, then inputs; the data
//! gradient outputs; the gradient of a weight images. So finite sums have the same bits, up to the sign of a zero.

use super::pooled::Event;
use super::pruned::{Tap, Taps};
use super::simd::Simd;
use super::tile::{Positions, Start, outer};
use crate::network::Dense;

/// A layer with less than this part of its weights visits kept weights alone. LeNet-300-100 trains by them 1.15 to 1.23 times as fast with a tenth of
/// its weights, and 2.9 to 4.4 times with a fiftieth, at batch sizes 2 to 1,024 (one core of an Intel Xeon).
const KEPT: f64 = 0.12;

/// With at most this part of its blocks, the gradient is computed of blocks alone that have a kept weight. With up to 0.6, LeNet-300-100 trained at
/// 0.84 of its speed at sparsity 0.9 and batch size 16.
const KEPT_BLOCKS: f64 = 0.35;

/// Outputs of a block of weights; all of them read one input.
const BLOCK: usize = 16;

/// Floats of the widest vector: images of a row, and inputs, come in multiples of them.
const VECTOR: usize = 16;

/// Which weights a layer's products visit.
pub(super) struct KeptMatrix {
    /// By output: inputs.
    pub forward: Taps,
    /// By input: outputs.
    pub backward: Taps,
    /// Where each block with a kept weight begins in the weights: by output, then by input, so that what a tile reads is in the cache. None where the
    /// gradient is that of all weights.
    pub blocks: Option<Vec<u32>>,
}

impl KeptMatrix {
    /// None where not less than [`KEPT`] of the weights are kept, or the inputs are no whole vectors; `kept` flags the network's parameters.
    pub fn new(layer: &Dense, kept: &[bool]) -> Option<KeptMatrix> {
        let (kept, outputs) = (&kept[layer.weights..layer.bias], layer.outputs);
        let few = KEPT * kept.len() as f64;
        if kept.iter().filter(|&&kept| kept).count() as f64 >= few || !layer.inputs.is_multiple_of(VECTOR) {
            return None;
        }
        let collect = |lines: usize, read: usize, weight: &dyn Fn(usize, usize) -> usize| {
            let mut found = Taps { starts: vec![0], ..Taps::default() };
            for line in 0..lines {
                let of_line = (0..read).map(|at| (at, weight(line, at))).filter(|&(_, weight)| kept[weight]);
                found.taps.extend(of_line.map(|(at, weight)| Tap { at: at as u32, weight: weight as u32 }));
                found.starts.push(found.taps.len() as u32);
            }
            found
        };
        let starts = (0..outputs).step_by(BLOCK).flat_map(|output| (0..layer.inputs).map(move |input| input * outputs + output));
        let blocks: Vec<u32> = starts.filter(|&at| kept[at..at + BLOCK].contains(&true)).map(|at| at as u32).collect();
        Some(KeptMatrix {
            blocks: ((blocks.len() * BLOCK) as f64 <= KEPT_BLOCKS * kept.len() as f64).then_some(blocks),
            forward: collect(outputs, layer.inputs, &|output, input| input * outputs + output),
            backward: collect(layer.inputs, outputs, &|input, output| input * outputs + output),
        })
    }

    /// Says where each weight stands in a leaf's gradient of the blocks, which follow each other there, and returns its floats.
    pub fn lay_out(blocks: &[u32], places: &mut [u32]) -> usize {
        for (number, &at) in blocks.iter().enumerate() {
            places[at as usize..][..BLOCK].iter_mut().enumerate().for_each(|(i, place)| *place = (number * BLOCK + i) as u32);
        }
        blocks.len() * BLOCK
    }

    /// From the gradient of the blocks to that of the weights in their order.
    pub fn collect(blocks: &[u32], from: &[f32], to: &mut [f32]) {
        blocks.iter().zip(from.chunks_exact(BLOCK)).for_each(|(&at, from)| to[at as usize..][..BLOCK].copy_from_slice(from));
    }

    /// The part of the weights that is kept.
    pub fn part(&self, layer: &Dense) -> f64 {
        self.forward.taps.len() as f64 / (layer.inputs * layer.outputs) as f64
    }
}

/// Floats of a row that has one float for each of `images` images, rounded up to whole vectors.
pub(super) fn row(images: usize) -> usize {
    images.next_multiple_of(VECTOR)
}

/// `to[channel][image]` = `from[image][channel]`, in rows of [`row`]\(images\), the last image again where a row has more.
///
/// # Panics
/// Unless there is an image, `from` has whole images of whole vectors of channels, and `to` all rows.
#[inline(always)]
pub(super) fn images_last<S: Simd>(from: &[f32], images: usize, channels: usize, to: &mut [f32]) {
    let row = row(images);
    assert!(images > 0 && channels.is_multiple_of(S::WIDTH) && from.len() == images * channels && to.len() == channels * row);
    for channel in (0..channels).step_by(S::WIDTH) {
        for image in (0..row).step_by(S::WIDTH) {
            // SAFETY: the vectors of channels that are read begin in images that `from` has, and `S::WIDTH` channels from `channel` on have whole
            // vectors of images in `to`: the assert says so.
            unsafe {
                let at = |i: usize| from.as_ptr().add((image + i).min(images - 1) * channels + channel);
                S::transpose(at, to.as_mut_ptr().add(channel * row + image), row);
            }
        }
    }
}

/// `to[line][image]` = the line's start + Σ weight · `from[at][image]` over the events of the line, in their order; `starts` is empty where all are
/// zero.
///
/// # Panics
/// Unless `events` are those of `taps`, `from` has the rows that they read, and there is a row of `to`, and a start if there are any, for each line.
#[inline(always)]
pub(super) fn sums<S: Simd>(taps: &Taps, events: &[Event], starts: &[f32], from: &[f32], images: usize, to: &mut [f32]) {
    let (row, lines) = (row(images), taps.starts.len() - 1);
    assert!(events.len() == taps.taps.len() && to.len() == lines * row && (starts.is_empty() || starts.len() == lines));
    let rows = from.len() / row;
    assert!(events.iter().fold(0, |most, event| most.max(event.at as usize + 1)) <= rows, "each event reads one of the rows");
    for (line, to) in to.chunks_exact_mut(row).enumerate() {
        let events = &events[taps.starts[line] as usize..taps.starts[line + 1] as usize];
        let start = starts.get(line).copied().unwrap_or(0.0);
        let mut image = 0;
        macro_rules! tiles {
            ($vectors:literal) => {
                while row - image >= $vectors * S::WIDTH {
                    // SAFETY: each event reads one of the rows of `from` (the assert), and so many vectors of a row, of `from` and of `to`, begin
                    // at `image`.
                    unsafe { tile::<S, $vectors>(events, from.as_ptr().add(image), row, start, to.as_mut_ptr().add(image)) };
                    image += $vectors * S::WIDTH;
                }
            };
        }
        tiles!(8);
        tiles!(4);
        tiles!(2);
        tiles!(1);
    }
}

/// [`sums`] of V vectors of a line.
///
/// # Safety
/// `from` is valid for reads of V vectors at each event's multiple of `row`, and `to` for writes of V vectors.
#[inline(always)]
unsafe fn tile<S: Simd, const V: usize>(events: &[Event], from: *const f32, row: usize, start: f32, to: *mut f32) {
    let mut sums = [S::splat(start); V];
    for event in events {
        let weight = S::splat(event.value);
        for (v, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller vouches for the vectors that an event reads.
            *sum = S::multiply_add(unsafe { S::load(from.add(event.at as usize * row + v * S::WIDTH)) }, weight, *sum);
        }
    }
    for (v, &sum) in sums.iter().enumerate() {
        // SAFETY: the caller vouches for V vectors.
        unsafe { S::store(to.add(v * S::WIDTH), sum) };
    }
}

/// Of each block: `gradient[block][output]` = start + Σ `input[image][..]` · `d[image][output]`, images in order.
///
/// # Panics
/// Unless `input` and `d` are of as many images, the blocks lie in the layer's weights, outputs come in whole blocks, `gradient` has all blocks, and
/// leaves have all images.
#[inline(always)]
pub(super) fn gradients<S: Simd>(layer: &Dense, blocks: &[u32], input: &[f32], d: &[f32], start: Start, gradient: &mut [f32]) {
    let Dense { inputs, outputs, .. } = *layer;
    let images = input.len() / inputs;
    assert!(outputs.is_multiple_of(BLOCK) && input.len() == images * inputs && d.len() == images * outputs);
    assert!(gradient.len() == blocks.len() * BLOCK, "there is a gradient of each block");
    start.assert_images(images);
    let positions = Positions { rows: 1, columns: images, x_row: 0, x_stride: inputs, d_stride: outputs };
    for (&at, gradient) in blocks.iter().zip(gradient.chunks_exact_mut(BLOCK)) {
        let (read, output) = (at as usize / outputs, at as usize % outputs);
        assert!(read < inputs && output.is_multiple_of(BLOCK), "a block lies in the weights");
        // SAFETY: each image has `inputs` floats of the input, of which `read` is one, and `outputs` of the gradient, of which a whole block begins
        // at `output`; the leaves of a tree are as many as may be and have all images (the asserts).
        unsafe {
            let (x, d, g) = (input.as_ptr().add(read), d.as_ptr().add(output), gradient.as_mut_ptr());
            if S::WIDTH == BLOCK {
                outer::<S, 1, 1>(x, d, positions, start, g, BLOCK);
            } else {
                outer::<S, 1, 2>(x, d, positions, start, g, BLOCK);
            }
        }
    }
}
