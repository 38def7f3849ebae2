//! The kernels that are made for each layer of a network: `kernels/forward.cu`, `data_gradient.cu` and `filter_gradient.cu` are templates, and
//! [`convolution_source`] and [`dense_source`] write down what NVRTC makes of them. A layer's numbers are then constants, which the compiler folds
//! into addresses. What the templates do not know, the plain kernels of `kernels/plain.cu` compute.

use std::fmt::Write;

use super::declare::layer_kernels;
use super::{ConvolutionShape, OutputMap};
use crate::backend::cuda::gpu::Stored;
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::network::{Convolution, Dense, Epilogue, Layer, Network};

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
    /// The tile of a plain kernel, whose threads compute one sum each.
    pub const PLAIN: Tile = Tile { rows: 1, columns: 32, down: 8, across: 1, along: 1 };

    /// For matrices of so many columns.
    fn of(columns: usize) -> Tile {
        match columns {
            0..=16 => Tile { rows: 64, columns: 16, down: 2, across: 1, along: 1 },
            17..=32 => Tile { rows: 64, columns: 32, down: 2, across: 1, along: 1 },
            _ => Tile { rows: 64, columns: 32, down: 2, across: 2, along: 1 },
        }
    }

    /// The tile for so many columns with a quarter of the rows: one warp, and at most 32 columns.
    fn low(columns: usize) -> Tile {
        Tile { rows: 32, columns: if columns <= 16 { 16 } else { 32 }, down: 1, across: 1, along: 1 }
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
    pub const fn height(self) -> usize {
        self.rows * self.down
    }

    /// Columns of the block's tile.
    pub const fn width(self) -> usize {
        self.columns * self.across
    }

    /// Threads of the block.
    pub fn threads(self) -> usize {
        32 * self.down * self.across * self.along
    }
}

/// Rows of a lane's matrix at most for which its tiles are low: they fill four high tiles at most, which are few for a GPU with 132 multiprocessors
/// even where a hundred lanes have as many.
const FEW_ROWS: usize = 512;

/// Images of a lane at most for which tiles of a data gradient are low where many taps meet nothing: a high tile covers several positions there, and
/// multiplies every tap that meets something at one of them.
const FEW_IMAGES: usize = 63;

/// Images of a lane at most for which a layer's forward pass has low tiles. The rule is about speed alone: a sum goes through its terms in the same
/// order in every tile, so that its bits are the same.
fn low_forward(c: &ConvolutionShape) -> usize {
    FEW_ROWS / c.positions()
}

/// Images of a lane at most for which a layer's data gradient has low tiles. Many taps meet nothing where more than a third do, in the mean over the
/// positions of the map.
fn low_data_gradient(c: &ConvolutionShape) -> usize {
    let [kernel, stride, before] = [c.kernel, c.stride, c.in_before].map(|number| number as usize);
    // Pairs of a position and a tap that meet a sum, in one direction.
    let meeting = |side: i32, sums: i32| {
        let positions = before..before + side as usize;
        (0..sums as usize).flat_map(|sum| sum * stride..sum * stride + kernel).filter(|position| positions.contains(position)).count()
    };
    let met = meeting(c.in_height, c.height) * meeting(c.in_width, c.width) * stride * stride;
    let all = (c.in_height * c.in_width) as usize * kernel * kernel;
    let few_images = if 3 * met < 2 * all { FEW_IMAGES } else { 0 };
    few_images.max(FEW_ROWS / c.class_positions())
}

/// A layer's kernel for so many images of a lane, and its tile.
fn forward_kernel(c: &ConvolutionShape, images: i32) -> (&'static str, Tile) {
    let columns = c.out as usize;
    if images as usize <= low_forward(c) { ("low_forward", Tile::low(columns)) } else { ("forward", Tile::of(columns)) }
}

fn data_gradient_kernel(c: &ConvolutionShape, images: i32) -> (&'static str, Tile) {
    let columns = c.in_channels as usize;
    if images as usize <= low_data_gradient(c) { ("low_data_gradient", Tile::low(columns)) } else { ("data_gradient", Tile::of(columns)) }
}

/// The kernels of a convolution, or of a fully connected layer as one.
pub struct LayerKernels {
    pub shape: ConvolutionShape,
    /// Whether the kernels compute tiles of sums; else they are the kernels of `kernels/plain.cu`.
    pub tiles: bool,
}

impl LayerKernels {
    pub fn new(layer: &Convolution) -> LayerKernels {
        LayerKernels { shape: ConvolutionShape::new(layer), tiles: uses_tiles(layer) }
    }

    /// Kernels of the last layer's filter gradient.
    pub fn dense(layer: &Dense) -> LayerKernels {
        // Logits are written to no map: nothing reads the number 0 of one.
        LayerKernels::new(&layer.over_positions(1, Epilogue::Linear { written: 0 }))
    }
}

/// Rows and columns of a map at most, border included, that `kernels/data_gradient.cu` has indices for: 7 bits each.
const MOST_SIDE: usize = 127;

/// Whether the kernels that compute tiles of sums know a convolution.
pub fn uses_tiles(layer: &Convolution) -> bool {
    let (input, output) = (layer.input_map, layer.output);
    let pooled = matches!(layer.epilogue, Epilogue::ReluMaxPool { .. });
    let divides = |side: usize| side.is_multiple_of(layer.stride);
    let needs_data_gradient = layer.producer.is_some();
    let few = input.height.max(input.width) + input.before + input.after <= MOST_SIDE;
    !(pooled && (output.height % 2, output.width % 2) != (0, 0))
        && (!needs_data_gradient || divides(input.height) && divides(input.width) && few)
}

/// Whether the kernels of `kernels/im2col.cu`, which surround cuBLAS's products, know a convolution.
pub fn surrounds_products(network: &Network, layer: &Convolution) -> bool {
    let bypass = layer.bypass.map(|bypass| network.convolution(bypass));
    // The kernels tell an identity from the mean over 2 × 2 by its channels.
    let shortcut_fits = |last: &Convolution| match shortcut_factor(network, last) {
        0 => true,
        factor => factor == 2 && shortcut_channels(network, last) < last.output.channels,
    };
    let has_relu = !matches!(layer.epilogue, Epilogue::Linear { .. });
    uses_tiles(layer) && layer.has_bias && has_relu && [Some(layer), bypass].into_iter().flatten().all(shortcut_fits)
}

/// Channels of the shortcut that is added to a convolution's sum; 0 where none is.
fn shortcut_channels(network: &Network, layer: &Convolution) -> usize {
    if let Epilogue::Stream { shortcut: Some(from), .. } = layer.epilogue { network.maps[from].channels } else { 0 }
}

/// Rows of the windows over which the shortcut of a residual block's last convolution is averaged; 0 where it is the identity, or there is none.
fn shortcut_factor(network: &Network, layer: &Convolution) -> usize {
    let Epilogue::Stream { shortcut: Some(from), .. } = layer.epilogue else { return 0 };
    let (from, to) = (network.maps[from], layer.output);
    if [from.height, from.width, from.channels] == [to.height, to.width, to.channels] { 0 } else { from.height / to.height }
}

/// The kernels of one layer, as CUDA C++.
struct LayerSource {
    index: usize,
    kernels: LayerKernels,
    text: String,
}

impl LayerSource {
    fn new(index: usize, kernels: LayerKernels, numbers: &[(&str, usize)], to: OutputMap) -> LayerSource {
        let mut all = kernels.shape.fields();
        all.extend(
            [("to_row", to.row), ("to_len", to.len), ("to_before", to.before), ("shortcut", to.shortcut)].map(|(n, v)| (n, v.to_string())),
        );
        all.extend(numbers.iter().map(|&(name, value)| (name, value.to_string())));
        let all = all.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
        LayerSource { index, kernels, text: format!("struct Layer{index} {{\n    static constexpr int {all};\n}};\n") }
    }

    /// Adds a kernel: an instance of one of the templates, or of its plain twin. `warps` of a multiprocessor have registers at least.
    fn kernel(&mut self, template: &str, name: &str, parameters: &str, tile: Tile, warps: usize) {
        let Tile { rows, columns, down, across, along } = tile;
        let (index, threads) = (self.index, tile.threads());
        let blocks = warps * 32 / threads;
        let instance = format!("{template}<Layer{index}, Tile<{rows}, {columns}, {down}, {across}, {along}>>");
        // Writing to a String does not fail.
        let _ = if self.kernels.tiles {
            write!(
                self.text,
                "extern \"C\" __global__ void __launch_bounds__({threads}, {blocks}) {name}_{index}({parameters}) {{\n    \
                 __shared__ __align__(16) float space[{instance}::SPACE];\n    {instance}::compute({parameters}_ARGUMENTS, space);\n}}\n"
            )
        } else {
            write!(
                self.text,
                "extern \"C\" __global__ void __launch_bounds__({}) plain_{name}_{index}({parameters}) {{\n    \
                 Plain{template}<Layer{index}>::compute({parameters}_ARGUMENTS);\n}}\n",
                Tile::PLAIN.threads()
            )
        };
    }

    /// Adds a kernel, and its twin with low tiles, which is for at most so many images of a lane.
    fn with_low(&mut self, template: &str, name: &str, parameters: &str, columns: usize, warps: usize, images: usize) {
        self.kernel(template, name, parameters, Tile::of(columns), warps);
        if self.kernels.tiles && images > 0 {
            // `make gpu-cost` reads this line.
            let _ = writeln!(self.text, "// low_{name}_{} is for at most {images} images of a lane.", self.index);
            self.kernel(template, &format!("low_{name}"), parameters, Tile::low(columns), warps);
        }
    }

    fn forward(&mut self, most: usize) {
        let c = self.kernels.shape;
        self.with_low("Forward", "forward", "FORWARD", c.out as usize, most, low_forward(&c));
    }

    fn data_gradient(&mut self) {
        let c = self.kernels.shape;
        self.with_low("DataGradient", "data_gradient", "DATA_GRADIENT", c.in_channels as usize, FEW_WARPS, low_data_gradient(&c));
    }

    fn filter_gradient(&mut self, most: usize) {
        self.kernel("FilterGradient", "filter_gradient", "FILTER_GRADIENT", Tile::filter_gradient(&self.kernels.shape), most);
    }
}

/// Whether the gradient of a pooled layer's sums is written out, because two kernels that compute tiles read it; else kernels read that of the pooled
/// map.
pub fn is_unpooled(layer: &Convolution) -> bool {
    layer.producer.is_some() && matches!(layer.epilogue, Epilogue::ReluMaxPool { .. }) && uses_tiles(layer)
}

/// Warps of a multiprocessor that kernels leave registers for; products by the tensor cores take more registers.
fn warps(tensor: bool) -> usize {
    if tensor { FEW_WARPS } else { MANY_WARPS }
}

/// The kernels of the last layer, the network's at `index`: its filter gradient. `tensor`: the tensor cores multiply.
pub fn dense_source(index: usize, layer: &Dense, tensor: bool) -> String {
    let numbers = [("gradient_pooled", 0), ("has_bias", usize::from(layer.has_bias))];
    let to = OutputMap { row: 0, len: 0, before: 0, shortcut: 0 };
    let mut of = LayerSource::new(index, LayerKernels::dense(layer), &numbers, to);
    of.filter_gradient(warps(tensor));
    of.text
}

/// The kernels of a convolution, the network's layer at `index`. `tensor`: the tensor cores multiply.
pub fn convolution_source(network: &Network, index: usize, layer: &Convolution, tensor: bool) -> String {
    let kernels = LayerKernels::new(layer);
    let to = OutputMap::new(network.maps[layer.epilogue.written()], shortcut_channels(network, layer));
    let bypass = layer.bypass.map(|bypass| network.convolution(bypass));
    let numbers = [
        ("has_bias", usize::from(layer.has_bias)),
        ("relu", usize::from(!matches!(layer.epilogue, Epilogue::Linear { .. }))),
        ("stream", usize::from(matches!(layer.epilogue, Epilogue::Stream { .. }))),
        ("shortcut_factor", shortcut_factor(network, layer)),
        ("gradient_pooled", usize::from(kernels.shape.pooled == 1 && !is_unpooled(layer))),
        ("through_relu", usize::from(layer.producer.is_some_and(|producer| goes_through_relu(network, producer)))),
        ("bypass", bypass.map_or(0, |bypass| bypass.output.channels)),
        ("bypass_factor", bypass.map_or(0, |bypass| shortcut_factor(network, bypass))),
    ];
    let mut of = LayerSource::new(index, kernels, &numbers, to);
    of.forward(warps(tensor));
    of.filter_gradient(warps(tensor));
    if layer.producer.is_some() {
        of.data_gradient();
    }
    of.text
}

/// Whether the gradient that is kept for a layer is that of its ReLU's input, and so is 0 where the layer's map is 0. For a convolution with a max
/// pool the pooled map's gradient is kept instead: the pool's choice says where the ReLU let nothing through.
pub fn goes_through_relu(network: &Network, layer: usize) -> bool {
    let layer = &network.layers[layer];
    layer.has_relu() && !matches!(layer, Layer::Convolution(Convolution { epilogue: Epilogue::ReluMaxPool { .. }, .. }))
}

layer_kernels! {
    /// Sums of a layer, with its epilogue.
    fn convolution_forward(
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, Stored>,
        pitch: i32,
        input: ConstPointer<'_, Stored>,
        output: MutPointer<'_, Stored>,
        choice: Option<MutPointer<'_, u8>>,
        stream: Option<MutPointer<'_, f32>>,
        shortcut: Option<ConstPointer<'_, f32>>
    ) of c: ["forward", "low_forward"], forward_kernel(c, images), "plain_forward";
    blocks: |tile: Tile, lanes| [(images as usize * c.positions()).div_ceil(tile.height()), (c.out as usize).div_ceil(tile.width()), lanes];

    /// The gradient of the sum that a layer's input comes from. Positions that differ modulo the stride have tiles of their own.
    fn data_gradient(
        images: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, Stored>,
        pitch: i32,
        gradient: ConstPointer<'_, Stored>,
        choice: Option<ConstPointer<'_, u8>>,
        rectified: Option<ConstPointer<'_, Stored>>,
        bypass: Option<ConstPointer<'_, Stored>>,
        output: MutPointer<'_, Stored>
    ) of c: ["data_gradient", "low_data_gradient"], data_gradient_kernel(c, images), "plain_data_gradient";
    blocks: |tile: Tile, lanes| {
        let classes = (c.stride * c.stride) as usize;
        [(images as usize * c.class_positions()).div_ceil(tile.height()) * classes, (c.in_channels as usize).div_ceil(tile.width()), lanes]
    };

    /// The gradients of a layer's weights and bias, summed over each leaf.
    fn filter_gradient(
        images: i32,
        length: i32,
        places: i32,
        pitch: i32,
        input: ConstPointer<'_, Stored>,
        gradient: ConstPointer<'_, Stored>,
        choice: Option<ConstPointer<'_, u8>>,
        sums: MutPointer<'_, f32>
    ) of c: ["filter_gradient"], ("filter_gradient", Tile::filter_gradient(c)), "plain_filter_gradient";
    blocks: |tile: Tile, lanes| [
        c.filter_rows().div_ceil(tile.height()) * (c.out as usize).div_ceil(tile.width()),
        (images as usize).div_ceil(length as usize),
        lanes
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkName;

    #[test]
    fn few_images_of_a_lane_have_low_tiles() {
        // 512 rows or fewer; and of the pairs of a position and a tap 44 % meet a sum in Simple-CNN's second convolution, 84 % and more in ResNet-8.
        for (name, forward, data_gradient) in
            [(NetworkName::SimpleCnn, &[0, 8][..], &[63][..]), (NetworkName::Resnet8, &[0, 0, 0, 2, 2, 8, 8], &[0, 0, 2, 2, 8, 8])]
        {
            let network = Network::new(name);
            let layers = network.layers.iter().filter_map(|layer| if let Layer::Convolution(layer) = layer { Some(layer) } else { None });
            let shapes: Vec<_> = layers.map(ConvolutionShape::new).collect();
            assert_eq!(shapes.iter().map(low_forward).collect::<Vec<_>>(), forward, "{name}");
            assert_eq!(shapes[1..].iter().map(low_data_gradient).collect::<Vec<_>>(), data_gradient, "{name}");
            let second = &shapes[1];
            for (images, symbols) in
                [(8, ["low_forward", "low_data_gradient"]), (63, ["forward", "low_data_gradient"]), (64, ["forward", "data_gradient"])]
            {
                if name == NetworkName::SimpleCnn {
                    assert_eq!([forward_kernel(second, images).0, data_gradient_kernel(second, images).0], symbols, "{images} images");
                }
            }
        }
    }
}
