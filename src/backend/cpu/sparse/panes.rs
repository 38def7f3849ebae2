//! Maps cut into panes: `[channel][y][x][pane]`, each pane with the border that the convolution reading it needs.
//!
//! Sixteen panes side by side, four to a row of the map, are a [`Map`] with sixteen channels: [`plane`]. Within an image a border is the
//! neighbouring pane's edge, around it zeros.

use super::super::simd::Simd;
use crate::network::Map;

/// Panes of a map.
pub(super) const PANES: usize = 16;

/// Panes in a row of them, and in a column.
const SIDE: usize = 4;

/// Whether a map can be cut into panes that the kernels know.
pub(super) fn fit(map: Map) -> bool {
    map.height == map.width && matches!(map.height, 8 | 16 | 32) && map.before.max(map.after) <= map.height / SIDE
}

/// One channel of a map in panes.
pub(super) fn plane(map: Map) -> Map {
    Map { height: map.height / SIDE, width: map.width / SIDE, channels: PANES, ..map }
}

/// Floats of a map in panes.
pub(super) fn planes_len(map: Map) -> usize {
    map.channels * plane(map).len()
}

/// All ones where pane (y + dy, x + dx) exists, else zero.
const fn neighbours(dy: isize, dx: isize) -> [u32; PANES] {
    let mut mask = [0; PANES];
    let mut pane = 0;
    while pane < PANES {
        let (y, x) = ((pane / SIDE) as isize + dy, (pane % SIDE) as isize + dx);
        if y >= 0 && y < SIDE as isize && x >= 0 && x < SIDE as isize {
            mask[pane] = u32::MAX;
        }
        pane += 1;
    }
    mask
}

/// Fills the borders of a plane from its inside.
///
/// # Safety
/// The processor must have S.
#[inline(always)]
pub(super) unsafe fn fill_borders<S: Simd>(plane: Map, points: &mut [f32]) {
    assert!(points.len() == plane.len() && plane.before.max(plane.after) <= plane.width.min(plane.height));
    unsafe {
        fill_border::<S, -1, -1>(plane, points);
        fill_border::<S, -1, 0>(plane, points);
        fill_border::<S, -1, 1>(plane, points);
        fill_border::<S, 0, -1>(plane, points);
        fill_border::<S, 0, 1>(plane, points);
        fill_border::<S, 1, -1>(plane, points);
        fill_border::<S, 1, 0>(plane, points);
        fill_border::<S, 1, 1>(plane, points);
    }
}

/// The part of the borders that is the inside of the panes DY below and DX to the right.
#[inline(always)]
unsafe fn fill_border<S: Simd, const DY: isize, const DX: isize>(plane: Map, points: &mut [f32]) {
    let part = |toward: isize, size: usize| match toward {
        -1 => 0..plane.before,
        0 => plane.before..plane.before + size,
        _ => plane.before + size..plane.before + size + plane.after,
    };
    let mask = const { &neighbours(DY, DX) };
    // The same point of the pane there is that many floats away. What a load meets beyond the ends of the point is cut off; it lies in the plane,
    // because there is a border on that side.
    let (down, right) = ((plane.height * plane.row()) as isize, (plane.width * PANES) as isize);
    let away = DY * (SIDE as isize - down) + DX * (1 - right);
    for y in part(DY, plane.height) {
        for x in part(DX, plane.width) {
            for half in (0..PANES).step_by(S::WIDTH) {
                unsafe {
                    let to = points.as_mut_ptr().add(y * plane.row() + x * PANES + half);
                    S::store(to, S::keep(S::load(to.offset(away)), mask.as_ptr().add(half)));
                }
            }
        }
    }
}

/// Offset of each pane's first float in a map that is channel last.
fn corners(map: Map) -> [usize; PANES] {
    let plane = plane(map);
    std::array::from_fn(|pane| map.at_row(pane / SIDE * plane.height) + pane % SIDE * plane.width * map.channels)
}

/// Cuts a map that is channel last; `from` and `to` may have different borders.
///
/// # Safety
/// `image` has the shape of `from`, `planes` that of `to` in panes; the processor must have S.
#[inline(always)]
pub(super) unsafe fn cut<S: Simd>(from: Map, image: &[f32], to: Map, planes: &mut [f32]) {
    assert!(image.len() == from.len() && planes.len() >= planes_len(to));
    let (plane, corners, channels) = (plane(to), corners(from), from.channels);
    for y in 0..plane.height {
        for x in 0..plane.width {
            let (point, offset) = (plane.at_row(y) + x * PANES, y * from.row() + x * channels);
            if channels.is_multiple_of(S::WIDTH) {
                for channel in (0..channels).step_by(S::WIDTH) {
                    for first in (0..PANES).step_by(S::WIDTH) {
                        unsafe {
                            let row = |i: usize| image.as_ptr().add(corners[first + i] + offset + channel);
                            S::transpose(row, planes.as_mut_ptr().add(channel * plane.len() + point + first), plane.len());
                        }
                    }
                }
            } else {
                for channel in 0..channels {
                    let to = &mut planes[channel * plane.len() + point..][..PANES];
                    for (to, corner) in to.iter_mut().zip(corners) {
                        *to = image[corner + offset + channel];
                    }
                }
            }
        }
    }
    for points in planes.chunks_exact_mut(plane.len()).take(channels) {
        unsafe { fill_borders::<S>(plane, points) };
    }
}

/// The reverse of [`cut`]; the border of `to` stays as it is.
///
/// # Safety
/// As [`cut`], and the channels are a multiple of the vector.
#[inline(always)]
pub(super) unsafe fn join<S: Simd>(from: Map, planes: &[f32], to: Map, image: &mut [f32]) {
    assert!(image.len() == to.len() && planes.len() >= planes_len(from) && to.channels.is_multiple_of(S::WIDTH));
    let (plane, corners, channels) = (plane(from), corners(to), to.channels);
    let mut rows = [0.0; PANES * PANES];
    for y in 0..plane.height {
        for x in 0..plane.width {
            let (point, offset) = (plane.at_row(y) + x * PANES, y * to.row() + x * channels);
            for channel in (0..channels).step_by(S::WIDTH) {
                for first in (0..PANES).step_by(S::WIDTH) {
                    unsafe {
                        let from = |i: usize| planes.as_ptr().add((channel + i) * plane.len() + point + first);
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
