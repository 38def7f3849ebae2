//! The kernels of `kernels/head.cu`.

use super::{ELEMENTWISE, blocks, kernels};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};

kernels! {
    /// The mean over a map's positions.
    fn global_mean(
        slots: i32,
        height: i32,
        width: i32,
        channels: i32,
        row: i32,
        len: i32,
        before: i32,
        map: ConstPointer<'_, f32>,
        mean: MutPointer<'_, f32>
    )[] = ["global_mean"][0];
    blocks: [blocks(slots as usize * channels as usize), 1, 1];
    threads: ELEMENTWISE;

    /// The gradient of the sums that a mean was taken of.
    fn global_mean_backward(
        slots: i32,
        height: i32,
        width: i32,
        channels: i32,
        row: i32,
        len: i32,
        before: i32,
        through_relu: i32,
        map: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[] = ["global_mean_backward"][0];
    blocks: [blocks(slots as usize * (height * width * channels) as usize), 1, 1];
    threads: ELEMENTWISE;

    /// Logits, and the loss with its gradient or the margins. A block takes a group of a lane.
    fn dense_forward(
        images: i32,
        length: i32,
        places: i32,
        inputs: i32,
        weights_at: i32,
        bias_at: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        features: ConstPointer<'_, f32>,
        labels: ConstPointer<'_, u16>,
        logits: MutPointer<'_, f32>,
        sums: Option<MutPointer<'_, f32>>,
        parameters: i32,
        margins: Option<MutPointer<'_, f32>>
    )[lanes: usize] = ["dense_forward"][0];
    blocks: [1, (images as usize).div_ceil(length as usize), lanes];
    threads: 256;

    /// The gradient of the features.
    fn dense_backward(
        images: i32,
        inputs: i32,
        weights_at: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        gradient: ConstPointer<'_, f32>,
        rectified: Option<ConstPointer<'_, f32>>,
        to: MutPointer<'_, f32>
    )[lanes: usize] = ["dense_backward"][0];
    blocks: [blocks(images as usize * inputs as usize), 1, lanes];
    threads: ELEMENTWISE;

    /// The loss with its gradient, or the margins, of logits. A block takes a group of a lane.
    fn softmax_loss(
        images: i32,
        length: i32,
        places: i32,
        bias_at: i32,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        labels: ConstPointer<'_, u16>,
        logits: MutPointer<'_, f32>,
        sums: Option<MutPointer<'_, f32>>,
        parameters: i32,
        margins: Option<MutPointer<'_, f32>>
    )[lanes: usize] = ["softmax_loss"][0];
    blocks: [1, (images as usize).div_ceil(length as usize), lanes];
    threads: 256;
}
