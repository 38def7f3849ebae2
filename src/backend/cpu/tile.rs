//! The two register-blocked loops of products with all weights, which most convolutions and fully connected layers are made of, each output in one
//! chain.

use std::mem::MaybeUninit;

use super::simd::Simd;

/// Output channels that a forward pass computes together.
#[inline(always)]
pub(super) fn block<S: Simd>(channels: usize) -> usize {
    if channels.is_multiple_of(2 * S::WIDTH) { 2 * S::WIDTH } else { S::WIDTH }
}

/// The channels of a position that products read: the first `count` of `of`. The weights of the other channels are zero: sums
/// without these channels are whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Live {
    /// Channels that are read.
    pub count: usize,
    /// Channels of a position.
    pub of: usize,
}

impl Live {
    /// All channels.
    pub fn all(channels: usize) -> Live {
        Live { count: channels, of: channels }
    }

    /// Panics unless they are of so many channels.
    #[inline(always)]
    pub fn assert_of(self, channels: usize) {
        assert!(self.of == channels && self.count <= channels, "the layer has the channels that are read");
    }

    /// A run of `run` floats as runs of those that are read: how many there are, floats from one to the next, and floats of each.
    pub fn runs(self, run: usize) -> (usize, usize, usize) {
        assert!(
            self.count <= self.of && run.is_multiple_of(self.of),
            "a run has whole positions, and a position the channels that are read"
        );
        if self.count == self.of { (1, run, run) } else { (run / self.of, self.of, self.count) }
    }
}

/// The inputs that a tile of outputs reads: in each of `rows` rows, `runs` runs of `run` contiguous floats.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    /// Number of rows.
    pub rows: usize,
    /// Floats from one row to the next.
    pub row_stride: usize,
    /// Runs a row.
    pub runs: usize,
    /// Floats from one run to the next; so many rows of weights are there for each.
    pub run_stride: usize,
    /// Floats a run: at most the stride.
    pub run: usize,
}

impl Runs {
    /// One run, all of which has weights.
    pub(super) fn one(run: usize) -> Runs {
        Runs { rows: 1, row_stride: 0, runs: 1, run_stride: run, run }
    }
}

/// `c[p][v]` += Σ_k `a[p][k]` · `b[k][v]` for P positions and V vectors, k going through `runs` in order; where not ADD, `c` is written. Floats
/// between runs have rows in b, and are left out.
///
/// Position p reads a + p·a_stride and adds to c + p·c_stride; b has `b_stride` floats a row. Bound by multiply-adds: P·V of them for
/// P + V loads.
///
/// # Safety
/// `a` is valid for reads of all runs of all P positions, `b` of a row of V vectors for each of their floats, and `c` for reads and writes of V
/// vectors for each position.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn product<S: Simd, const P: usize, const V: usize, const ADD: bool>(
    a: *const f32,
    a_stride: usize,
    runs: Runs,
    b: *const f32,
    b_stride: usize,
    c: *mut f32,
    c_stride: usize,
) {
    // SAFETY: the caller vouches for all addresses that are made here: row, run and float of each position's inputs, the weights' row for each, and
    // the sums' vectors. Behind the last row `weights` may point beyond the buffer, which `wrapping_add` allows: nothing is read there.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; P];
        for (p, row) in sums.iter_mut().enumerate() {
            for (v, sum) in row.iter_mut().enumerate() {
                if ADD {
                    *sum = S::load(c.add(p * c_stride + v * S::WIDTH));
                }
            }
        }
        let mut weights = b;
        for row in 0..runs.rows {
            for run in 0..runs.runs {
                let inputs = a.add(row * runs.row_stride + run * runs.run_stride);
                for k in 0..runs.run {
                    let mut vectors = [S::splat(0.0); V];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = S::load(weights.add(v * S::WIDTH));
                    }
                    for (p, row) in sums.iter_mut().enumerate() {
                        let input = S::splat(*inputs.add(p * a_stride + k));
                        for (sum, &vector) in row.iter_mut().zip(&vectors) {
                            *sum = S::multiply_add(input, vector, *sum);
                        }
                    }
                    weights = weights.wrapping_add(b_stride);
                }
                weights = weights.wrapping_add((runs.run_stride - runs.run) * b_stride);
            }
        }
        for (p, row) in sums.iter().enumerate() {
            for (v, &sum) in row.iter().enumerate() {
                S::store(c.add(p * c_stride + v * S::WIDTH), sum);
            }
        }
    }
}

/// The positions that a filter gradient sums over: `rows` rows of `columns`.
#[derive(Clone, Copy)]
pub(super) struct Positions {
    /// Rows.
    pub rows: usize,
    /// Positions a row.
    pub columns: usize,
    /// Floats of x from one row to the next.
    pub x_row: usize,
    /// Floats of x from one position to the next.
    pub x_stride: usize,
    /// Floats of d from one position to the next; rows of d follow each other.
    pub d_stride: usize,
}

/// First value of a chain of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// The sum that the memory of the result holds: the chain of additions goes on from there.
    Chain,
    /// Zero: what is there is not read.
    First,
    /// Zero, for each leaf of a batch: the positions are images, so many of each of up to [`TOGETHER`] leaves one after the other, and the leaves'
    /// sums are added in the order of the tree ([`Leaves`](crate::comm::Leaves)). What is there is not read.
    Tree(&'a [usize]),
}

impl Start<'_> {
    /// Panics where the leaves of a tree are none, too many, or not of so many images together.
    #[inline(always)]
    pub fn assert_images(self, images: usize) {
        if let Start::Tree(leaves) = self {
            let all = leaves.iter().try_fold(0, |sum: usize, &images| sum.checked_add(images));
            assert!((1..=TOGETHER).contains(&leaves.len()) && all == Some(images), "leaves have all images");
        }
    }
}

/// Leaves of [`Start::Tree`], at most.
pub(super) const TOGETHER: usize = 1 << LEVELS;

/// Levels of their tree.
const LEVELS: usize = 3;

/// `g[t][v]` = start + Σ_p `x[p][t]` · `d[p][v]` for T consecutive inputs and V vectors, p going through `positions` in order.
///
/// g has `g_stride` floats a row. Bound by multiply-adds: T·V of them for T + V loads.
///
/// # Safety
/// `x` is valid for reads of T floats, and `d` of V vectors, at every position; `g` is valid for reads and writes of T rows of V vectors. With
/// [`Start::Tree`] there is a leaf, there are at most [`TOGETHER`], and they have as many images as there are positions, in one row.
#[inline(always)]
pub(super) unsafe fn outer<S: Simd, const T: usize, const V: usize>(
    x: *const f32,
    d: *const f32,
    positions: Positions,
    start: Start,
    g: *mut f32,
    g_stride: usize,
) {
    if let Start::Tree(leaves) = start {
        // SAFETY: the caller's promises are those that `outer_tree` asks for.
        return unsafe { outer_tree::<S, T, V>(x, d, positions, leaves, g, g_stride) };
    }
    // SAFETY: the caller vouches for inputs and gradients at every position, and for the rows of sums. Behind the last position the two pointers may
    // lie beyond their buffers, which `wrapping_add` allows: nothing is read there.
    unsafe {
        let mut sums = [[S::splat(0.0); V]; T];
        if start == Start::Chain {
            for (t, row) in sums.iter_mut().enumerate() {
                for (v, sum) in row.iter_mut().enumerate() {
                    *sum = S::load(g.add(t * g_stride + v * S::WIDTH));
                }
            }
        }
        let mut gradient = d;
        for row in 0..positions.rows {
            let mut input = x.add(row * positions.x_row);
            for _ in 0..positions.columns {
                add_position::<S, T, V>(input, gradient, &mut sums);
                input = input.wrapping_add(positions.x_stride);
                gradient = gradient.wrapping_add(positions.d_stride);
            }
        }
        for (t, row) in sums.iter().enumerate() {
            for (v, &sum) in row.iter().enumerate() {
                S::store(g.add(t * g_stride + v * S::WIDTH), sum);
            }
        }
    }
}

/// One position of [`outer`]: adds `x[t]` · `d[v]` to the sums.
///
/// # Safety
/// `x` is valid for reads of T floats, `d` of V vectors.
#[inline(always)]
unsafe fn add_position<S: Simd, const T: usize, const V: usize>(x: *const f32, d: *const f32, sums: &mut [[S::Vector; V]; T]) {
    // SAFETY: the caller vouches for the T floats and the V vectors.
    unsafe {
        let vectors: [S::Vector; V] = std::array::from_fn(|v| S::load(d.add(v * S::WIDTH)));
        for (t, row) in sums.iter_mut().enumerate() {
            let value = S::splat(*x.add(t));
            for (sum, &vector) in row.iter_mut().zip(&vectors) {
                *sum = S::multiply_add(value, vector, *sum);
            }
        }
    }
}

/// [`outer`] with [`Start::Tree`].
///
/// # Safety
/// As [`outer`]; there is a leaf, there are at most [`TOGETHER`], and they have as many images as there are positions in the one row.
#[inline(always)]
unsafe fn outer_tree<S: Simd, const T: usize, const V: usize>(
    x: *const f32,
    d: *const f32,
    positions: Positions,
    leaves: &[usize],
    g: *mut f32,
    g_stride: usize,
) {
    // SAFETY: the caller vouches for inputs and gradients at every position, of which the leaves have as many images, and for the rows of sums. Of
    // up to eight leaves never more than three sums wait, and one that waits was written before it is read. Behind the last image the two pointers
    // may lie beyond their buffers, which `wrapping_add` allows.
    unsafe {
        // Sums that wait for their right-hand neighbour in the tree: of four, two and one of up to eight leaves.
        let mut left = [MaybeUninit::<[[S::Vector; V]; T]>::uninit(); LEVELS];
        let mut waiting = 0;
        let (mut input, mut gradient) = (x, d);
        for (done, &images) in leaves.iter().enumerate() {
            let mut sums = [[S::splat(0.0); V]; T];
            for _ in 0..images {
                add_position::<S, T, V>(input, gradient, &mut sums);
                input = input.wrapping_add(positions.x_stride);
                gradient = gradient.wrapping_add(positions.d_stride);
            }
            // Behind the last leaf all that waits is added, from the right.
            let merges = if done + 1 == leaves.len() { waiting } else { (done + 1).trailing_zeros() as usize };
            for _ in 0..merges {
                waiting -= 1;
                for (row, left) in sums.iter_mut().zip(left[waiting].assume_init_ref()) {
                    for (sum, &left) in row.iter_mut().zip(left) {
                        *sum = S::add(left, *sum);
                    }
                }
            }
            if done + 1 < leaves.len() {
                left[waiting].write(sums);
                waiting += 1;
                continue;
            }
            for (t, row) in sums.iter().enumerate() {
                for (v, &sum) in row.iter().enumerate() {
                    S::store(g.add(t * g_stride + v * S::WIDTH), sum);
                }
            }
        }
    }
}
