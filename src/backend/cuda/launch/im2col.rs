//! The kernels of `kernels/im2col.cu`.

use super::{ConvolutionShape, ELEMENTWISE, OutputMap, blocks, kernels};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};

/// Outputs of a block of `bias_gradient`, and rows that it adds up at a time.
pub const BIAS_COLUMNS: usize = 16;
pub const BIAS_ROWS: usize = 64;

kernels! {
    /// Patches of a map as a matrix: float by float, or in fours where the channels are a multiple of 4. A warp takes a row.
    fn patches(
        c: ConvolutionShape,
        images: i32,
        slot: i64,
        count: i32,
        map: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[lanes: usize] = ["patches_1", "patches_4"][usize::from(c.in_channels % 4 == 0)];
    blocks: [blocks(count as usize * c.positions() * 32), 1, lanes];
    threads: ELEMENTWISE;

    /// Epilogue of a convolution's forward pass: it turns the sums into the layer's output.
    fn convolution_tail(
        c: ConvolutionShape,
        to: OutputMap,
        images: i32,
        slot: i64,
        count: i32,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        sums: ConstPointer<'_, f32>,
        output: MutPointer<'_, f32>,
        choice: Option<MutPointer<'_, u8>>,
        stream: Option<MutPointer<'_, f32>>,
        shortcut: Option<ConstPointer<'_, f32>>
    )[lanes: usize] = ["convolution_tail"][0];
    blocks: [blocks(count as usize * c.positions() * c.out as usize), 1, lanes];
    threads: ELEMENTWISE;

    /// The gradient of the sums from that of the pooled map: of one channel at a time, or of four where the channels are a multiple of 4.
    fn unpool(
        c: ConvolutionShape,
        images: i32,
        slot: i64,
        count: i32,
        gradient: ConstPointer<'_, f32>,
        choice: ConstPointer<'_, u8>,
        to: MutPointer<'_, f32>
    )[lanes: usize] = ["unpool_1", "unpool_4"][usize::from(c.out % 4 == 0)];
    blocks: [blocks(count as usize * c.positions() / 4 * c.out as usize / if c.out % 4 == 0 { 4 } else { 1 }), 1, lanes];
    threads: ELEMENTWISE;

    /// The gradient of the map from that of its patches.
    fn patch_sums(
        c: ConvolutionShape,
        images: i32,
        slot: i64,
        count: i32,
        patches: ConstPointer<'_, f32>,
        rectified: Option<ConstPointer<'_, f32>>,
        bypass: Option<ConstPointer<'_, f32>>,
        bypass_channels: i32,
        output: MutPointer<'_, f32>
    )[lanes: usize] = ["patch_sums"][0];
    blocks: [blocks(count as usize * (c.in_height * c.in_width * c.in_channels) as usize), 1, lanes];
    threads: ELEMENTWISE;

    /// The gradient of a bias, summed over each leaf.
    fn bias_gradient(
        images: i32,
        length: i32,
        places: i32,
        pitch: i32,
        bias: i32,
        kept: i32,
        out: i32,
        gradient: ConstPointer<'_, f32>,
        choice: Option<ConstPointer<'_, u8>>,
        sums: MutPointer<'_, f32>
    )[lanes: usize] = ["bias_gradient"][0];
    blocks: [(out as usize).div_ceil(BIAS_COLUMNS), (images as usize).div_ceil(length as usize), lanes];
    threads: BIAS_COLUMNS * BIAS_ROWS;
}
