//! Maps cut into sub-maps: `[channel][y][x][submap]`, each sub-map with the border that the convolution reading it needs.
//!
//! Sixteen sub-maps side by side, four to a row of the map, are a [`Map`] with sixteen channels: [`channel_map`]. Within an image a border is the
//! neighbouring sub-map's edge, around it zeros.

use super::super::simd::Simd;
use crate::network::Map;

/// Sub-maps of a map.
pub(in super::super) const SUBMAPS: usize = 16;

/// Sub-maps in a row of them, and in a column.
const SIDE: usize = 4;

/// Whether a map can be cut into sub-maps that the kernels know.
pub(in super::super) fn fit(map: Map) -> bool {
    map.height == map.width && matches!(map.height, 8 | 16 | 32) && map.before.max(map.after) <= map.height / SIDE
}

/// One channel of a map in sub-maps.
pub(in super::super) fn channel_map(map: Map) -> Map {
    Map { height: map.height / SIDE, width: map.width / SIDE, channels: SUBMAPS, ..map }
}

/// Floats of a map in sub-maps.
pub(in super::super) fn submaps_len(map: Map) -> usize {
    map.channels * channel_map(map).len()
}

/// A map in sub-maps, all of which must be there.
#[inline(always)]
pub(in super::super) fn submaps_of(floats: &[f32], map: Map) -> &[f32] {
    &floats[..submaps_len(map)]
}

/// All ones where sub-map (y + dy, x + dx) exists, else zero.
const fn neighbours(dy: isize, dx: isize) -> [u32; SUBMAPS] {
    let mut mask = [0; SUBMAPS];
    let mut submap = 0;
    while submap < SUBMAPS {
        let (y, x) = ((submap / SIDE) as isize + dy, (submap % SIDE) as isize + dx);
        if y >= 0 && y < SIDE as isize && x >= 0 && x < SIDE as isize {
            mask[submap] = u32::MAX;
        }
        submap += 1;
    }
    mask
}

/// Fills the borders of a channel's sub-maps from its inside.
///
/// # Safety
/// The map's extents are small enough for their products: those of a map that [`fit`] accepts are.
///
/// # Panics
/// Unless `points` are one channel's, and no border is wider than a sub-map.
#[inline(always)]
pub(in super::super) unsafe fn fill_borders<S: Simd>(channel_map: Map, points: &mut [f32]) {
    assert!(points.len() == channel_map.len() && channel_map.before.max(channel_map.after) <= channel_map.width.min(channel_map.height));
    // SAFETY: the assert and the caller have said what `fill_border` relies on.
    unsafe {
        fill_border::<S, -1, -1>(channel_map, points);
        fill_border::<S, -1, 0>(channel_map, points);
        fill_border::<S, -1, 1>(channel_map, points);
        fill_border::<S, 0, -1>(channel_map, points);
        fill_border::<S, 0, 1>(channel_map, points);
        fill_border::<S, 1, -1>(channel_map, points);
        fill_border::<S, 1, 0>(channel_map, points);
        fill_border::<S, 1, 1>(channel_map, points);
    }
}

/// The part of the borders that is the inside of the sub-maps DY below and DX to the right.
///
/// # Safety
/// As [`fill_borders`], whose assert has passed.
#[inline(always)]
unsafe fn fill_border<S: Simd, const DY: isize, const DX: isize>(channel_map: Map, points: &mut [f32]) {
    let part = |toward: isize, size: usize| match toward {
        -1 => 0..channel_map.before,
        0 => channel_map.before..channel_map.before + size,
        _ => channel_map.before + size..channel_map.before + size + channel_map.after,
    };
    let mask = const { &neighbours(DY, DX) };
    // A point of the neighbour's sub-map is `away` floats from the same point of this one. What a load meets beyond the ends of the point is cut off;
    // it lies in the channel, because there is a border on that side.
    let (down, right) = ((channel_map.height * channel_map.row()) as isize, (channel_map.width * SUBMAPS) as isize);
    let away = DY * (SIDE as isize - down) + DX * (1 - right);
    for y in part(DY, channel_map.height) {
        for x in part(DX, channel_map.width) {
            for half in (0..SUBMAPS).step_by(S::WIDTH) {
                // SAFETY: `to` is a point of the border, and the load begins at the point of the neighbour's inside that is `away`, less than a
                // point before or behind it: both lie in the channel, as said above.
                unsafe {
                    let to = points.as_mut_ptr().add(y * channel_map.row() + x * SUBMAPS + half);
                    S::store(to, S::keep(S::load(to.offset(away)), mask.as_ptr().add(half)));
                }
            }
        }
    }
}

/// Offset of each sub-map's first float in a map that is channel last.
fn corners(map: Map) -> [usize; SUBMAPS] {
    let channel_map = channel_map(map);
    std::array::from_fn(|submap| map.at_row(submap / SIDE * channel_map.height) + submap % SIDE * channel_map.width * map.channels)
}

/// Cuts a map that is channel last; `from` and `to` may have different borders.
///
/// # Safety
/// Both are maps of one shape but for their borders, which [`fit`] accepts.
///
/// # Panics
/// Unless `image` has the shape of `from`, and `submaps` that of `to` in sub-maps.
#[inline(always)]
pub(in super::super) unsafe fn cut<S: Simd>(from: Map, image: &[f32], to: Map, submaps: &mut [f32]) {
    assert!(image.len() == from.len() && submaps.len() >= submaps_len(to));
    let (channel_map, corners, channels) = (channel_map(to), corners(from), from.channels);
    for y in 0..channel_map.height {
        for x in 0..channel_map.width {
            let (point, offset) = (channel_map.at_row(y) + x * SUBMAPS, y * from.row() + x * channels);
            if channels.is_multiple_of(S::WIDTH) {
                for channel in (0..channels).step_by(S::WIDTH) {
                    for first in (0..SUBMAPS).step_by(S::WIDTH) {
                        // SAFETY: a point of each of the sub-maps lies in the image, and channels are whole vectors, in both layouts, whose lengths
                        // the assert has checked.
                        unsafe {
                            let row = |i: usize| image.as_ptr().add(corners[first + i] + offset + channel);
                            S::transpose(row, submaps.as_mut_ptr().add(channel * channel_map.len() + point + first), channel_map.len());
                        }
                    }
                }
            } else {
                for channel in 0..channels {
                    let to = &mut submaps[channel * channel_map.len() + point..][..SUBMAPS];
                    for (to, corner) in to.iter_mut().zip(corners) {
                        *to = image[corner + offset + channel];
                    }
                }
            }
        }
    }
    for points in submaps.chunks_exact_mut(channel_map.len()).take(channels) {
        // SAFETY: the caller has said that `fit` accepts the map.
        unsafe { fill_borders::<S>(channel_map, points) };
    }
}

/// The reverse of [`cut`]; the border of `to` stays as it is.
///
/// # Safety
/// As [`cut`].
///
/// # Panics
/// As [`cut`], and unless the channels are a multiple of the vector.
#[inline(always)]
pub(in super::super) unsafe fn join<S: Simd>(from: Map, submaps: &[f32], to: Map, image: &mut [f32]) {
    assert!(image.len() == to.len() && submaps.len() >= submaps_len(from) && to.channels.is_multiple_of(S::WIDTH));
    let (channel_map, corners, channels) = (channel_map(from), corners(to), to.channels);
    let mut rows = [0.0; SUBMAPS * SUBMAPS];
    for y in 0..channel_map.height {
        for x in 0..channel_map.width {
            let (point, offset) = (channel_map.at_row(y) + x * SUBMAPS, y * to.row() + x * channels);
            for channel in (0..channels).step_by(S::WIDTH) {
                for first in (0..SUBMAPS).step_by(S::WIDTH) {
                    // SAFETY: a point of each of the channels lies in `submaps`, and `rows` has the square of the widest vector.
                    unsafe {
                        let from = |i: usize| submaps.as_ptr().add((channel + i) * channel_map.len() + point + first);
                        S::transpose(from, rows.as_mut_ptr(), S::WIDTH);
                    }
                    for (corner, row) in corners[first..].iter().zip(rows.chunks_exact(S::WIDTH)).take(S::WIDTH) {
                        image[corner + offset + channel..][..S::WIDTH].copy_from_slice(row);
                    }
                }
            }
        }
    }
}
