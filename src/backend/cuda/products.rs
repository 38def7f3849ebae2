//! The network's products by cuBLAS, in place of the fused kernels (kernels/im2col.cu says when that should pay).
//!
//! The matrices of all lanes are a strided batch: a pass's weights follow each other in the order of its lanes, so that no array of
//! pointers has to be built on the device or kept for a graph. An evaluation of some lanes copies theirs together: 250 KB a lane, for the
//! hundreds of images that it looks at.
//!
//! Which bits come out: cuBLAS chooses its kernels by the sizes, the batch's included, so a lane's depend on the lanes beside it. The same
//! lanes on the same GPU with the same cuBLAS have the same bits in every run, because there is one stream with a workspace of its own
//! (cuBLAS's documentation, "Results reproducibility"). Filter gradients are summed over the same leaves of the batch as the fused
//! kernels'.

use std::ops::Range;

use cudarc::cublas::result::{CublasError, create_handle, destroy_handle, gemm_strided_batched_ex, set_stream};
use cudarc::cublas::sys;
use cudarc::driver::CudaSlice;

use super::check::refuse;
use super::engine::passes;
use super::gpu::{Gpu, at, launch};
use super::libraries::{Library, find};
use super::pass::{Aim, ELEMENTWISE, MOST_BLOCKS, Pass, Shape, Written};
use crate::Result;
use crate::network::{Convolution, Dense};

/// Share of the GPU's memory that patches and sums may take, and the most of it. Of all memory, not of what is free: the cut into chunks
/// takes part in which kernels cuBLAS chooses.
const SHARE: usize = 32;
const MOST_BYTES: usize = 512 << 20;

/// The least of it: an image of every layer of our networks takes less.
const LEAST_BYTES: usize = 1 << 20;

/// Memory of cuBLAS's own, as its documentation advises for compute capability 9.0. Given to it here: else it would allocate, which a
/// capture may not, and its results need not be the same in every run.
const WORKSPACE: usize = 32 << 20;

/// Most products of one call: a dimension of its grids.
const MOST_PRODUCTS: usize = 65_535;

/// Outputs of a block of `bias_gradient`, and its threads.
const BIAS_COLUMNS: usize = 16;
const BIAS_THREADS: usize = 1024;

/// cuBLAS on a GPU's stream, and the memory it works in.
pub(super) struct Blas {
    handle: sys::cublasHandle_t,
    compute: sys::cublasComputeType_t,
    /// A chunk's patches, and behind them its sums or their gradient.
    scratch: CudaSlice<f32>,
    _workspace: CudaSlice<u8>,
    /// What results say of it.
    pub description: String,
}

/// A matrix of each lane, or of each group of each lane, in rows; strides are in floats.
#[derive(Clone, Copy)]
struct Matrix {
    at: u64,
    /// Floats of a row.
    row: usize,
    lane: usize,
    group: usize,
    /// Stored with rows and columns exchanged.
    transposed: bool,
}

impl Matrix {
    fn new(at: u64, row: usize, lane: usize, group: usize) -> Matrix {
        Matrix { at, row, lane, group, transposed: false }
    }

    fn transposed(self) -> Matrix {
        Matrix { transposed: true, ..self }
    }

    fn moved(self, floats: usize) -> Matrix {
        Matrix { at: plus(self.at, floats), ..self }
    }

    fn operation(&self) -> sys::cublasOperation_t {
        if self.transposed { sys::cublasOperation_t::CUBLAS_OP_T } else { sys::cublasOperation_t::CUBLAS_OP_N }
    }
}

/// Where the epilogue of a convolution's forward pass writes, beside its map.
pub(super) struct Tails {
    pub written: Written,
    pub choice: u64,
    pub stream: u64,
    pub shortcut: u64,
}

/// What a data gradient goes through on its way to `output`.
pub(super) struct Onward {
    pub rectified: u64,
    pub bypass: u64,
    pub bypass_channels: i32,
    pub output: u64,
}

/// Images of some lanes that go through the scratch memory together.
struct Chunk {
    lanes: Range<usize>,
    images: Range<usize>,
    /// Whether their filter gradient is added to that of the images before them in the same leaf.
    add: bool,
}

impl Chunk {
    /// The first image's slot in the pass.
    fn slot(&self, images: usize) -> usize {
        self.lanes.start * images + self.images.start
    }
}

fn plus(pointer: u64, floats: usize) -> u64 {
    pointer + 4 * floats as u64
}

/// Blocks of an elementwise kernel for so many elements a lane.
fn blocks(elements: usize) -> usize {
    elements.div_ceil(ELEMENTWISE).min(MOST_BLOCKS)
}

fn check(outcome: std::result::Result<(), CublasError>, doing: &str) -> Result<()> {
    outcome.map_err(|CublasError(status)| {
        refuse(format!(
            "expected cuBLAS to {doing}, but it says {status:?}; look at nvidia-smi and the log, then run the same command again to \
             continue, or set execution.products = \"fused\""
        ))
    })
}

impl Drop for Blas {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and nothing uses it any more.
        let _ = unsafe { destroy_handle(self.handle) };
    }
}

impl Blas {
    /// With at most `limit` bytes for patches and sums, where that is enough for an image.
    pub fn new(gpu: &Gpu, limit: usize) -> Result<Blas> {
        if gpu.tf32 && std::env::var_os("NVIDIA_TF32_OVERRIDE").is_some_and(|value| value == "0") {
            return Err(refuse("expected leave to use TF32, found NVIDIA_TF32_OVERRIDE=0; unset it, or set execution.tf32 = false"));
        }
        let workspace = gpu.room(WORKSPACE)?;
        let scratch = gpu.room(limit.min(gpu.memory()? as usize / SHARE).clamp(LEAST_BYTES, MOST_BYTES) / 4)?;
        // Pedantic is fp32 and nothing else, whatever a newer cuBLAS or the environment would have instead.
        let (compute, precision) = match gpu.tf32 {
            true => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32, "TF32"),
            false => (sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC, "fp32"),
        };
        let mut handle = std::ptr::null_mut();
        check(create_handle().map(|made| handle = made), "start")?;
        let description = format!("products by cuBLAS {} in {precision}", find(Library::Cublas)?.version);
        let blas = Blas { handle, compute, scratch, _workspace: workspace, description };
        // The stream first: choosing one takes a workspace away.
        check(unsafe { set_stream(handle, gpu.stream.cu_stream().cast()) }, "take a stream")?;
        let pointer = at(&blas._workspace, 0) as *mut std::ffi::c_void;
        check(unsafe { sys::cublasSetWorkspace_v2(handle, pointer, WORKSPACE) }.result(), "take memory")?;
        Ok(blas)
    }

    /// c = a b, or c += a b, of `[rows, columns, terms]`, for each of `[lanes, groups]`.
    fn multiply(
        &self,
        [rows, columns, terms]: [usize; 3],
        [lanes, groups]: [usize; 2],
        a: Matrix,
        b: Matrix,
        c: Matrix,
        add: bool,
    ) -> Result<()> {
        let even = [a, b, c].iter().all(|matrix| matrix.lane == groups * matrix.group);
        // Calls of how many products, and whether a product's neighbour is the next group's.
        let (calls, count, by_group) = if even && lanes * groups <= MOST_PRODUCTS {
            (1, lanes * groups, true)
        } else if lanes >= groups {
            (groups, lanes, false)
        } else {
            (lanes, groups, true)
        };
        let (one, zero) = (1.0_f32, 0.0_f32);
        let [alpha, beta] = [&one, if add { &one } else { &zero }].map(|factor| std::ptr::from_ref(factor).cast());
        let stride = |matrix: &Matrix| if by_group { matrix.group } else { matrix.lane } as i64;
        for call in 0..calls {
            let place = |matrix: &Matrix| plus(matrix.at, call * if by_group { matrix.lane } else { matrix.group });
            // cuBLAS has its matrices in columns: what is a b in rows is b a in columns.
            let outcome = unsafe {
                gemm_strided_batched_ex(
                    self.handle,
                    b.operation(),
                    a.operation(),
                    columns as i32,
                    rows as i32,
                    terms as i32,
                    alpha,
                    place(&b) as *const _,
                    sys::cudaDataType::CUDA_R_32F,
                    b.row as i32,
                    stride(&b),
                    place(&a) as *const _,
                    sys::cudaDataType::CUDA_R_32F,
                    a.row as i32,
                    stride(&a),
                    beta,
                    place(&c) as *mut _,
                    sys::cudaDataType::CUDA_R_32F,
                    c.row as i32,
                    stride(&c),
                    count as i32,
                    self.compute,
                    sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            };
            check(outcome, "multiply")?;
        }
        Ok(())
    }

    /// Cuts a pass's images into chunks that the scratch memory holds, where an image takes so many floats. Groups of `length` images stay
    /// together; one that does not fit is cut into chunks of one lane.
    fn chunks(&self, lanes: usize, images: usize, length: usize, floats: usize) -> Result<Vec<Chunk>> {
        let most = self.scratch.len() / floats;
        if most == 0 {
            return Err(refuse(format!(
                "expected an image's patches to take at most {LEAST_BYTES} bytes, found {}; report this as a bug",
                4 * floats
            )));
        }
        let mut chunks = Vec::new();
        for (lanes, groups) in passes(lanes, images.div_ceil(length), length, most) {
            let all = groups.start * length..(groups.end * length).min(images);
            let step = if lanes.len() * all.len() <= most { all.len() } else { most };
            chunks.extend(all.clone().step_by(step.max(1)).map(|start| Chunk {
                lanes: lanes.clone(),
                images: start..(start + step).min(all.end),
                add: start > all.start,
            }));
        }
        Ok(chunks)
    }

    /// A convolution's forward pass.
    pub fn forward(&self, pass: &Pass, layer: &Convolution, tails: &Tails) -> Result<()> {
        let shape = Shape::new(layer);
        let (positions, terms, out) = (layer.output.height * layer.output.width, layer.kernel * layer.run(), layer.output.channels);
        let output = at(&pass.space.maps[layer.epilogue.written()], 0);
        for chunk in self.chunks(pass.lanes, pass.images, 1, positions * (terms + out))? {
            let (lanes, count) = (chunk.lanes.len(), chunk.images.len());
            let rows = count * positions;
            self.patches(pass, shape, layer, chunk.slot(pass.images), count, lanes)?;
            let patches = Matrix::new(at(&self.scratch, 0), terms, rows * terms, 0);
            let weights = Matrix::new(plus(pass.ordered, chunk.lanes.start * pass.pitch + layer.weights), out, pass.pitch, 0);
            let sums = Matrix::new(at(&self.scratch, lanes * rows * terms), out, rows * out, 0);
            self.multiply([rows, out, terms], [lanes, 1], patches, weights, sums, false)?;
            launch!(
                pass.gpu,
                &pass.gpu.kernels()?.convolution_tail,
                [blocks(rows * out), 1, lanes],
                ELEMENTWISE,
                shape,
                tails.written,
                pass.images as i32,
                chunk.slot(pass.images) as i64,
                count as i32,
                plus(pass.ordered, chunk.lanes.start * pass.pitch),
                pass.pitch as i32,
                sums.at,
                output,
                tails.choice,
                tails.stream,
                tails.shortcut
            )?;
        }
        Ok(())
    }

    /// The patches of some images, in the scratch memory.
    fn patches(&self, pass: &Pass, shape: Shape, layer: &Convolution, slot: usize, count: usize, lanes: usize) -> Result<()> {
        let kernels = pass.gpu.kernels()?;
        let kernel = if layer.input_map.channels.is_multiple_of(4) { &kernels.patches_4 } else { &kernels.patches_1 };
        let rows = count * layer.output.height * layer.output.width;
        launch!(
            pass.gpu,
            kernel,
            [rows.div_ceil(ELEMENTWISE / 32).min(MOST_BLOCKS), 1, lanes],
            ELEMENTWISE,
            shape,
            pass.images as i32,
            slot as i64,
            count as i32,
            at(&pass.space.maps[layer.input], 0),
            at(&self.scratch, 0)
        )
    }

    /// A convolution's gradients: of its weights and bias, and, where it goes on, of its input.
    pub fn backward(&self, pass: &Pass, index: usize, layer: &Convolution, onward: Option<&Onward>) -> Result<()> {
        let shape = Shape::new(layer);
        let (positions, terms, out) = (layer.output.height * layer.output.width, layer.kernel * layer.run(), layer.output.channels);
        let (gradient, choice) = (at(&pass.space.gradients[index], 0), at(&pass.space.choices[index], 0));
        let pooled = shape.pooled != 0;
        let kept = if pooled { positions / 4 } else { positions };
        self.bias(pass, layer.bias, kept, out, gradient, if pooled { choice } else { 0 })?;
        for chunk in self.chunks(pass.lanes, pass.images, pass.length, positions * (terms + out))? {
            let (lanes, count, slot) = (chunk.lanes.len(), chunk.images.len(), chunk.slot(pass.images));
            let rows = count * positions;
            let (kernels, images) = (pass.gpu.kernels()?, pass.images as i32);
            let sums = if pooled {
                let to = at(&self.scratch, lanes * rows * terms);
                let grid = [blocks(rows * out), 1, lanes];
                launch!(pass.gpu, &kernels.unpool, grid, ELEMENTWISE, shape, images, slot as i64, count as i32, gradient, choice, to)?;
                Matrix::new(to, out, rows * out, pass.length * positions * out)
            } else {
                Matrix::new(plus(gradient, slot * positions * out), out, pass.images * positions * out, pass.length * positions * out)
            };
            self.patches(pass, shape, layer, slot, count, lanes)?;
            let patches = Matrix::new(at(&self.scratch, 0), terms, rows * terms, pass.length * positions * terms);
            self.filter(pass, &chunk, [terms, out, positions], layer.weights, patches, sums)?;
            let Some(onward) = onward else { continue };
            let weights = Matrix::new(plus(pass.ordered, chunk.lanes.start * pass.pitch + layer.weights), out, pass.pitch, 0);
            self.multiply([rows, terms, out], [lanes, 1], sums, weights.transposed(), patches, false)?;
            launch!(
                pass.gpu,
                &kernels.patch_sums,
                [blocks(count * layer.input_map.inner_len()), 1, lanes],
                ELEMENTWISE,
                shape,
                images,
                slot as i64,
                count as i32,
                patches.at,
                onward.rectified,
                onward.bypass,
                onward.bypass_channels,
                onward.output
            )?;
        }
        Ok(())
    }

    /// The gradient of weights at `weights`, summed over each leaf of a chunk: `[terms, out, positions of an image]`.
    fn filter(
        &self,
        pass: &Pass,
        chunk: &Chunk,
        [terms, out, positions]: [usize; 3],
        weights: usize,
        patches: Matrix,
        sums: Matrix,
    ) -> Result<()> {
        let Aim::Gradients(to) = pass.aim else { return Ok(()) };
        let (leaf, lane) = (chunk.images.start / pass.length, pass.places * pass.pitch);
        let to = Matrix::new(plus(to, chunk.lanes.start * lane + leaf * pass.pitch + weights), out, lane, pass.pitch);
        let (whole, rest) = (chunk.images.len() / pass.length, chunk.images.len() % pass.length);
        if whole > 0 {
            let size = [terms, out, pass.length * positions];
            self.multiply(size, [chunk.lanes.len(), whole], patches.transposed(), sums, to, false)?;
        }
        if rest > 0 {
            let [patches, sums, to] = [patches, sums, to].map(|matrix| matrix.moved(whole * matrix.group));
            self.multiply([terms, out, rest * positions], [chunk.lanes.len(), 1], patches.transposed(), sums, to, chunk.add)?;
        }
        Ok(())
    }

    /// The gradient of a bias, summed over each leaf; `kept` is what there is of an image's gradient in positions.
    fn bias(&self, pass: &Pass, bias: usize, kept: usize, out: usize, gradient: u64, choice: u64) -> Result<()> {
        let Aim::Gradients(sums) = pass.aim else { return Ok(()) };
        launch!(
            pass.gpu,
            &pass.gpu.kernels()?.bias_gradient,
            [out.div_ceil(BIAS_COLUMNS), pass.groups(), pass.lanes],
            BIAS_THREADS,
            pass.images as i32,
            pass.length as i32,
            pass.places as i32,
            pass.pitch as i32,
            bias as i32,
            kept as i32,
            out as i32,
            gradient,
            choice,
            sums
        )
    }

    /// The logits, their loss and its gradient, or the margins.
    pub fn head(&self, pass: &Pass, layer: &Dense) -> Result<()> {
        let logits = Pass::optional(&pass.space.logits);
        let [features, weights] = self.head_operands(pass, layer);
        let to = Matrix::new(logits, layer.outputs, pass.images * layer.outputs, 0);
        self.multiply([pass.images, layer.outputs, layer.inputs], [pass.lanes, 1], features, weights, to, false)?;
        let (sums, margins) = pass.aim.addresses();
        launch!(
            pass.gpu,
            &pass.gpu.kernels()?.softmax_loss,
            [1, pass.groups(), pass.lanes],
            ELEMENTWISE,
            pass.images as i32,
            pass.length as i32,
            pass.places as i32,
            layer.bias as i32,
            pass.ordered,
            pass.pitch as i32,
            Pass::optional(&pass.space.labels),
            logits,
            sums,
            pass.network.parameters() as i32,
            margins
        )
    }

    /// The gradients of the last layer's weights, bias and input, the last to `output`.
    pub fn head_backward(&self, pass: &Pass, layer: &Dense, output: u64) -> Result<()> {
        let (inputs, classes, images) = (layer.inputs, layer.outputs, pass.images);
        let [features, weights] = self.head_operands(pass, layer);
        let gradient = Matrix::new(Pass::optional(&pass.space.logits), classes, images * classes, pass.length * classes);
        self.bias(pass, layer.bias, 1, classes, gradient.at, 0)?;
        let all = Chunk { lanes: 0..pass.lanes, images: 0..images, add: false };
        self.filter(pass, &all, [inputs, classes, 1], layer.weights, features, gradient)?;
        let to = Matrix::new(output, inputs, images * inputs, 0);
        self.multiply([images, inputs, classes], [pass.lanes, 1], gradient, weights.transposed(), to, false)
    }

    /// The last layer's input and weights.
    fn head_operands(&self, pass: &Pass, layer: &Dense) -> [Matrix; 2] {
        let features = at(&pass.space.maps[layer.input], 0);
        [
            Matrix::new(features, layer.inputs, pass.images * layer.inputs, pass.length * layer.inputs),
            Matrix::new(plus(pass.ordered, layer.weights), layer.outputs, pass.pitch, 0),
        ]
    }
}
