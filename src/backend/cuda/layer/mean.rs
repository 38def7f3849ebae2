//! The mean over all positions.

use super::super::gpu::Stored;
use super::super::launch::{ELEMENTWISE, MapShape, blocks, kernels};
use super::super::pointer::{ConstPointer, MutPointer};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::GlobalMean;

kernels! {
    /// The mean over a map's positions.
    fn global_mean(
        shape: MapShape,
        slots: i32,
        map: ConstPointer<'_, Stored>,
        mean: MutPointer<'_, Stored>
    )[] = ["global_mean"][0];
    blocks: [blocks(slots as usize * shape.channels as usize), 1, 1];
    threads: ELEMENTWISE;

    /// The gradient of the map that a mean reads, or of what the map's ReLU read.
    fn global_mean_backward(
        shape: MapShape,
        slots: i32,
        through_relu: i32,
        map: ConstPointer<'_, Stored>,
        gradient: ConstPointer<'_, Stored>,
        to: MutPointer<'_, Stored>
    )[] = ["global_mean_backward"][0];
    blocks: [blocks(slots as usize * (shape.height * shape.width * shape.channels) as usize), 1, 1];
    threads: ELEMENTWISE;
}

/// The shape of the map that is read, and the slots of the batch.
fn shape(layer: &GlobalMean, pass: &Pass) -> (MapShape, i32) {
    let batch = pass.batch();
    (MapShape::new(batch.network.maps[layer.input]), batch.slots() as i32)
}

impl CudaLayer for GlobalMean {
    fn describe(&self) -> &'static str {
        "a thread a channel"
    }

    fn forward(&self, pass: &Pass) -> Result<()> {
        let (shape, slots) = shape(self, pass);
        let (input, output) = (pass.read(self.input), pass.write(self.output));
        on_batch!(pass.batch().kernels.global_mean(shape, slots, input, output))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let Some(producer) = self.producer else { return Ok(()) };
        let (shape, slots) = shape(self, pass);
        let (input, gradient, (to, through_relu)) = (pass.read(self.input), pass.gradient(pass.index()), pass.sent(producer));
        on_batch!(pass.batch().kernels.global_mean_backward(shape, slots, through_relu.into(), input, gradient, to))
    }
}
