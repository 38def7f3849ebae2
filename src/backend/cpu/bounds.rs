//! Checks that kernels make before they use addresses: once for a group of rows or for an image, never for a position. A caller that is wrong about a
//! shape so meets a panic.
//!
//! Kernels multiply a layer's extents, and products that wrap would pass these checks. [`check`](super::check) bounds maps and parameters of every
//! network by 2³² before a [`Physical`](super::physical::Physical) of it can be made, so that no product of a physical network's extents wraps in
//! 64 bits; nor does one of a fully connected layer over the images of a pass.

use super::simd::Simd;
use crate::network::Convolution;

/// Panics unless `input` floats are one image's bordered map, and what `rows` output rows from row `first` on read lies in it.
#[inline(always)]
pub(super) fn assert_reads(layer: &Convolution, input: usize, first: usize, rows: usize) {
    let (map, output) = (layer.input_map, layer.output);
    assert!(input == map.len(), "a convolution's input is one bordered map");
    assert!(first <= output.height && rows <= output.height - first, "rows that a convolution writes");
    if rows > 0 && output.width > 0 {
        let reads = |outputs: usize| (outputs - 1) * layer.stride + layer.kernel;
        assert!(reads(first + rows) <= map.before + map.height + map.after, "rows that a convolution reads");
        assert!(reads(output.width) <= map.before + map.width + map.after, "columns that a convolution reads");
    }
}

/// Panics unless `channels` is a positive multiple of the vector's width.
#[inline(always)]
pub(super) fn assert_vectors<S: Simd>(channels: usize) {
    assert!(channels > 0 && channels.is_multiple_of(S::WIDTH), "channels are whole vectors");
}
