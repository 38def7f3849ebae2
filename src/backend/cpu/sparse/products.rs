//! The two loops over kept weights: sums of what they read, and sums of what they read times the gradient.

use super::super::pooled::Event;
use super::super::simd::Simd;
use super::submaps::SUBMAPS;
use crate::network::Map;

/// Rows of a channel that the loops take at once: as many as registers hold.
pub(in super::super) fn band<S: Simd>(width: usize) -> usize {
    ((if S::WIDTH == 16 { 16 } else { 8 }) / width).min(width)
}

/// Runs `$tile::<S, rows, columns, step>` for the width of a sub-map, [`band`] of whose rows it takes, and the step from one read point to the
/// next.
macro_rules! shaped {
    ($tile:ident, $width:expr, $step:expr, $arguments:tt) => {
        match ($width, $step, S::WIDTH == 16) {
            (8, 1, true) => shaped!($tile::<S, 2, 8, 1>, $arguments),
            (8, 1, false) => shaped!($tile::<S, 1, 8, 1>, $arguments),
            (4, 1, true) => shaped!($tile::<S, 4, 4, 1>, $arguments),
            (4, 1, false) => shaped!($tile::<S, 2, 4, 1>, $arguments),
            (2, 1, _) => shaped!($tile::<S, 2, 2, 1>, $arguments),
            (4, 2, true) => shaped!($tile::<S, 4, 4, 2>, $arguments),
            (4, 2, false) => shaped!($tile::<S, 2, 4, 2>, $arguments),
            (2, 2, _) => shaped!($tile::<S, 2, 2, 2>, $arguments),
            (width, step, _) => unreachable!("no plan has sub-maps of {width} columns at stride {step}"),
        }
    };
    ($tile:path, ($($argument:expr),*)) => {
        // SAFETY: the caller vouches for what the taps read and for what is written, in the shape that the width and the step name.
        unsafe { $tile($($argument),*) }
    };
}

/// Where sums go: floats from one row, and from one point, to the next.
#[derive(Clone, Copy)]
pub(in super::super) struct Target {
    pub row: usize,
    pub point: usize,
}

/// A band of sums: `start` + Σ weight · what it reads, in the order of `taps`, into `to`. `input` is what the first point reads for a tap at 0.
///
/// # Safety
/// `input` is valid for reads of what each tap reads at every point of the band, `to` for writes of a point of sums, `target` apart, for each.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(in super::super) unsafe fn sums<S: Simd>(
    width: usize,
    step: usize,
    taps: &[Event],
    input: *const f32,
    read: Map,
    start: f32,
    to: *mut f32,
    target: Target,
) {
    let row = step * read.row();
    shaped!(sums_tile, width, step, (taps, input, row, start, to, target))
}

/// [`sums`] of R rows of C points, STEP read points apart.
///
/// # Safety
/// As [`sums`], for that band.
#[inline(always)]
unsafe fn sums_tile<S: Simd, const R: usize, const C: usize, const STEP: usize>(
    taps: &[Event],
    input: *const f32,
    row: usize,
    start: f32,
    to: *mut f32,
    target: Target,
) {
    for half in (0..SUBMAPS).step_by(S::WIDTH) {
        // SAFETY: the caller vouches for what the taps read and for the band's sums; `half` is a vector's place in a point.
        unsafe {
            let mut sums = [[S::splat(start); C]; R];
            for tap in taps {
                let (weight, from) = (S::splat(tap.value), input.add(tap.at as usize + half));
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (c, sum) in sums.iter_mut().enumerate() {
                        *sum = S::multiply_add(S::load(from.add(r * row + c * STEP * SUBMAPS)), weight, *sum);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                for (c, &sum) in sums.iter().enumerate() {
                    S::store(to.add(r * target.row + c * target.point + half), sum);
                }
            }
        }
    }
}

/// Adds, for a band of points, what each tap reads times the gradient to the tap's sums: `[tap][submap]`. `d` is the gradient of the band's first
/// point.
///
/// # Safety
/// `input` as for [`sums`]; `d` is valid for reads of the band's points, in rows of `gradient`, and `to` for reads and writes of a point of sums
/// for each tap.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(in super::super) unsafe fn gradients<S: Simd>(
    width: usize,
    step: usize,
    taps: &[Event],
    input: *const f32,
    read: Map,
    d: *const f32,
    gradient: Map,
    to: *mut f32,
) {
    let (row, d_row) = (step * read.row(), gradient.row());
    shaped!(gradients_tile, width, step, (taps, input, row, d, d_row, to))
}

/// [`gradients`] of R rows of C points, STEP read points apart.
///
/// # Safety
/// As [`gradients`], for that band.
#[inline(always)]
unsafe fn gradients_tile<S: Simd, const R: usize, const C: usize, const STEP: usize>(
    taps: &[Event],
    input: *const f32,
    row: usize,
    d: *const f32,
    d_row: usize,
    to: *mut f32,
) {
    for half in (0..SUBMAPS).step_by(S::WIDTH) {
        // SAFETY: the caller vouches for what the taps read, for the band's gradients and for the taps' sums; `half` is a vector's place in a
        // point, and `next + t` is below the number of taps.
        unsafe {
            let mut gradient = [[S::splat(0.0); C]; R];
            for (r, gradient) in gradient.iter_mut().enumerate() {
                for (c, gradient) in gradient.iter_mut().enumerate() {
                    *gradient = S::load(d.add(r * d_row + c * SUBMAPS + half));
                }
            }
            let mut next = 0;
            // Several at once hide the latency of each one's chain.
            macro_rules! tiles {
                ($taps:literal) => {
                    while taps.len() - next >= $taps {
                        let to = to.add(next * SUBMAPS + half);
                        let from: [*const f32; $taps] = std::array::from_fn(|t| input.add(taps.get_unchecked(next + t).at as usize + half));
                        let mut sums = [S::splat(0.0); $taps];
                        for (t, sum) in sums.iter_mut().enumerate() {
                            *sum = S::load(to.add(t * SUBMAPS));
                        }
                        for (r, gradient) in gradient.iter().enumerate() {
                            for (c, &gradient) in gradient.iter().enumerate() {
                                for (sum, from) in sums.iter_mut().zip(&from) {
                                    *sum = S::multiply_add(S::load(from.add(r * row + c * STEP * SUBMAPS)), gradient, *sum);
                                }
                            }
                        }
                        for (t, &sum) in sums.iter().enumerate() {
                            S::store(to.add(t * SUBMAPS), sum);
                        }
                        next += $taps;
                    }
                };
            }
            tiles!(4);
            tiles!(1);
        }
    }
}

/// The sum of the sub-maps' sums: halves added to halves, until one is left.
#[inline(always)]
pub(in super::super) fn total(submaps: &[f32; SUBMAPS]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|i| submaps[i] + submaps[i + 8]);
    let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}
