//! The mean over all positions.

use super::super::launch::{ELEMENTWISE, blocks, kernels};
use super::super::pointer::{ConstPointer, MutPointer};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::GlobalMean;

kernels! {
    /// The mean over a map's positions.
    fn global_mean(
        slots: i32,
        height: i32,
        width: i32,
        channels: i32,
        row: i32,
        len: i32,
        before: i32,
        map: ConstPointer<'_, f32>,
        mean: MutPointer<'_, f32>
    )[] = ["global_mean"][0];
    blocks: [blocks(slots as usize * channels as usize), 1, 1];
    threads: ELEMENTWISE;

    /// The gradient of the sums that a mean was taken of.
    fn global_mean_backward(
        slots: i32,
        height: i32,
        width: i32,
        channels: i32,
        row: i32,
        len: i32,
        before: i32,
        through_relu: i32,
        map: ConstPointer<'_, f32>,
        gradient: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[] = ["global_mean_backward"][0];
    blocks: [blocks(slots as usize * (height * width * channels) as usize), 1, 1];
    threads: ELEMENTWISE;
}

/// The numbers that both kernels take: slots, and height, width, channels, row, length and border of the map.
fn shape(layer: &GlobalMean, pass: &Pass) -> [i32; 7] {
    let (batch, map) = (pass.batch(), pass.batch().network.maps[layer.input]);
    [batch.slots(), map.height, map.width, map.channels, map.row(), map.len(), map.before].map(|number| number as i32)
}

impl CudaLayer for GlobalMean {
    fn describe(&self) -> &'static str {
        "a thread a channel"
    }

    fn forward(&self, pass: &Pass) -> Result<()> {
        let [slots, height, width, channels, row, len, before] = shape(self, pass);
        let (input, output) = (pass.read(self.input), pass.write(self.output));
        on_batch!(pass.batch().kernels.global_mean(slots, height, width, channels, row, len, before, input, output))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let Some(producer) = self.producer else { return Ok(()) };
        let [slots, height, width, channels, row, len, before] = shape(self, pass);
        let (input, gradient, (to, through_relu)) = (pass.read(self.input), pass.gradient(pass.index()), pass.sent(producer));
        let kernels = pass.batch().kernels;
        on_batch!(kernels.global_mean_backward(slots, height, width, channels, row, len, before, through_relu.into(), input, gradient, to))
    }
}
