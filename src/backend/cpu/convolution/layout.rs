//! Weights in the layouts that forward passes and data gradients want.

use super::super::simd::Simd;
use super::super::tile::block;
use super::super::winograd::Tiles;
use crate::network::Convolution;

/// `packed[block][row][channel]` = `from[row][block][channel]`: the weights as a forward pass wants them. Read in place, rows of other
/// blocks would lie between those of one, and crowd them out of a cache whose sets go by address.
#[inline(always)]
fn pack<S: Simd>(from: &[f32], channels: usize, packed: &mut [f32]) {
    let block = block::<S>(channels);
    for (index, packed) in packed.chunks_exact_mut(from.len() / channels * block).enumerate() {
        for (packed, from) in packed.chunks_exact_mut(block).zip(from.chunks_exact(channels)) {
            let from = &from[index * block..][..block];
            // Whole vectors: a copy of a length that the compiler does not know would be a call.
            for v in (0..block).step_by(S::WIDTH) {
                // SAFETY: both slices have a whole `block`, which is one vector or two, and `v` is a vector's place in it.
                unsafe { S::store(packed[v..].as_mut_ptr(), S::load(from[v..].as_ptr())) };
            }
        }
    }
}

/// The floats of a layer's weights as [`lay_out`] leaves them.
pub(in super::super) fn laid_out_len(layer: &Convolution, tiles: Option<Tiles>) -> usize {
    tiles.map_or(layer.weight_count(), |tiles| tiles.weights_len(layer))
}

/// Lays weights `[kernel][kernel][in][out]` out for [`ForwardRows`](super::ForwardRows) by these tiles.
#[inline(always)]
pub(in super::super) fn lay_out<S: Simd>(layer: &Convolution, tiles: Option<Tiles>, from: &[f32], to: &mut [f32]) {
    match tiles {
        Some(tiles) => tiles.lay_out::<S>(from, layer.output.channels, to),
        None => pack::<S>(from, layer.output.channels, to),
    }
}

/// Writes the weights for the data gradient: `[kernel][kernel][out][in]`, or, with an `adjoint`, with the kernel turned around and laid out for
/// the adjoint's forward pass. `scratch` has room for all of the weights, which only an adjoint needs.
///
/// # Panics
/// Unless both numbers of channels are multiples of the vector.
#[inline(always)]
pub(in super::super) fn transpose<S: Simd>(
    layer: &Convolution,
    adjoint: Option<(&Convolution, Option<Tiles>)>,
    from: &[f32],
    scratch: &mut [f32],
    to: &mut [f32],
) {
    let (inputs, outputs) = (layer.input_map.channels, layer.output.channels);
    let taps = layer.kernel * layer.kernel;
    let turn = adjoint.is_some();
    let transposed = if turn { &mut scratch[..from.len()] } else { &mut *to };
    for (tap, from) in from.chunks_exact(inputs * outputs).enumerate() {
        let place = if turn { taps - 1 - tap } else { tap };
        transpose_matrix::<S>(from, inputs, outputs, &mut transposed[place * from.len()..][..from.len()]);
    }
    if let Some((adjoint, tiles)) = adjoint {
        lay_out::<S>(adjoint, tiles, &scratch[..from.len()], to);
    }
}

/// `to[column][row]` = `from[row][column]`.
///
/// # Panics
/// Unless both counts are multiples of the vector, and both slices have all elements.
#[inline(always)]
pub(in super::super) fn transpose_matrix<S: Simd>(from: &[f32], rows: usize, columns: usize, to: &mut [f32]) {
    assert!(rows.is_multiple_of(S::WIDTH) && columns.is_multiple_of(S::WIDTH));
    assert!(rows.checked_mul(columns) == Some(from.len()) && to.len() == from.len());
    for column in (0..columns).step_by(S::WIDTH) {
        for row in (0..rows).step_by(S::WIDTH) {
            // SAFETY: `S::WIDTH` rows and columns from here on lie in the matrix, and both slices have all of it: the asserts say so.
            unsafe {
                let corner = from.as_ptr().add(row * columns + column);
                S::transpose(|i| corner.add(i * columns), to.as_mut_ptr().add(column * rows + row), rows);
            }
        }
    }
}
