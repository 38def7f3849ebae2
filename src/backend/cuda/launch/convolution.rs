//! Structs in which the kernels get a convolution's shape: `kernels/convolution.cu`.

use super::shared_structs;
use crate::network::{Convolution, Epilogue, Map};

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

    /// Positions of the sum.
    pub fn positions(&self) -> usize {
        (self.height * self.width) as usize
    }

    /// Positions of the map read that are the same modulo the stride.
    pub fn class_positions(&self) -> usize {
        let of = |side: i32| (side as usize).div_ceil(self.stride as usize);
        of(self.in_height) * of(self.in_width)
    }

    /// Rows of the filter gradient: the weights of an output, and its bias.
    pub fn filter_rows(&self) -> usize {
        (self.kernel * self.run) as usize + 1
    }
}

impl OutputMap {
    /// `shortcut` is 0 where nothing is added.
    pub fn new(map: Map, shortcut: usize) -> OutputMap {
        OutputMap { row: map.row() as i32, len: map.len() as i32, before: map.before as i32, shortcut: shortcut as i32 }
    }
}
