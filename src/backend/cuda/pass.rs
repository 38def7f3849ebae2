//! One pass over the images in the workspace: the network's operations as launches.

use cudarc::driver::CudaFunction;

use super::check::refuse;
use super::gpu::{Gpu, at, launch};
use super::products::{Blas, Onward, Tails};
use super::workspace::Workspace;
use crate::Result;
use crate::network::{Convolution, Dense, Epilogue, GlobalMean, Map, Network, Operations};

/// Rows of a tile of `columns` columns: 128 threads with 8 × 4 sums each (convolution.cu).
const fn tile_rows(columns: usize) -> usize {
    4096 / columns
}

/// Threads of a block of the convolutions, and of the other kernels.
const THREADS: usize = 128;
pub(super) const ELEMENTWISE: usize = 256;

/// Blocks of an elementwise kernel at most: each thread then takes more elements.
pub(super) const MOST_BLOCKS: usize = 1 << 14;

/// Rows of the filter gradient, the bias included, for which the small tiles serve.
const SMALL_ROWS: usize = 32;

/// Images of some lanes in the workspace, on their way through the network.
pub(super) struct Pass<'a> {
    pub gpu: &'a Gpu,
    pub space: &'a Workspace,
    pub network: &'a Network,
    pub lanes: usize,
    /// Images of each lane.
    pub images: usize,
    /// `[lane]`: the lane's place among the weights.
    pub which: u64,
    /// `[place][pitch]`.
    pub weights: u64,
    /// cuBLAS, where the products are its own; it needs the weights in the order of the lanes: `ordered`, `[lane][pitch]`.
    pub blas: Option<&'a Blas>,
    pub ordered: u64,
    pub pitch: usize,
    /// Images that are summed together, or whose margins lie together.
    pub length: usize,
    /// Groups of so many images that a lane has room for in the sums or the margins.
    pub places: usize,
    pub aim: Aim,
    /// The first launch that failed; what follows it is left out.
    pub failed: Result<()>,
}

/// What a pass is for, and where it goes for its first lane and group.
#[derive(Clone, Copy)]
pub(super) enum Aim {
    /// `[lane][place][pitch]`: gradients and losses summed over each group.
    Gradients(u64),
    /// `[lane][place][length]`: margins of each group.
    Margins(u64),
}

impl Aim {
    /// Where the last layer's kernels put sums, and where margins: 0 for what the pass does not make.
    pub fn addresses(self) -> (u64, u64) {
        match self {
            Aim::Gradients(sums) => (sums, 0),
            Aim::Margins(margins) => (0, margins),
        }
    }
}

/// The twin of Convolution in convolution.cu.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Shape {
    kernel: i32,
    stride: i32,
    run: i32,
    weights: i32,
    bias: i32,
    inputs: i32,
    in_row: i32,
    in_len: i32,
    in_before: i32,
    in_height: i32,
    in_width: i32,
    height: i32,
    width: i32,
    out: i32,
    pub pooled: i32,
}

impl Shape {
    pub fn new(layer: &Convolution) -> Shape {
        let map = layer.input_map;
        Shape {
            kernel: layer.kernel as i32,
            stride: layer.stride as i32,
            run: layer.run() as i32,
            weights: layer.weights as i32,
            bias: layer.bias as i32,
            inputs: map.channels as i32,
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
    fn dense(layer: &Dense) -> Shape {
        let row = layer.inputs as i32;
        Shape {
            kernel: 1,
            stride: 1,
            run: row,
            weights: layer.weights as i32,
            bias: layer.bias as i32,
            inputs: row,
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
}

/// The twin of Written in convolution.cu.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Written {
    row: i32,
    len: i32,
    before: i32,
    shortcut: i32,
}

/// The kernel for that many columns, and its tile's rows.
fn width(kernels: &[CudaFunction; 3], columns: usize) -> Result<(&CudaFunction, usize)> {
    match columns {
        16 => Ok((&kernels[0], tile_rows(16))),
        32 => Ok((&kernels[1], tile_rows(32))),
        64 => Ok((&kernels[2], tile_rows(64))),
        other => Err(refuse(format!("expected layers of 16, 32 or 64 channels, found {other}; use --device cpu"))),
    }
}

impl Pass<'_> {
    /// Forward, with the losses or the margins; and backward, where gradients are asked for.
    pub fn run(mut self) -> Result<()> {
        self.network.forward(&mut self);
        if let Aim::Gradients(_) = self.aim {
            self.network.backward(&mut self);
        }
        self.failed
    }

    fn slots(&self) -> usize {
        self.lanes * self.images
    }

    pub fn groups(&self) -> usize {
        self.images.div_ceil(self.length)
    }

    fn attempt(&mut self, work: impl FnOnce(&Self) -> Result<()>) {
        if self.failed.is_ok() {
            self.failed = work(self);
        }
    }

    /// A buffer of the workspace that only some passes have.
    pub fn optional<T>(slice: &Option<cudarc::driver::CudaSlice<T>>) -> u64 {
        slice.as_ref().map_or(0, |slice| at(slice, 0))
    }

    fn forward(&self, index: usize, layer: &Convolution) -> Result<()> {
        let maps = &self.network.maps;
        let map: Map = maps[layer.epilogue.written()];
        let training = matches!(self.aim, Aim::Gradients(_));
        let choice = if training { at(&self.space.choices[index], 0) } else { 0 };
        let (mut stream, mut shortcut, mut channels) = (0, 0, 0);
        if let Epilogue::Stream { stream: to, shortcut: from, .. } = layer.epilogue {
            stream = at(&self.space.maps[to], 0);
            if let Some(from) = from {
                (shortcut, channels) = (at(&self.space.maps[from], 0), maps[from].channels);
            }
        }
        let written = Written { row: map.row() as i32, len: map.len() as i32, before: map.before as i32, shortcut: channels as i32 };
        if let Some(blas) = self.blas {
            return blas.forward(self, layer, &Tails { written, choice, stream, shortcut });
        }
        let columns = layer.output.channels;
        let (kernel, rows) = width(&self.gpu.kernels()?.convolution_forward, columns)?;
        let positions = layer.output.height * layer.output.width;
        launch!(
            self.gpu,
            kernel,
            [(self.images * positions).div_ceil(rows), 1, self.lanes],
            THREADS,
            Shape::new(layer),
            written,
            self.images as i32,
            self.which,
            self.weights,
            self.pitch as i32,
            at(&self.space.maps[layer.input], 0),
            at(&self.space.maps[layer.epilogue.written()], 0),
            choice,
            stream,
            shortcut
        )
    }

    fn filter_gradient(&self, shape: Shape, input: u64, gradient: u64, choice: u64) -> Result<()> {
        let Aim::Gradients(sums) = self.aim else { return Ok(()) };
        let rows = (shape.kernel * shape.run) as usize + 1;
        let kernels = self.gpu.kernels()?;
        let columns = (shape.out as usize).next_multiple_of(16);
        let (kernel, tile) = match columns {
            16 if rows <= SMALL_ROWS => (&kernels.filter_gradient_small[0], SMALL_ROWS),
            32 if rows <= SMALL_ROWS => (&kernels.filter_gradient_small[1], SMALL_ROWS),
            _ => width(&kernels.filter_gradient, columns)?,
        };
        launch!(
            self.gpu,
            kernel,
            [rows.div_ceil(tile), self.groups(), self.lanes],
            THREADS,
            shape,
            self.images as i32,
            self.length as i32,
            self.places as i32,
            self.pitch as i32,
            input,
            gradient,
            choice,
            sums
        )
    }

    fn backward(&self, index: usize, layer: &Convolution, network: &Network) -> Result<()> {
        let shape = Shape::new(layer);
        let gradient = at(&self.space.gradients[index], 0);
        let choice = at(&self.space.choices[index], 0);
        let input = at(&self.space.maps[layer.input], 0);
        let Some(producer) = layer.producer else {
            return match self.blas {
                Some(blas) => blas.backward(self, index, layer, None),
                None => self.filter_gradient(shape, input, gradient, choice),
            };
        };
        let rectified = match network.convolution(producer).epilogue {
            // The pool's choice already knows what the ReLU let through.
            Epilogue::ReluMaxPool { .. } => 0,
            _ => input,
        };
        let bypass = layer.bypass.map_or(0, |bypass| at(&self.space.gradients[bypass], 0));
        let bypass_channels = layer.bypass.map_or(0, |bypass| network.convolution(bypass).output.channels);
        let output = at(&self.space.gradients[producer], 0);
        if let Some(blas) = self.blas {
            return blas.backward(self, index, layer, Some(&Onward { rectified, bypass, bypass_channels: bypass_channels as i32, output }));
        }
        self.filter_gradient(shape, input, gradient, choice)?;
        let (kernel, rows) = width(&self.gpu.kernels()?.data_gradient, layer.input_map.channels)?;
        // Positions that differ modulo the stride have tiles of their own.
        let classes = layer.stride * layer.stride;
        let positions = layer.input_map.height * layer.input_map.width / classes;
        launch!(
            self.gpu,
            kernel,
            [(self.images * positions).div_ceil(rows) * classes, 1, self.lanes],
            THREADS,
            shape,
            self.images as i32,
            self.which,
            self.weights,
            self.pitch as i32,
            gradient,
            choice,
            rectified,
            bypass,
            bypass_channels as i32,
            output
        )
    }

    fn mean(&self, layer: &GlobalMean, backward: bool) -> Result<()> {
        let map = self.network.maps[layer.input];
        let kernels = self.gpu.kernels()?;
        let (kernel, elements, from, to) = if backward {
            let to = at(&self.space.gradients[layer.producer], 0);
            (&kernels.global_mean_backward, map.inner_len(), Pass::optional(&self.space.mean_gradient), to)
        } else {
            (&kernels.global_mean, map.channels, 0, at(&self.space.maps[layer.output], 0))
        };
        let grid = [(self.slots() * elements).div_ceil(ELEMENTWISE).min(MOST_BLOCKS), 1, 1];
        let [slots, height, width, channels] = [self.slots(), map.height, map.width, map.channels].map(|n| n as i32);
        let [row, len, before] = [map.row(), map.len(), map.before].map(|n| n as i32);
        let input = at(&self.space.maps[layer.input], 0);
        if backward {
            launch!(self.gpu, kernel, grid, ELEMENTWISE, slots, height, width, channels, row, len, before, input, from, to)
        } else {
            launch!(self.gpu, kernel, grid, ELEMENTWISE, slots, height, width, channels, row, len, before, input, to)
        }
    }

    fn head(&self, layer: &Dense) -> Result<()> {
        if let Some(blas) = self.blas {
            return blas.head(self, layer);
        }
        let (sums, margins) = self.aim.addresses();
        let gradient = if sums == 0 { 0 } else { Pass::optional(&self.space.logits) };
        launch!(
            self.gpu,
            &self.gpu.kernels()?.dense_forward,
            [1, self.groups(), self.lanes],
            ELEMENTWISE,
            self.images as i32,
            self.length as i32,
            self.places as i32,
            layer.inputs as i32,
            layer.weights as i32,
            layer.bias as i32,
            self.which,
            self.weights,
            self.pitch as i32,
            at(&self.space.maps[layer.input], 0),
            Pass::optional(&self.space.labels),
            gradient,
            sums,
            self.network.parameters() as i32,
            margins
        )
    }

    fn head_backward(&self, layer: &Dense) -> Result<()> {
        let to = match layer.producer {
            Some(producer) => at(&self.space.gradients[producer], 0),
            None => Pass::optional(&self.space.mean_gradient),
        };
        if let Some(blas) = self.blas {
            return blas.head_backward(self, layer, to);
        }
        let gradient = Pass::optional(&self.space.logits);
        self.filter_gradient(Shape::dense(layer), at(&self.space.maps[layer.input], 0), gradient, 0)?;
        launch!(
            self.gpu,
            &self.gpu.kernels()?.dense_backward,
            [(self.images * layer.inputs).div_ceil(ELEMENTWISE).min(MOST_BLOCKS), 1, self.lanes],
            ELEMENTWISE,
            self.images as i32,
            layer.inputs as i32,
            layer.weights as i32,
            self.which,
            self.weights,
            self.pitch as i32,
            gradient,
            to
        )
    }
}

impl Operations for Pass<'_> {
    fn convolution_forward(&mut self, index: usize, layer: &Convolution) {
        self.attempt(|pass| pass.forward(index, layer));
    }

    fn convolution_backward(&mut self, index: usize, layer: &Convolution, network: &Network) {
        self.attempt(|pass| pass.backward(index, layer, network));
    }

    fn global_mean_forward(&mut self, layer: &GlobalMean) {
        self.attempt(|pass| pass.mean(layer, false));
    }

    fn global_mean_backward(&mut self, layer: &GlobalMean) {
        self.attempt(|pass| pass.mean(layer, true));
    }

    /// With the loss and its gradient, or the errors: the logits never leave the registers.
    fn dense_forward(&mut self, layer: &Dense) {
        self.attempt(|pass| pass.head(layer));
    }

    fn dense_backward(&mut self, layer: &Dense) {
        self.attempt(|pass| pass.head_backward(layer));
    }

    fn softmax_cross_entropy(&mut self) {}
}
