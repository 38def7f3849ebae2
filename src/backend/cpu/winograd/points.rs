//! Tiles as points, and the products of matrices at each point.

use super::super::floats::Floats;
use super::super::simd::Simd;
use super::super::tile::{Live, Runs, block, product};

/// Tiles that are multiplied together.
pub(super) const BLOCK: usize = 16;

/// Channels come in whole widest vectors.
pub(super) const CHANNELS: usize = 16;

/// The points of some tiles, `[point][tile][channel]`.
#[derive(Default)]
pub(in super::super) struct Points {
    /// Transformed inputs.
    pub(super) inputs: Floats,
    /// Transformed outputs, or their transformed gradients.
    pub(super) outputs: Floats,
    /// Transformed gradients of weights: `[point][in][out]`.
    pub(super) gradient: Floats,
}

impl Points {
    /// Panics unless there is room for so many points of some tiles, with these floats from one point to the next.
    pub(super) fn assert_room(&self, points: usize, inputs_apart: usize, outputs_apart: usize) {
        assert!(self.inputs.len() >= points * inputs_apart && self.outputs.len() >= points * outputs_apart, "points are grown");
    }

    /// Makes room for so many floats of inputs, outputs and gradients.
    pub(in super::super) fn grow(&mut self, [inputs, outputs, gradient]: [usize; 3]) {
        self.inputs.grow(inputs);
        self.outputs.grow(outputs);
        self.gradient.grow(gradient);
    }
}

/// Floats from one point to the next of some tiles, or of the weights of so many inputs: never a power of two, which would put all points into the
/// same few lines of a cache.
pub(super) fn apart(tiles: usize, channels: usize) -> usize {
    tiles * channels + CHANNELS
}

/// At each point, `c[tile][out]` = Σ `a[tile][in]` · `b[in][out]` for so many tiles, over the `live` inputs; `a`, `b` and `c` are addresses, each
/// with the floats from one point to the next.
///
/// # Safety
/// Of each point there are the inputs and the outputs of BLOCK tiles, of which `tiles` are wanted at most, and the weights as
/// `transforms::weights` leaves them.
#[inline(always)]
pub(super) unsafe fn multiply<S: Simd>(
    points: usize,
    tiles: usize,
    live: Live,
    outputs: usize,
    (a, a_apart): (*const f32, usize),
    (b, b_apart): (*const f32, usize),
    (c, c_apart): (*mut f32, usize),
) {
    let (inputs, block, runs) = (live.of, block::<S>(outputs), Runs::one(live.count));
    for point in 0..points {
        for from in (0..outputs).step_by(block) {
            // SAFETY: the caller vouches for inputs, weights and outputs of this point. A group of tiles that begins below `tiles` ends within BLOCK.
            unsafe {
                let (a, b) = (a.add(point * a_apart), b.add(point * b_apart + from * inputs));
                let c = c.add(point * c_apart + from);
                macro_rules! tiles {
                    ($tiles:literal, $vectors:literal) => {
                        for tile in (0..tiles).step_by($tiles) {
                            let (a, c) = (a.add(tile * inputs), c.add(tile * outputs));
                            product::<S, $tiles, $vectors, false>(a, inputs, runs, b, block, c, outputs);
                        }
                    };
                }
                match (S::WIDTH == 16, block == S::WIDTH) {
                    (true, true) => tiles!(16, 1),
                    (true, false) => tiles!(8, 2),
                    (false, true) => tiles!(8, 1),
                    (false, false) => tiles!(4, 2),
                }
            }
        }
    }
}
