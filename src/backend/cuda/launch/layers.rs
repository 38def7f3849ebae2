//! The kernels that are made for each layer of a network: `kernels/forward.cu`, `data_gradient.cu` and `filter_gradient.cu` are templates, and
//! [`source`] writes down what NVRTC makes of them. A layer's numbers are then constants, which the compiler folds into addresses.

use std::fmt::Write;

use super::declare::layer_kernels;
use super::{ConvolutionShape, OutputMap};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::network::{Convolution, Epilogue, Layer, Network};

/// Warps of a multiprocessor that a kernel leaves registers for: 168 a thread for 12 warps, 255 for 8.
const MANY_WARPS: usize = 12;
const FEW_WARPS: usize = 8;

/// The sums that a block computes, and how its warps share them: `Tile` of `kernels/product.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of a warp.
    rows: usize,
    columns: usize,
    /// Warps below each other and side by side.
    down: usize,
    across: usize,
    /// Warps that compute the same sums, each over some of the terms.
    along: usize,
}

impl Tile {
    /// For matrices of so many columns.
    fn of(columns: usize) -> Tile {
        match columns {
            0..=16 => Tile { rows: 64, columns: 16, down: 2, across: 1, along: 1 },
            17..=32 => Tile { rows: 64, columns: 32, down: 2, across: 1, along: 1 },
            _ => Tile { rows: 64, columns: 32, down: 2, across: 2, along: 1 },
        }
    }

    /// For the sums of a layer.
    fn forward(c: &ConvolutionShape) -> Tile {
        Tile::of(c.out as usize)
    }

    /// For the gradient of a layer's input.
    fn data_gradient(c: &ConvolutionShape) -> Tile {
        Tile::of(c.in_channels as usize)
    }

    /// For the gradient of a layer's weights and bias. Where these are few rows, the terms are shared out.
    fn filter_gradient(c: &ConvolutionShape) -> Tile {
        let columns = if c.out > 16 { 32 } else { 16 };
        if c.filter_rows() <= 32 {
            Tile { rows: 32, columns, down: 1, across: 1, along: 4 }
        } else {
            // At least as many threads as rows: each copies one row's numbers.
            let tile = Tile { down: 1, ..Tile::of(c.out as usize) };
            Tile { along: 2 / tile.across, ..tile }
        }
    }

    /// Rows of the block's tile.
    fn height(self) -> usize {
        self.rows * self.down
    }

    /// Columns of the block's tile.
    fn width(self) -> usize {
        self.columns * self.across
    }

    /// Threads of the block.
    pub fn threads(self) -> usize {
        32 * self.down * self.across * self.along
    }
}

/// The kernels of one layer, as CUDA C++.
struct LayerSource {
    index: usize,
    shape: ConvolutionShape,
    text: String,
}

impl LayerSource {
    fn new(index: usize, shape: ConvolutionShape, numbers: &[(&str, usize)], to: OutputMap) -> LayerSource {
        let mut all = shape.fields();
        all.extend(
            [("to_row", to.row), ("to_len", to.len), ("to_before", to.before), ("shortcut", to.shortcut)].map(|(n, v)| (n, v.to_string())),
        );
        all.extend(numbers.iter().map(|&(name, value)| (name, value.to_string())));
        let all = all.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
        LayerSource { index, shape, text: format!("struct Layer{index} {{\n    static constexpr int {all};\n}};\n") }
    }

    /// Adds a kernel: an instance of one of the templates. `warps` of a multiprocessor have registers at least.
    fn kernel(&mut self, template: &str, name: &str, parameters: &str, tile: Tile, warps: usize) {
        let Tile { rows, columns, down, across, along } = tile;
        let (index, threads) = (self.index, tile.threads());
        let blocks = warps * 32 / threads;
        let instance = format!("{template}<Layer{index}, Tile<{rows}, {columns}, {down}, {across}, {along}>>");
        // A string takes what is written to it.
        let _ = write!(
            self.text,
            "extern \"C\" __global__ void __launch_bounds__({threads}, {blocks}) {name}_{index}({parameters}) {{\n    \
             __shared__ __align__(16) float space[{instance}::SPACE];\n    {instance}::compute({parameters}_ARGUMENTS, space);\n}}\n"
        );
    }

    fn forward(&mut self, most: usize) {
        self.kernel("Forward", "forward", "FORWARD", Tile::forward(&self.shape), most);
    }

    fn data_gradient(&mut self) {
        self.kernel("DataGradient", "data_gradient", "DATA_GRADIENT", Tile::data_gradient(&self.shape), FEW_WARPS);
    }

    fn filter_gradient(&mut self, most: usize) {
        self.kernel("FilterGradient", "filter_gradient", "FILTER_GRADIENT", Tile::filter_gradient(&self.shape), most);
    }
}

/// Whether the gradient of a pooled layer's sums is written out, because two kernels read it; else the filter gradient alone reads that of the pooled
/// map.
pub fn is_unpooled(layer: &Convolution) -> bool {
    layer.producer.is_some() && matches!(layer.epilogue, Epilogue::ReluMaxPool { .. })
}

/// The kernels of a network's layers, to stand behind `kernels/`. `tensor`: the tensor cores multiply, which takes more registers.
pub fn source(network: &Network, tensor: bool) -> String {
    let warps = if tensor { FEW_WARPS } else { MANY_WARPS };
    let mut text = String::new();
    for (index, layer) in network.layers.iter().enumerate() {
        match layer {
            Layer::Convolution(layer) => text += &convolution(network, index, layer, warps).text,
            Layer::Dense(layer) => {
                let shape = ConvolutionShape::dense(layer);
                let mut of =
                    LayerSource::new(index, shape, &[("gradient_pooled", 0)], OutputMap { row: 0, len: 0, before: 0, shortcut: 0 });
                of.filter_gradient(warps);
                text += &of.text;
            }
            Layer::Pool(_) | Layer::GlobalMean(_) => {}
        }
    }
    text
}

fn convolution(network: &Network, index: usize, layer: &Convolution, warps: usize) -> LayerSource {
    let shape = ConvolutionShape::new(layer);
    let mut shortcut_channels = 0;
    if let Epilogue::Stream { shortcut: Some(from), .. } = layer.epilogue {
        shortcut_channels = network.maps[from].channels;
    }
    let to = OutputMap::new(network.maps[layer.epilogue.written()], shortcut_channels);
    // The pool's choice already knows what the ReLU let through.
    let producer_pools = |producer| matches!(network.convolution(producer).epilogue, Epilogue::ReluMaxPool { .. });
    let numbers = [
        ("stream", usize::from(matches!(layer.epilogue, Epilogue::Stream { .. }))),
        ("gradient_pooled", usize::from(shape.pooled == 1 && !is_unpooled(layer))),
        ("through_relu", usize::from(layer.producer.is_some_and(|producer| !producer_pools(producer)))),
        ("bypass", layer.bypass.map_or(0, |bypass| network.convolution(bypass).output.channels)),
    ];
    let mut of = LayerSource::new(index, shape, &numbers, to);
    of.forward(warps);
    of.filter_gradient(warps);
    if layer.producer.is_some() {
        of.data_gradient();
    }
    of
}

layer_kernels! {
    /// Sums of a layer, with its epilogue.
    fn convolution_forward(
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        input: ConstPointer<'_, f32>,
        output: MutPointer<'_, f32>,
        choice: Option<MutPointer<'_, u8>>,
        stream: Option<MutPointer<'_, f32>>,
        shortcut: Option<ConstPointer<'_, f32>>
    ) of c: "forward", Tile::forward;
    blocks: |tile: Tile, lanes| [(images as usize * c.positions()).div_ceil(tile.height()), (c.out as usize).div_ceil(tile.width()), lanes];

    /// The gradient of the sum that a layer's input comes from. Positions that differ modulo the stride have tiles of their own.
    fn data_gradient(
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        gradient: ConstPointer<'_, f32>,
        rectified: Option<ConstPointer<'_, f32>>,
        bypass: Option<ConstPointer<'_, f32>>,
        output: MutPointer<'_, f32>
    ) of c: "data_gradient", Tile::data_gradient;
    blocks: |tile: Tile, lanes| {
        let classes = (c.stride * c.stride) as usize;
        let positions = (c.in_height * c.in_width) as usize / classes;
        [(images as usize * positions).div_ceil(tile.height()) * classes, (c.in_channels as usize).div_ceil(tile.width()), lanes]
    };

    /// The gradients of a layer's weights and bias, summed over each leaf.
    fn filter_gradient(
        images: i32,
        length: i32,
        places: i32,
        pitch: i32,
        input: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        choice: Option<ConstPointer<'_, u8>>,
        sums: MutPointer<'_, f32>
    ) of c: "filter_gradient", Tile::filter_gradient;
    blocks: |tile: Tile, lanes| [
        c.filter_rows().div_ceil(tile.height()) * (c.out as usize).div_ceil(tile.width()),
        (images as usize).div_ceil(length as usize),
        lanes
    ];
}
