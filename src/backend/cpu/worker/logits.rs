//! The logits of few classes: a row of weights for each input is a vector or two.

use std::ops::Range;

use super::super::dense::LOGITS;
use super::super::simd::{Kernel, Simd};
use super::super::tile::{Positions, Runs, Start, outer, product};
use super::pass::Pass;
use crate::network::Dense;

/// The forward pass of the layer.
pub(super) struct Forward<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
}

impl Kernel for Forward<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { pass, index, layer } = self;
        let worker = &mut *pass.worker;
        let path = &pass.plan.layers[index].path;
        let inputs = path.computed_rows(layer);
        let bias = &pass.weights[layer.bias..][..layer.outputs];
        for logits in worker.logits.chunks_exact_mut(LOGITS).take(pass.count) {
            logits[..layer.outputs].copy_from_slice(bias);
        }
        let runs = Runs::one(inputs);
        let input = gathered(layer, path.rows(), inputs, &worker.maps[layer.input], &mut worker.scratch.logits_input, pass.count);
        let (input, weights) = (&input[..pass.count * inputs], &worker.layers[index].forward[..inputs * LOGITS]);
        let logits = worker.logits[..pass.count * LOGITS].as_mut_ptr();
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

/// Adds to the gradient of the weights and of the bias, over some images.
pub(super) struct Gradient<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
    pub images: Range<usize>,
}

impl Kernel for Gradient<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Gradient { pass, index, layer, images } = self;
        let worker = &mut *pass.worker;
        let plan = &pass.plan.layers[index];
        let inputs = plan.path.computed_rows(layer);
        let d = &worker.logit_gradients[images.start * LOGITS..images.end * LOGITS];
        let (gradient, bias_gradient) = pass.gradient[plan.weights..].split_at_mut(inputs * LOGITS);
        for gradient in d.chunks_exact(LOGITS) {
            for (sum, &value) in bias_gradient[..layer.outputs].iter_mut().zip(gradient) {
                *sum += value;
            }
        }
        // The forward pass has left there what the rows read.
        let read = if plan.path.rows().is_some() { &worker.scratch.logits_input } else { &worker.maps[layer.input] };
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
}

/// Sends the gradient of all images to the producer, if there is one.
pub(super) struct Send<'a, 'b> {
    pub pass: &'a mut Pass<'b>,
    pub index: usize,
    pub layer: &'a Dense,
}

impl Kernel for Send<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Send { pass, index, layer } = self;
        let Some(producer) = layer.producer else { return };
        let worker = &mut *pass.worker;
        let path = &pass.plan.layers[index].path;
        let (inputs, count) = (path.computed_rows(layer), pass.count);
        let d = worker.logit_gradients[..count * LOGITS].as_ptr();
        let scratch = &mut worker.scratch;
        let sent = if path.rows().is_some() { &mut scratch.logits_sent } else { &mut scratch.input_gradient };
        let sent = &mut sent[..count * inputs];
        sent.fill(0.0);
        let weights = &worker.layers[index].backward[..LOGITS * inputs];
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
        if let Some(rows) = path.rows() {
            to.fill(0.0);
            for (to, from) in to.chunks_exact_mut(layer.inputs).zip(scratch.logits_sent.chunks_exact(inputs)) {
                rows.iter().zip(from).for_each(|(&row, &from)| to[row as usize] = from);
            }
        }
        worker.keep_all(producer, layer.input, count);
    }
}
