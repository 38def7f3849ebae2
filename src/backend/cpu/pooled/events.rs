//! The gradients of an image that a pool lets through, listed by position and by output channel.

use crate::backend::cpu::pruned::Blocks;
use crate::backend::cpu::simd::Simd;
use crate::network::Convolution;

/// A number that is not left out, with its place: a gradient that is not zero, or a kept weight.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::backend::cpu) struct Event {
    /// An output channel, or an offset into the map or into what is read.
    pub at: u32,
    /// The gradient, or the weight.
    pub value: f32,
}

/// The events of one image, for both gradients.
#[derive(Debug, Default)]
pub(in crate::backend::cpu) struct Events {
    /// `[position][output channel]`, of which the first `position_counts` are there: channels in order.
    by_position: Vec<Event>,
    position_counts: Vec<u32>,
    /// `[output channel][window]`, of which the first `channel_counts` are there: offsets of what the position reads, in reading order.
    /// [`Events::list_few`] puts events of nothing behind them, up to a multiple of [`TOGETHER`]; these lie beyond the map.
    by_channel: Vec<Event>,
    channel_counts: Vec<u32>,
    /// (output channel, event) in a row of windows' lower halves.
    lower: Vec<(u32, Event)>,
}

/// Events that a block is sent to together.
pub(super) const TOGETHER: usize = 4;

/// The most events of a channel: one more than there can be, as each is written before it is known to be one.
fn most_events(layer: &Convolution) -> usize {
    (layer.output.height * layer.output.width / 4 + 1).next_multiple_of(TOGETHER)
}

impl Events {
    /// Makes room for a layer.
    pub(in crate::backend::cpu) fn grow(&mut self, layer: &Convolution) {
        let (positions, channels) = (layer.output.height * layer.output.width, layer.output.channels);
        let sizes = [positions * channels + 1, positions, channels * most_events(layer), channels];
        self.by_position.resize(sizes[0].max(self.by_position.len()), Event::default());
        self.position_counts.resize(sizes[1].max(self.position_counts.len()), 0);
        self.by_channel.resize(sizes[2].max(self.by_channel.len()), Event::default());
        self.channel_counts.resize(sizes[3].max(self.channel_counts.len()), 0);
        self.lower.resize((layer.output.width / 2 * channels + 1).max(self.lower.len()), Default::default());
    }

    /// Lists the events of `gradient` and `choice`, both `[window][channel]`, in channels that have weights; the gradient is zero where the
    /// pool chose nothing.
    #[inline(always)]
    pub(in crate::backend::cpu) fn list(&mut self, layer: &Convolution, blocks: &Blocks, gradient: &[f32], choice: &[u8]) {
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
        let most = most_events(layer);
        let (by_channel, counts) = (&mut self.by_channel[..channels * most], &mut self.channel_counts[..channels]);
        counts.fill(0);
        let mut position = 0;
        for y in 0..layer.output.height {
            for x in 0..width {
                let at = (layer.stride * (y * layer.input_map.row() + x * layer.input_map.channels)) as u32;
                for event in &by_position[position * channels..][..self.position_counts[position] as usize] {
                    let count = &mut counts[event.at as usize];
                    by_channel[event.at as usize * most + *count as usize] = Event { at, value: event.value };
                    *count += 1;
                }
                position += 1;
            }
        }
    }

    /// Lists the same events by output channel alone, where there are few of them. By [`list`](Events::list) instead, Simple-CNN trains at 0.89 of
    /// its speed at sparsity 0.98 (batch size 64, one core of an AMD EPYC).
    ///
    /// # Panics
    /// Unless the output channels are a multiple of the vector, and `gradient` and `choice` have all windows.
    #[inline(always)]
    pub(in crate::backend::cpu) fn list_few<S: Simd>(&mut self, layer: &Convolution, blocks: &Blocks, gradient: &[f32], choice: &[u8]) {
        let (high, wide, channels) = (layer.output.height / 2, layer.output.width / 2, layer.output.channels);
        let (row, inputs, most) = (layer.input_map.row(), layer.input_map.channels, most_events(layer));
        let (gradient, choice) = (&gradient[..high * wide * channels], &choice[..high * wide * channels]);
        assert!(channels.is_multiple_of(S::WIDTH), "channels are whole vectors");
        let counts = &mut self.channel_counts[..channels];
        counts.fill(0);
        for py in 0..high {
            let mut lower = 0;
            for px in 0..wide {
                for first in (0..channels).step_by(S::WIDTH) {
                    let window = (py * wide + px) * channels + first;
                    // SAFETY: `gradient` has all windows of all channels, which are whole vectors.
                    let mut bits = unsafe { S::not_zero(S::load(gradient[window..].as_ptr())) };
                    while bits != 0 {
                        let i = bits.trailing_zeros() as usize;
                        bits &= bits - 1;
                        let (channel, choice) = (first + i, u32::from(choice[window + i]));
                        let at = layer.stride * (2 * py * row + (2 * px + (choice & 1) as usize) * inputs);
                        // In reading order, the events of a window's lower row follow all events of the upper row. The event is written to both
                        // lists, and counted only in the list of the event's row.
                        let event = Event { at: at as u32, value: gradient[window + i] };
                        let count = &mut counts[channel];
                        self.by_channel[channel * most + *count as usize] = event;
                        *count += (1 - (choice >> 1)) & blocks.alive[channel];
                        self.lower[lower] = (channel as u32, event);
                        lower += (choice >> 1) as usize;
                    }
                }
            }
            for &(channel, Event { at, value }) in &self.lower[..lower] {
                let count = &mut counts[channel as usize];
                self.by_channel[channel as usize * most + *count as usize] = Event { at: at + (layer.stride * row) as u32, value };
                *count += blocks.alive[channel as usize];
            }
        }
        for (events, &count) in self.by_channel.chunks_exact_mut(most).zip(counts.iter()) {
            let count = count as usize;
            events[count..count.next_multiple_of(TOGETHER)].fill(Event { at: layer.input_map.len() as u32, value: 0.0 });
        }
    }

    /// Offsets of what an output channel's events read, with their gradients.
    pub(super) fn of_channel(&self, layer: &Convolution, channel: usize) -> &[Event] {
        &self.by_channel[channel * most_events(layer)..][..self.channel_counts[channel] as usize]
    }

    /// Offsets and gradients of an output channel's events as [`Events::of_channel`] has them, [`TOGETHER`] at a time.
    pub(super) fn together(&self, layer: &Convolution, channel: usize) -> &[[Event; TOGETHER]] {
        let count = (self.channel_counts[channel] as usize).next_multiple_of(TOGETHER);
        self.by_channel[channel * most_events(layer)..][..count].as_chunks().0
    }

    /// Output channels with an event at a position, with their gradients.
    pub(super) fn of_position(&self, layer: &Convolution, position: usize) -> &[Event] {
        &self.by_position[position * layer.output.channels..][..self.position_counts[position] as usize]
    }
}
