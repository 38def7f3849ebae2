//! Winograd's formula for convolutions of 3 × 3 and stride 1 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
//! section 4.1): F(2 × 2, 3 × 3) takes 16 multiplications where the four outputs of a tile take 36, F(4 × 4, 3 × 3) takes 36 for 144. `pooled.rs`
//! has F(2 × 4, 5 × 5) for convolutions with a pool; the other files of the folder are for all.
//!
//! A tile of inputs, its outputs and a kernel become as many points each; at every point the convolution is a product of matrices. Sums keep one
//! order: a point's over channels (over tiles, for the filter gradient), and a tile's over points.

mod forms;
mod points;
pub(super) mod pooled;
mod transforms;

pub(super) use points::Points;

use self::forms::{Backward, FourOfThree, TwoOfThree};
use self::points::{BLOCK, CHANNELS, apart, multiply};
use self::transforms::{collect, read_gradient, write};
use super::bounds::assert_reads;
use super::simd::Simd;
use super::tile::{Live, Positions, Start, outer};
use crate::network::{Convolution, Epilogue};
use crate::settings::Convolutions;

/// Tiles of a convolution of 3 × 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tiles {
    /// Of 2 × 2 outputs.
    Two,
    /// Of 4 × 4 outputs.
    Four,
}

/// Calls a function of a form, its points and its outputs in one direction.
macro_rules! of_form {
    ($tiles:expr, $function:ident::<$S:ident>($($argument:expr),* $(,)?)) => {
        match $tiles {
            Tiles::Two => $function::<$S, TwoOfThree, 4, 2>($($argument),*),
            Tiles::Four => $function::<$S, FourOfThree, 6, 4>($($argument),*),
        }
    };
}

impl Tiles {
    /// The tiles that a layer is computed by, if it is: by the study's configuration and the layer's shape alone, on which its bits depend.
    pub(super) fn of(layer: &Convolution, convolutions: Convolutions) -> Option<Tiles> {
        let tiles: &[Tiles] = match convolutions {
            Convolutions::Direct => &[Tiles::Two],
            Convolutions::Winograd => &[Tiles::Four, Tiles::Two],
        };
        tiles.iter().copied().find(|tiles| tiles.fit(layer))
    }

    fn fit(self, layer: &Convolution) -> bool {
        let (map, output) = (layer.input_map, layer.output);
        let tiled = output.width.is_multiple_of(self.side())
            && BLOCK.is_multiple_of(output.width / self.side())
            && output.height.is_multiple_of(self.rows(layer));
        let whole = map.channels.is_multiple_of(CHANNELS) && output.channels.is_multiple_of(CHANNELS);
        let plain = layer.kernel == 3 && layer.stride == 1 && (map.before, map.after) == (1, 1);
        plain && tiled && whole && !matches!(layer.epilogue, Epilogue::ReluMaxPool { .. })
    }

    /// Outputs along a side of a tile.
    const fn side(self) -> usize {
        match self {
            Tiles::Two => 2,
            Tiles::Four => 4,
        }
    }

    /// Points of a tile.
    const fn points(self) -> usize {
        (self.side() + 2) * (self.side() + 2)
    }

    /// Tiles whose filter gradient is added up before it goes to memory: as many as leave their points in the second-level cache.
    const fn chunk(self) -> usize {
        match self {
            Tiles::Two => 64,
            Tiles::Four => 32,
        }
    }

    /// Rows of outputs in a block of tiles.
    pub(super) fn rows(self, layer: &Convolution) -> usize {
        self.side() * self.side() * BLOCK / layer.output.width
    }

    /// Floats of [`Points`] that a layer needs, and its data gradient.
    pub(super) fn lengths(self, layer: &Convolution) -> [usize; 3] {
        let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
        // The data gradient's outputs are the layer's inputs.
        let points = |channels: usize, others: usize| self.points() * apart(self.chunk(), channels).max(apart(BLOCK, others));
        [points(inputs, outputs), points(outputs, inputs), self.points() * inputs * outputs]
    }

    /// Floats of a layer's weights as [`Tiles::lay_out`] leaves them.
    pub(super) fn weights_len(self, layer: &Convolution) -> usize {
        self.points() * apart(layer.input_map.channels, layer.output.channels)
    }

    /// The points of a layer's weights `[3][3][in][out]`, as [`Tiles::forward_rows`] reads them.
    ///
    /// # Panics
    /// Unless both slices are whole, and `channels` whole blocks.
    #[inline(always)]
    pub(super) fn lay_out<S: Simd>(self, from: &[f32], channels: usize, to: &mut [f32]) {
        match self {
            Tiles::Two => transforms::weights::<S, TwoOfThree, TwoOfThree, _, _, _, _, _>(from, channels, to),
            Tiles::Four => transforms::weights::<S, FourOfThree, FourOfThree, _, _, _, _, _>(from, channels, to),
        }
    }

    /// `sums[y][x][out]` = bias, or zero, + Σ input · weights for a block of [`Tiles::rows`] output rows from row `first`, over the `live` inputs;
    /// `weights` as [`Tiles::lay_out`] leaves them.
    ///
    /// # Safety
    /// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::bounds)).
    ///
    /// # Panics
    /// Unless the layer fits the tiles, `points` are grown for both, `input` is one image's bordered map in which all lies that the rows read,
    /// `sums` has rows × width × channels floats, a bias has all channels, and `live` are of the layer's input channels.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn forward_rows<S: Simd>(
        self,
        layer: &Convolution,
        live: Live,
        input: &[f32],
        weights: &[f32],
        bias: Option<&[f32]>,
        first: usize,
        sums: &mut [f32],
        points: &mut Points,
    ) {
        let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
        let (inputs_apart, outputs_apart) = (apart(BLOCK, inputs), apart(BLOCK, outputs));
        let rows = self.rows(layer);
        assert!(self.fit(layer) && sums.len() == rows * layer.output.width * outputs && weights.len() == self.weights_len(layer));
        assert!(bias.is_none_or(|bias| bias.len() == outputs), "a bias has all channels");
        live.assert_of(inputs);
        assert_reads(layer, input.len(), first, rows);
        points.assert_room(self.points(), inputs_apart, outputs_apart);
        // SAFETY: `input` is a whole map that has what the rows read (`assert_reads`); weights and sums are whole, `points` have room for a block of
        // tiles, and channels are whole widest vectors (`Tiles::fit` and the other asserts). No product of extents wraps, for which the caller
        // vouches.
        unsafe {
            let from = input.as_ptr().add(first * layer.input_map.row());
            of_form!(self, read_block::<S>(layer, from, points.inputs.as_mut_ptr(), inputs_apart));
            let weights = (weights.as_ptr(), apart(inputs, outputs));
            let (a, c) = ((points.inputs.as_ptr(), inputs_apart), (points.outputs.as_mut_ptr(), outputs_apart));
            multiply::<S>(self.points(), BLOCK, live, outputs, a, weights, c);
            of_form!(self, write::<S>(layer, points.outputs.as_ptr(), outputs_apart, bias, sums.as_mut_ptr()));
        }
    }

    /// `gradient[3][3][in][out]` += Σ input · d over whole images, for the `live` inputs; `input(i)` is image i's bordered map, `d(i)` the gradient
    /// of its sums.
    ///
    /// # Safety
    /// The layer's extents are small enough for their products: those of a physical network's layers are ([`bounds`](super::bounds)).
    ///
    /// # Panics
    /// Unless the layer fits the tiles, `points` are grown for both, every image has a whole bordered map and all gradients of its sums, `gradient`
    /// all weights, and `live` are of the layer's input channels.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn filter_gradient<'a, S: Simd>(
        self,
        layer: &Convolution,
        live: Live,
        images: usize,
        input: impl Fn(usize) -> &'a [f32],
        d: impl Fn(usize) -> &'a [f32],
        gradient: &mut [f32],
        points: &mut Points,
    ) {
        let (inputs, outputs, chunk) = (layer.input_map.channels, layer.output.channels, self.chunk());
        let (inputs_apart, outputs_apart) = (apart(chunk, inputs), apart(chunk, outputs));
        let (rows, plane) = (self.rows(layer), inputs * outputs);
        let blocks = layer.output.height / rows;
        assert!(self.fit(layer) && gradient.len() == layer.weight_count());
        live.assert_of(inputs);
        points.assert_room(self.points(), inputs_apart, outputs_apart);
        let sums = &mut points.gradient[..self.points() * plane];
        // The first chunk of tiles writes the sums of the live inputs. Those of all others, and of no tiles, are zero.
        if live.count < inputs || images == 0 {
            sums.fill(0.0);
        }
        for begun in (0..images * blocks).step_by(chunk / BLOCK) {
            let count = (chunk / BLOCK).min(images * blocks - begun);
            for index in 0..count {
                let (image, first) = ((begun + index) / blocks, (begun + index) % blocks * rows);
                let (input, d) = (input(image), d(image));
                assert_reads(layer, input.len(), first, rows);
                assert!(d.len() == layer.output.len(), "gradients of all sums");
                // SAFETY: `input` and `d` are whole and have what the rows read; `points` have room for a chunk of tiles, of which this block is
                // some; channels are whole widest vectors (`Tiles::fit` and the other asserts). No product of extents wraps, for which the caller
                // vouches.
                unsafe {
                    let from = input.as_ptr().add(first * layer.input_map.row());
                    let (input_tiles, output_tiles) = (index * BLOCK * inputs, index * BLOCK * outputs);
                    of_form!(self, read_block::<S>(layer, from, points.inputs.as_mut_ptr().add(input_tiles), inputs_apart));
                    let d = d.as_ptr().add(first * layer.output.row());
                    of_form!(self, read_gradient::<S>(layer, d, points.outputs.as_mut_ptr().add(output_tiles), outputs_apart));
                }
            }
            let positions = Positions { rows: 1, columns: count * BLOCK, x_row: 0, x_stride: inputs, d_stride: outputs };
            let start = if begun == 0 { Start::First } else { Start::Chain };
            for point in 0..self.points() {
                macro_rules! products {
                    ($inputs:literal, $vectors:literal) => {
                        for input in (0..live.count).step_by($inputs) {
                            for output in (0..outputs).step_by($vectors * S::WIDTH) {
                                // SAFETY: `points` have room for the count's tiles at every point, and `sums` for all pairs of channels. A group
                                // of 4, 8 or 16 inputs that begins below `live.count` ends within the layer's inputs, which are whole groups, as
                                // its outputs are.
                                unsafe {
                                    let x = points.inputs.as_ptr().add(point * inputs_apart + input);
                                    let d = points.outputs.as_ptr().add(point * outputs_apart + output);
                                    let g = sums.as_mut_ptr().add(point * plane + input * outputs + output);
                                    outer::<S, $inputs, $vectors>(x, d, positions, start, g, outputs);
                                }
                            }
                        }
                    };
                }
                match (S::WIDTH == 16, outputs.is_multiple_of(4 * S::WIDTH), outputs.is_multiple_of(2 * S::WIDTH)) {
                    (true, true, _) => products!(4, 4),
                    (true, _, true) => products!(8, 2),
                    (true, _, _) => products!(16, 1),
                    (false, ..) => products!(4, 2),
                }
            }
        }
        of_form!(self, collect::<S>(sums, gradient));
    }
}

/// The points of a block's inputs. `from` is the first float that its first tile reads.
///
/// # Safety
/// `from` is valid for reads of all that the block's tiles read of a map with the layer's rows, `to` for writes of N · N points, `apart` floats from
/// one to the next, of [`BLOCK`] tiles; the layer fits tiles of M × M outputs.
#[inline(always)]
unsafe fn read_block<S: Simd, F: Backward<N, M>, const N: usize, const M: usize>(
    layer: &Convolution,
    from: *const f32,
    to: *mut f32,
    apart: usize,
) {
    let (row, channels, across) = (layer.input_map.row(), layer.input_map.channels, layer.output.width / M);
    for down in 0..BLOCK / across {
        // SAFETY: the caller vouches for what the block's tiles read, and for their points.
        unsafe {
            let to = to.add(down * across * channels);
            transforms::read::<S, F, F, _, _, _, _, _>(from.add(M * down * row), [row, channels], across, to, apart);
        }
    }
}
