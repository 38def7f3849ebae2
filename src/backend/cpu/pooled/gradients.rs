//! Gradients of filters and of the input, from event to event.

use super::events::{Event, Events, TOGETHER};
use crate::backend::cpu::pruned::{BLOCK, Blocks};
use crate::backend::cpu::simd::Simd;
use crate::backend::cpu::tile::Start;
use crate::network::{Convolution, Map};

/// `gradient[block][BLOCK]` = start + Σ input · d over the events of each block's output channel.
///
/// # Safety
/// `blocks` are the layer's ([`Blocks`]), and `events` those that were listed last for it: a block's offset and any event's together lie in the
/// map.
///
/// # Panics
/// Unless `input` is the image's bordered map, and `gradient` has room for all blocks.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn filter_gradient_events<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    events: &Events,
    blocks: &Blocks,
    start: Start,
    gradient: &mut [f32],
) {
    assert!(gradient.len() >= blocks.offsets.len() * BLOCK && input.len() == layer.input_map.len());
    for channel in 0..layer.output.channels {
        let events = events.of_channel(layer, channel);
        let (mut next, end) = (blocks.starts[channel] as usize, blocks.starts[channel + 1] as usize);
        if events.is_empty() {
            if start != Start::Chain {
                gradient[next * BLOCK..end * BLOCK].fill(0.0);
            }
            continue;
        }
        macro_rules! tiles {
            ($blocks:literal) => {
                while end - next >= $blocks {
                    // SAFETY: `next` up to `$blocks` further are blocks of the layer, for which `gradient` has room (the assert); the caller
                    // vouches for what they read at events.
                    unsafe {
                        let gradient = gradient.as_mut_ptr().add(next * BLOCK);
                        received::<S, $blocks>(input.as_ptr(), events, blocks.offsets.as_ptr().add(next), start, gradient);
                    }
                    next += $blocks;
                }
            };
        }
        if S::WIDTH == 16 {
            tiles!(8);
        }
        tiles!(4);
        tiles!(2);
        tiles!(1);
    }
}

/// B blocks over a channel's events.
///
/// # Safety
/// `blocks` is valid for reads of B offsets, `gradient` for reads and writes of B blocks, `input` for reads of a block at each offset from each
/// event's.
#[inline(always)]
unsafe fn received<S: Simd, const B: usize>(input: *const f32, events: &[Event], blocks: *const u32, start: Start, gradient: *mut f32) {
    // SAFETY: the caller vouches for the offsets, for the blocks' sums and for what they read at events.
    unsafe {
        let mut sums = [[S::splat(0.0); 2]; B];
        let offsets: [usize; B] = std::array::from_fn(|b| *blocks.add(b) as usize);
        if start == Start::Chain {
            for (b, block) in sums.iter_mut().enumerate() {
                for (v, sum) in block.iter_mut().enumerate().take(BLOCK / S::WIDTH) {
                    *sum = S::load(gradient.add(b * BLOCK + v * S::WIDTH));
                }
            }
        }
        for event in events {
            let (value, input) = (S::splat(event.value), input.add(event.at as usize));
            for (block, &offset) in sums.iter_mut().zip(&offsets) {
                for (v, sum) in block.iter_mut().enumerate().take(BLOCK / S::WIDTH) {
                    *sum = S::multiply_add(S::load(input.add(offset + v * S::WIDTH)), value, *sum);
                }
            }
        }
        for (b, block) in sums.iter().enumerate() {
            for (v, &sum) in block.iter().enumerate().take(BLOCK / S::WIDTH) {
                S::store(gradient.add(b * BLOCK + v * S::WIDTH), sum);
            }
        }
    }
}

/// Adds to the gradient of one image's bordered input map what the events send back; `weights` are `[kernel][out][kernel · in]`.
///
/// # Safety
/// `events` are those that were listed last for the layer, by position.
///
/// # Panics
/// Unless `weights` are all, and `input_gradient` has the shape of the input map.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn data_gradient_events<S: Simd>(
    layer: &Convolution,
    weights: &[f32],
    events: &Events,
    input_gradient: &mut [f32],
) {
    let run = layer.run();
    assert!(weights.len() == layer.weight_count() && input_gradient.len() == layer.input_map.len());
    for ky in 0..layer.kernel {
        let mut from = 0;
        macro_rules! tiles {
            ($vectors:literal) => {
                while run - from >= $vectors * S::WIDTH {
                    // SAFETY: `from` up to `$vectors` vectors further lies in a kernel row of `weights`, of which there is one for each output
                    // channel, and in what a position reads of a row of the map (the assert has checked both lengths).
                    unsafe {
                        let weights = weights.as_ptr().add(ky * layer.output.channels * run + from);
                        sent::<S, $vectors>(layer, weights, events, input_gradient.as_mut_ptr().add(ky * layer.input_map.row() + from));
                    }
                    from += $vectors * S::WIDTH;
                }
            };
        }
        tiles!(10);
        tiles!(4);
        tiles!(1);
    }
}

/// V vectors of a kernel row, over all positions.
///
/// # Safety
/// `weights` is valid for reads of V vectors of the row of each output channel, `to` for reads and writes of V vectors at each position's offset.
#[inline(always)]
unsafe fn sent<S: Simd, const V: usize>(layer: &Convolution, weights: *const f32, events: &Events, to: *mut f32) {
    let run = layer.run();
    for y in (0..layer.output.height).rev() {
        for x in (0..layer.output.width).rev() {
            let events = events.of_position(layer, y * layer.output.width + x);
            if events.is_empty() {
                continue;
            }
            // SAFETY: the caller vouches for the vectors at this position, and for the rows of the channels that events name.
            unsafe {
                let to = to.add(layer.stride * (y * layer.input_map.row() + x * layer.input_map.channels));
                let mut sums = [S::splat(0.0); V];
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = S::load(to.add(v * S::WIDTH));
                }
                for event in events {
                    let (value, weights) = (S::splat(event.value), weights.add(event.at as usize * run));
                    for (v, sum) in sums.iter_mut().enumerate() {
                        *sum = S::multiply_add(value, S::load(weights.add(v * S::WIDTH)), *sum);
                    }
                }
                for (v, &sum) in sums.iter().enumerate() {
                    S::store(to.add(v * S::WIDTH), sum);
                }
            }
        }
    }
}

/// Floats that [`data_gradient_blocks`] may touch: the map, and as many behind it.
pub(in crate::backend::cpu) fn sent_len(map: Map) -> usize {
    2 * map.len()
}

/// The gradient of the map as [`data_gradient_events`] sums it, for weights of which few blocks are left: `weights` are those blocks,
/// `[block][BLOCK]`. The map's gradient is summed in memory, by place in the kernel and output channel, which for every one of its floats is the same
/// order.
///
/// # Safety
/// As [`filter_gradient_events`]; `events` were listed by [`Events::list_few`].
///
/// # Panics
/// Unless `weights` has all blocks, and `input_gradient` [`sent_len`] floats.
#[inline(always)]
pub(in crate::backend::cpu) unsafe fn data_gradient_blocks<S: Simd>(
    layer: &Convolution,
    blocks: &Blocks,
    weights: &[f32],
    events: &Events,
    input_gradient: &mut [f32],
) {
    assert!(weights.len() >= blocks.offsets.len() * BLOCK && input_gradient.len() >= sent_len(layer.input_map));
    let vectors = BLOCK / S::WIDTH;
    for &(block, channel) in blocks.sent.iter().flatten() {
        let events = events.together(layer, channel as usize);
        // SAFETY: `weights` has all blocks (the assert). A block's offset and an event's together lie in the map, and those of events of nothing
        // within as many floats behind it, which `input_gradient` has too.
        unsafe {
            let mut kept = [S::splat(0.0); 2];
            for (v, kept) in kept.iter_mut().enumerate().take(vectors) {
                *kept = S::load(weights.as_ptr().add(block as usize * BLOCK + v * S::WIDTH));
            }
            let to = input_gradient.as_mut_ptr().add(blocks.offsets[block as usize] as usize);
            for events in events {
                // The events of one channel are at different positions, so that no sum loaded here depends on a sum stored here.
                let mut sums = [[S::splat(0.0); 2]; TOGETHER];
                for (sums, event) in sums.iter_mut().zip(events) {
                    for (v, sum) in sums.iter_mut().enumerate().take(vectors) {
                        *sum = S::multiply_add(S::splat(event.value), kept[v], S::load(to.add(event.at as usize + v * S::WIDTH)));
                    }
                }
                for (sums, event) in sums.iter().zip(events) {
                    for (v, &sum) in sums.iter().enumerate().take(vectors) {
                        S::store(to.add(event.at as usize + v * S::WIDTH), sum);
                    }
                }
            }
        }
    }
}
