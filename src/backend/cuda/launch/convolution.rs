//! The kernels of `kernels/convolution.cu`.

use super::{kernels, shared_structs};
use crate::Result;
use crate::backend::cuda::check::refuse;
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::network::{Convolution, Dense, Epilogue, Map};

/// Threads of a block.
pub const THREADS: usize = 128;

/// Rows of the filter gradient, the bias included, for which the small tiles serve.
const SMALL_ROWS: usize = 32;

shared_structs! {
    /// The shape of a convolution.
    pub struct ConvolutionShape {
        pub kernel: i32,
        pub stride: i32,
        /// Floats that an output reads in one input row.
        pub run: i32,
        /// Where the weights begin among a lane's parameters.
        pub weights: i32,
        pub bias: i32,
        pub in_channels: i32,
        pub in_row: i32,
        pub in_len: i32,
        pub in_before: i32,
        pub in_height: i32,
        pub in_width: i32,
        pub height: i32,
        pub width: i32,
        pub out: i32,
        /// 1 where the sum is rectified and pooled.
        pub pooled: i32,
    }

    /// The map that a convolution's forward pass writes: floats of a bordered row and of an image, the border's width before them, and the
    /// channels of the shortcut that is added to the sum.
    pub struct OutputMap {
        pub row: i32,
        pub len: i32,
        pub before: i32,
        pub shortcut: i32,
    }
}

impl ConvolutionShape {
    pub fn new(layer: &Convolution) -> ConvolutionShape {
        let map = layer.input_map;
        ConvolutionShape {
            kernel: layer.kernel as i32,
            stride: layer.stride as i32,
            run: layer.run() as i32,
            weights: layer.weights as i32,
            bias: layer.bias as i32,
            in_channels: map.channels as i32,
            in_row: map.row() as i32,
            in_len: map.len() as i32,
            in_before: map.before as i32,
            in_height: map.height as i32,
            in_width: map.width as i32,
            height: layer.output.height as i32,
            width: layer.output.width as i32,
            out: layer.output.channels as i32,
            pooled: matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }).into(),
        }
    }

    /// A fully connected layer as a convolution with one position.
    pub fn dense(layer: &Dense) -> ConvolutionShape {
        let row = layer.inputs as i32;
        ConvolutionShape {
            kernel: 1,
            stride: 1,
            run: row,
            weights: layer.weights as i32,
            bias: layer.bias as i32,
            in_channels: row,
            in_row: row,
            in_len: row,
            in_before: 0,
            in_height: 1,
            in_width: 1,
            height: 1,
            width: 1,
            out: layer.outputs as i32,
            pooled: 0,
        }
    }

    /// Positions of the sum.
    pub fn positions(&self) -> usize {
        (self.height * self.width) as usize
    }

    /// Rows of the filter gradient: the weights of an output, and its bias.
    fn filter_rows(&self) -> usize {
        (self.kernel * self.run) as usize + 1
    }
}

impl OutputMap {
    /// `shortcut` is 0 where nothing is added.
    pub fn new(map: Map, shortcut: usize) -> OutputMap {
        OutputMap { row: map.row() as i32, len: map.len() as i32, before: map.before as i32, shortcut: shortcut as i32 }
    }
}

/// Columns of a tile: there is a kernel for each number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileColumns {
    Sixteen,
    ThirtyTwo,
    SixtyFour,
}

impl TileColumns {
    /// Those for so many channels.
    pub fn of(channels: usize) -> Result<TileColumns> {
        match channels {
            16 => Ok(TileColumns::Sixteen),
            32 => Ok(TileColumns::ThirtyTwo),
            64 => Ok(TileColumns::SixtyFour),
            other => Err(refuse(format!("expected layers of 16, 32 or 64 channels, found {other}; use --device cpu"))),
        }
    }

    /// Rows of a tile: each of [`THREADS`] threads has 8 × 4 sums.
    fn rows(self) -> usize {
        8 * 4 * THREADS / [16, 32, 64][self as usize]
    }
}

/// The tiles of a filter gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterTiles {
    Small(TileColumns),
    Large(TileColumns),
}

impl FilterTiles {
    /// Those for a layer; the columns are the output channels, rounded up to 16.
    pub fn of(shape: &ConvolutionShape) -> Result<FilterTiles> {
        let columns = TileColumns::of((shape.out as usize).next_multiple_of(16))?;
        let small = shape.filter_rows() <= SMALL_ROWS && columns != TileColumns::SixtyFour;
        Ok(if small { FilterTiles::Small(columns) } else { FilterTiles::Large(columns) })
    }

    fn kernel(self) -> usize {
        match self {
            FilterTiles::Large(columns) => columns as usize,
            FilterTiles::Small(columns) => 3 + columns as usize,
        }
    }

    fn rows(self) -> usize {
        match self {
            FilterTiles::Large(columns) => columns.rows(),
            FilterTiles::Small(_) => SMALL_ROWS,
        }
    }
}

kernels! {
    /// Sums of a layer, with its epilogue; `columns` are its output channels.
    fn convolution_forward(
        c: ConvolutionShape,
        to: OutputMap,
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        input: ConstPointer<'_, f32>,
        output: MutPointer<'_, f32>,
        choice: Option<MutPointer<'_, u8>>,
        stream: Option<MutPointer<'_, f32>>,
        shortcut: Option<ConstPointer<'_, f32>>
    )[lanes: usize, columns: TileColumns] =
        ["convolution_forward_16", "convolution_forward_32", "convolution_forward_64"][columns as usize];
    blocks: [(images as usize * c.positions()).div_ceil(columns.rows()), 1, lanes];
    threads: THREADS;

    /// The gradient of the sum that a layer's input comes from; `columns` are its input channels. Positions that differ modulo the stride
    /// have tiles of their own.
    fn data_gradient(
        c: ConvolutionShape,
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        gradient: ConstPointer<'_, f32>,
        choice: ConstPointer<'_, u8>,
        rectified: Option<ConstPointer<'_, f32>>,
        bypass: Option<ConstPointer<'_, f32>>,
        bypass_channels: i32,
        output: MutPointer<'_, f32>
    )[lanes: usize, columns: TileColumns] = ["data_gradient_16", "data_gradient_32", "data_gradient_64"][columns as usize];
    blocks: {
        let classes = (c.stride * c.stride) as usize;
        let positions = (c.in_height * c.in_width) as usize / classes;
        [(images as usize * positions).div_ceil(columns.rows()) * classes, 1, lanes]
    };
    threads: THREADS;

    /// The gradients of a layer's weights and bias, summed over each leaf.
    fn filter_gradient(
        c: ConvolutionShape,
        images: i32,
        length: i32,
        places: i32,
        pitch: i32,
        input: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        choice: Option<ConstPointer<'_, u8>>,
        sums: MutPointer<'_, f32>
    )[lanes: usize, tiles: FilterTiles] = [
        "filter_gradient_16",
        "filter_gradient_32",
        "filter_gradient_64",
        "filter_gradient_small_16",
        "filter_gradient_small_32"
    ][tiles.kernel()];
    blocks: [c.filter_rows().div_ceil(tiles.rows()), (images as usize).div_ceil(length as usize), lanes];
    threads: THREADS;
}
