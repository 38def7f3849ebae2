//! Convolutions that end in ReLU and 2 × 2 max-pooling, one image at a time.
//!
//! A pool lets a gradient through at one position of each window at most, so of the backward pass no more than a quarter is left: it goes
//! from event to event, an event being a window's gradient that is not zero, at the position that the pool chose. Every sum has the order
//! that going through all positions would give it; only products with an exact zero are left out. The order, where
//! one output sums over many terms: for a filter gradient, positions in reading order (windows, where the layer reads few channels); for a
//! data gradient, positions in reverse, and output channels within each.

use super::pruned::{BLOCK, Blocks};
use super::simd::{DEAD, Simd};
use super::tile::block;
use crate::network::{Convolution, Map};

/// A gradient that is not zero.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Event {
    /// Where: an output channel, or an offset into the input map.
    pub at: u32,
    /// Its value.
    pub value: f32,
}

/// The events of one image, for both gradients.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// `[position][output channel]`, of which the first `position_counts` are there: channels in order.
    by_position: Vec<Event>,
    position_counts: Vec<u32>,
    /// `[output channel][window]`, of which the first `channel_counts` are there: offsets of what the position reads, in reading order.
    /// Behind them, up to a multiple of [`TOGETHER`], events of nothing that lie beyond the map.
    by_channel: Vec<Event>,
    channel_counts: Vec<u32>,
    /// (output channel, event) in a row of windows' lower halves.
    lower: Vec<(u32, Event)>,
}

/// Events that a block is sent to together.
const TOGETHER: usize = 4;

/// Room for a channel's events: one more than there can be, as each is written before it is known to be one.
fn channel_room(layer: &Convolution) -> usize {
    (layer.output.height * layer.output.width / 4 + 1).next_multiple_of(TOGETHER)
}

impl Events {
    /// Makes room for a layer.
    pub(super) fn grow(&mut self, layer: &Convolution) {
        let (positions, channels) = (layer.output.height * layer.output.width, layer.output.channels);
        let sizes = [positions * channels + 1, positions, channels * channel_room(layer), channels];
        self.by_position.resize(sizes[0].max(self.by_position.len()), Event::default());
        self.position_counts.resize(sizes[1].max(self.position_counts.len()), 0);
        self.by_channel.resize(sizes[2].max(self.by_channel.len()), Event::default());
        self.channel_counts.resize(sizes[3].max(self.channel_counts.len()), 0);
        self.lower.resize((layer.output.width / 2 * channels + 1).max(self.lower.len()), Default::default());
    }

    /// Lists the events of `gradient` and `choice`, both `[window][channel]`, in channels that have weights; the gradient is zero where the
    /// pool chose nothing.
    #[inline(always)]
    pub(super) fn list(&mut self, layer: &Convolution, blocks: &Blocks, gradient: &[f32], choice: &[u8]) {
        let (width, channels) = (layer.output.width, layer.output.channels);
        let positions = layer.output.height * width;
        let (by_position, counts) = (&mut self.by_position[..positions * channels + 1], &mut self.position_counts[..positions]);
        counts.fill(0);
        for (window, (gradient, choice)) in gradient.chunks_exact(channels).zip(choice.chunks_exact(channels)).enumerate() {
            let (y, x) = (window / (width / 2) * 2, window % (width / 2) * 2);
            let first = y * width + x;
            for (channel, ((&value, &choice), &alive)) in gradient.iter().zip(choice).zip(&blocks.alive).enumerate() {
                let position = first + usize::from(choice >> 1 & 1) * width + usize::from(choice & 1);
                // Written in any case, counted if it is one: a branch would be mispredicted.
                let count = &mut counts[position];
                by_position[position * channels + *count as usize] = Event { at: channel as u32, value };
                *count += u32::from(value != 0.0) & alive;
            }
        }
        let room = channel_room(layer);
        let (by_channel, counts) = (&mut self.by_channel[..channels * room], &mut self.channel_counts[..channels]);
        counts.fill(0);
        let mut position = 0;
        for y in 0..layer.output.height {
            for x in 0..width {
                let at = (layer.stride * (y * layer.input_map.row() + x * layer.input_map.channels)) as u32;
                for event in &by_position[position * channels..][..self.position_counts[position] as usize] {
                    let count = &mut counts[event.at as usize];
                    by_channel[event.at as usize * room + *count as usize] = Event { at, value: event.value };
                    *count += 1;
                }
                position += 1;
            }
        }
    }

    /// Lists the same events by output channel alone, where there are few of them.
    ///
    /// # Safety
    /// The output channels are a multiple of the vector, which the processor must have.
    #[inline(always)]
    pub(super) unsafe fn list_few<S: Simd>(&mut self, layer: &Convolution, blocks: &Blocks, gradient: &[f32], choice: &[u8]) {
        let (high, wide, channels) = (layer.output.height / 2, layer.output.width / 2, layer.output.channels);
        let (row, inputs, room) = (layer.input_map.row(), layer.input_map.channels, channel_room(layer));
        let (gradient, choice) = (&gradient[..high * wide * channels], &choice[..high * wide * channels]);
        let counts = &mut self.channel_counts[..channels];
        counts.fill(0);
        for py in 0..high {
            let mut lower = 0;
            for px in 0..wide {
                for first in (0..channels).step_by(S::WIDTH) {
                    let window = (py * wide + px) * channels + first;
                    let mut bits = unsafe { S::not_zero(S::load(gradient[window..].as_ptr())) };
                    while bits != 0 {
                        let i = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let (channel, choice) = (first + i, u32::from(choice[window + i]));
                        let at = layer.stride * (2 * py * row + (2 * px + (choice & 1) as usize) * inputs);
                        // A position of the window's lower row comes after all of the upper row. Both are written, and one is counted.
                        let event = Event { at: at as u32, value: gradient[window + i] };
                        let count = &mut counts[channel];
                        self.by_channel[channel * room + *count as usize] = event;
                        *count += (1 - (choice >> 1)) & blocks.alive[channel];
                        self.lower[lower] = (channel as u32, event);
                        lower += (choice >> 1) as usize;
                    }
                }
            }
            for &(channel, Event { at, value }) in &self.lower[..lower] {
                let count = &mut counts[channel as usize];
                self.by_channel[channel as usize * room + *count as usize] = Event { at: at + (layer.stride * row) as u32, value };
                *count += blocks.alive[channel as usize];
            }
        }
        for (events, &count) in self.by_channel.chunks_exact_mut(room).zip(counts.iter()) {
            let count = count as usize;
            events[count..count.next_multiple_of(TOGETHER)].fill(Event { at: layer.input_map.len() as u32, value: 0.0 });
        }
    }

    /// Offsets of what an output channel's events read, with their gradients.
    fn of_channel(&self, layer: &Convolution, channel: usize) -> &[Event] {
        &self.by_channel[channel * channel_room(layer)..][..self.channel_counts[channel] as usize]
    }

    /// The same, [`TOGETHER`] at a time.
    fn together(&self, layer: &Convolution, channel: usize) -> &[[Event; TOGETHER]] {
        let count = (self.channel_counts[channel] as usize).next_multiple_of(TOGETHER);
        self.by_channel[channel * channel_room(layer)..][..count].as_chunks().0
    }

    /// Output channels with an event at a position, with their gradients.
    fn of_position(&self, layer: &Convolution, position: usize) -> &[Event] {
        &self.by_position[position * layer.output.channels..][..self.position_counts[position] as usize]
    }
}

/// Convolution, bias, ReLU and pool in one, for weights that fit the first-level cache: no sum ever reaches memory. An empty `choice` is
/// not written.
///
/// # Safety
/// As [`forward_rows`](super::convolution::forward_rows), for all rows; `pooled` has the shape of `map`, `choice` that of its inside.
#[inline(always)]
pub(super) unsafe fn forward_resident<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    map: Map,
    pooled: &mut [f32],
    choice: &mut [u8],
) {
    let channels = layer.output.channels;
    assert!(weights.len() == layer.weight_count() && bias.len() == channels && pooled.len() == map.len());
    // What `pack` put side by side; narrower vectors leave too few registers for two of them.
    let block = block::<S>(channels);
    let two = S::WIDTH == 16 && block == 2 * S::WIDTH;
    unsafe {
        for py in 0..map.height {
            for from in (0..channels).step_by(if two { 2 * S::WIDTH } else { S::WIDTH }) {
                let row = WindowRow {
                    layer,
                    input: input.as_ptr().add(2 * py * layer.stride * layer.input_map.row()),
                    weights: weights.as_ptr().add(from / block * block * layer.kernel * layer.run() + from % block),
                    weights_stride: block,
                    bias: bias.as_ptr().add(from),
                    pooled: pooled.as_mut_ptr().add(map.at_row(py) + from),
                    choice: if choice.is_empty() {
                        std::ptr::null_mut()
                    } else {
                        choice.as_mut_ptr().add(py * map.width * channels + from)
                    },
                };
                let mut px = 0;
                macro_rules! tiles {
                    ($windows:literal) => {
                        while map.width - px >= $windows {
                            match (two, layer.input_map.channels * layer.stride == 1) {
                                (true, true) => row.tile::<S, $windows, 2, true>(px),
                                (true, false) => row.tile::<S, $windows, 2, false>(px),
                                (false, true) => row.tile::<S, $windows, 1, true>(px),
                                (false, false) => row.tile::<S, $windows, 1, false>(px),
                            }
                            px += $windows;
                        }
                    };
                }
                tiles!(3);
                tiles!(1);
            }
        }
    }
}

/// A row of pool windows and the output channels from some one on.
struct WindowRow<'a> {
    layer: &'a Convolution,
    input: *const f32,
    weights: *const f32,
    weights_stride: usize,
    bias: *const f32,
    pooled: *mut f32,
    choice: *mut u8,
}

impl WindowRow<'_> {
    /// W windows from `px` on, V vectors of channels; NEXT says that neighbouring positions read neighbouring floats.
    #[inline(always)]
    unsafe fn tile<S: Simd, const W: usize, const V: usize, const NEXT: bool>(&self, px: usize) {
        let layer = self.layer;
        let (row, channels) = (layer.input_map.row(), layer.output.channels);
        let step = if NEXT { 1 } else { layer.stride * layer.input_map.channels };
        let run = if NEXT { layer.kernel } else { layer.run() };
        let lower = if NEXT { row } else { layer.stride * row };
        unsafe {
            let mut sums = [[[S::splat(0.0); V]; 4]; W];
            for v in 0..V {
                let bias = S::load(self.bias.add(v * S::WIDTH));
                sums.iter_mut().flatten().for_each(|sums| sums[v] = bias);
            }
            let mut weights = self.weights;
            for ky in 0..layer.kernel {
                let input = self.input.add(ky * row + 2 * px * step);
                for k in 0..run {
                    let mut vectors = [S::splat(0.0); V];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = S::load(weights.add(v * S::WIDTH));
                    }
                    for (w, window) in sums.iter_mut().enumerate() {
                        for (candidate, sums) in window.iter_mut().enumerate() {
                            let value = S::splat(*input.add(k + (candidate >> 1) * lower + (2 * w + (candidate & 1)) * step));
                            for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                                *sum = S::multiply_add(value, vector, *sum);
                            }
                        }
                    }
                    weights = weights.add(self.weights_stride);
                }
            }
            for (w, window) in sums.iter().enumerate() {
                #[allow(clippy::needless_range_loop)] // v goes through four arrays at once.
                for v in 0..V {
                    let (best, which) = S::largest(std::array::from_fn(|candidate| window[candidate][v]));
                    let at = (px + w) * channels + v * S::WIDTH;
                    S::store(self.pooled.add(at), best);
                    if !self.choice.is_null() {
                        S::store_bytes(self.choice.add(at), which);
                    }
                }
            }
        }
    }
}

/// ReLU, then the maximum over 2 × 2, of `rows` rows of sums from output row `first`. Ties go to the first position, as in PyTorch. An empty
/// `choice` is not written.
///
/// # Safety
/// `sums` has that many rows, `pooled` the shape of `map`, `choice` that of its inside; the processor must have S.
#[inline(always)]
pub(super) unsafe fn pool_rows<S: Simd>(
    layer: &Convolution,
    sums: &[f32],
    first: usize,
    rows: usize,
    map: Map,
    pooled: &mut [f32],
    choice: &mut [u8],
) {
    let channels = layer.output.channels;
    let row = layer.output.width * channels;
    assert!(sums.len() >= rows * row && pooled.len() == map.len());
    for y in 0..rows / 2 {
        let py = first / 2 + y;
        for px in 0..map.width {
            for from in (0..channels).step_by(S::WIDTH) {
                unsafe {
                    let corner = sums.as_ptr().add(2 * y * row + 2 * px * channels + from);
                    let (best, which) = S::largest([0, channels, row, row + channels].map(|at| S::load(corner.add(at))));
                    S::store(pooled.as_mut_ptr().add(map.at_row(py) + px * channels + from), best);
                    if !choice.is_empty() {
                        S::store_bytes(choice.as_mut_ptr().add((py * map.width + px) * channels + from), which);
                    }
                }
            }
        }
    }
}

/// Sets a pooled map's gradient to zero where the pool chose nothing.
#[inline(always)]
pub(super) fn cut_dead(gradient: &mut [f32], choice: &[u8]) {
    for (gradient, &choice) in gradient.iter_mut().zip(choice) {
        *gradient = if choice == DEAD { 0.0 } else { *gradient };
    }
}

/// `sums[channel]` += Σ gradient over windows.
#[inline(always)]
pub(super) fn bias_gradient(gradient: &[f32], sums: &mut [f32]) {
    for window in gradient.chunks_exact(sums.len()) {
        for (sum, &value) in sums.iter_mut().zip(window) {
            *sum += value;
        }
    }
}

/// Columns of [`patches`].
fn patch_columns(map: Map) -> usize {
    map.row() / map.channels - 1
}

/// Floats of [`patches`].
pub(super) fn patches_len(map: Map) -> usize {
    (map.len() / map.row() - 1) * patch_columns(map) * map.channels * 4
}

/// `patches[y][x][channel]` = the input at (y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1): what the four positions of a window read.
#[inline(always)]
pub(super) fn patches(map: Map, input: &[f32], patches: &mut [f32]) {
    let row = map.row();
    let run = patch_columns(map) * map.channels;
    for (patches, rows) in patches.chunks_exact_mut(4 * run).zip(input.windows(2 * row).step_by(row)) {
        let (upper, lower) = rows.split_at(row);
        for (i, patch) in patches.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *patch = [upper[i], upper[i + map.channels], lower[i], lower[i + map.channels]];
        }
    }
}

/// `gradient[ky][kx][in][out]` += Σ input · d over windows in reading order, each vector of channels picking what its pools chose.
///
/// # Safety
/// `patches` are those of the input map, `d` and `choice` are `[window][channel]`, the layer's stride is 1; the processor must have S.
#[inline(always)]
pub(super) unsafe fn filter_gradient_selected<S: Simd>(
    layer: &Convolution,
    patches: &[f32],
    d: &[f32],
    choice: &[u8],
    gradient: &mut [f32],
) {
    let (channels, run) = (layer.output.channels, layer.run());
    assert!(layer.stride == 1 && gradient.len() == layer.weight_count() && patches.len() >= patches_len(layer.input_map));
    let two = channels.is_multiple_of(2 * S::WIDTH);
    for from in (0..channels).step_by(if two { 2 * S::WIDTH } else { S::WIDTH }) {
        for ky in 0..layer.kernel {
            let mut t = 0;
            macro_rules! tiles {
                ($taps:literal) => {
                    while run - t >= $taps {
                        unsafe {
                            let patches = patches.as_ptr().add(4 * (ky * patch_columns(layer.input_map) * layer.input_map.channels + t));
                            let (d, choice) = (d.as_ptr().add(from), choice.as_ptr().add(from));
                            let gradient = gradient.as_mut_ptr().add((ky * run + t) * channels + from);
                            if two {
                                selected::<S, $taps, 2>(layer, patches, d, choice, gradient);
                            } else {
                                selected::<S, $taps, 1>(layer, patches, d, choice, gradient);
                            }
                        }
                        t += $taps;
                    }
                };
            }
            tiles!(5);
            tiles!(1);
        }
    }
}

/// T consecutive weights of a kernel row and V vectors of channels, over all windows.
#[inline(always)]
unsafe fn selected<S: Simd, const T: usize, const V: usize>(
    layer: &Convolution,
    patches: *const f32,
    d: *const f32,
    choice: *const u8,
    gradient: *mut f32,
) {
    let (channels, inputs) = (layer.output.channels, layer.input_map.channels);
    let row = 4 * patch_columns(layer.input_map) * inputs;
    unsafe {
        let mut sums = [[S::splat(0.0); V]; T];
        for (t, row) in sums.iter_mut().enumerate() {
            for (v, sum) in row.iter_mut().enumerate() {
                *sum = S::load(gradient.add(t * channels + v * S::WIDTH));
            }
        }
        let mut at = 0;
        for py in 0..layer.output.height / 2 {
            let mut patch = patches.add(2 * py * row);
            for _ in 0..layer.output.width / 2 {
                let (mut vectors, mut choices) = ([S::splat(0.0); V], [S::splat(0.0); V]);
                for v in 0..V {
                    vectors[v] = S::load(d.add(at + v * S::WIDTH));
                    choices[v] = S::load_bytes(choice.add(at + v * S::WIDTH));
                }
                for (t, row) in sums.iter_mut().enumerate() {
                    for v in 0..V {
                        row[v] = S::multiply_add(S::select(patch.add(4 * t), choices[v]), vectors[v], row[v]);
                    }
                }
                patch = patch.add(8 * inputs);
                at += channels;
            }
        }
        for (t, row) in sums.iter().enumerate() {
            for (v, &sum) in row.iter().enumerate() {
                S::store(gradient.add(t * channels + v * S::WIDTH), sum);
            }
        }
    }
}

/// `gradient[block][BLOCK]` += Σ input · d over the events of each block's output channel.
///
/// # Safety
/// `input` is the image's bordered map, `events` are the layer's, a block's offset and any event's together lie in the map, `gradient` has
/// room for all blocks; the processor must have S.
#[inline(always)]
pub(super) unsafe fn filter_gradient_events<S: Simd>(
    layer: &Convolution,
    input: &[f32],
    events: &Events,
    blocks: &Blocks,
    gradient: &mut [f32],
) {
    assert!(gradient.len() >= blocks.offsets.len() * BLOCK && input.len() == layer.input_map.len());
    for channel in 0..layer.output.channels {
        let events = events.of_channel(layer, channel);
        let (mut next, end) = (blocks.starts[channel] as usize, blocks.starts[channel + 1] as usize);
        if events.is_empty() {
            continue;
        }
        macro_rules! tiles {
            ($blocks:literal) => {
                while end - next >= $blocks {
                    unsafe {
                        let gradient = gradient.as_mut_ptr().add(next * BLOCK);
                        received::<S, $blocks>(input.as_ptr(), events, blocks.offsets.as_ptr().add(next), gradient);
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
#[inline(always)]
unsafe fn received<S: Simd, const B: usize>(input: *const f32, events: &[Event], blocks: *const u32, gradient: *mut f32) {
    unsafe {
        let mut sums = [[S::splat(0.0); 2]; B];
        let offsets: [usize; B] = std::array::from_fn(|b| *blocks.add(b) as usize);
        for (b, block) in sums.iter_mut().enumerate() {
            for (v, sum) in block.iter_mut().enumerate().take(BLOCK / S::WIDTH) {
                *sum = S::load(gradient.add(b * BLOCK + v * S::WIDTH));
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
/// As [`filter_gradient_events`]; `input_gradient` has the shape of the input map.
#[inline(always)]
pub(super) unsafe fn data_gradient_events<S: Simd>(layer: &Convolution, weights: &[f32], events: &Events, input_gradient: &mut [f32]) {
    let run = layer.run();
    assert!(weights.len() == layer.weight_count() && input_gradient.len() == layer.input_map.len());
    for ky in 0..layer.kernel {
        let mut from = 0;
        macro_rules! tiles {
            ($vectors:literal) => {
                while run - from >= $vectors * S::WIDTH {
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
#[inline(always)]
unsafe fn sent<S: Simd, const V: usize>(layer: &Convolution, weights: *const f32, events: &Events, to: *mut f32) {
    let run = layer.run();
    for y in (0..layer.output.height).rev() {
        for x in (0..layer.output.width).rev() {
            let events = events.of_position(layer, y * layer.output.width + x);
            if events.is_empty() {
                continue;
            }
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
pub(super) fn sent_len(map: Map) -> usize {
    2 * map.len()
}

/// As [`data_gradient_events`], for weights of which few blocks are left: `weights` are those blocks, `[block][BLOCK]`. The map's gradient
/// is summed in memory, by place in the kernel and output channel, which for every one of its floats is the same order.
///
/// # Safety
/// As [`filter_gradient_events`]; `input_gradient` has [`sent_len`] floats, the map's first.
#[inline(always)]
pub(super) unsafe fn data_gradient_blocks<S: Simd>(
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
        unsafe {
            let mut kept = [S::splat(0.0); 2];
            for (v, kept) in kept.iter_mut().enumerate().take(vectors) {
                *kept = S::load(weights.as_ptr().add(block as usize * BLOCK + v * S::WIDTH));
            }
            let to = input_gradient.as_mut_ptr().add(blocks.offsets[block as usize] as usize);
            for events in events {
                // Events of one channel are at as many positions: nothing that is stored here was to be loaded here.
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
