//! Fully connected layers: the last one makes the logits, with their loss and its gradient or the margins; hidden ones are convolutions of one
//! position.

use super::super::gpu::Stored;
use super::super::launch::{ELEMENTWISE, LayerKernels, dense_source, kernels};
use super::super::micro_batch::MicroBatch;
use super::super::pointer::{ConstPointer, MutPointer, at, at_mut};
use super::kind::CudaLayer;
use super::pass::{Pass, on_batch};
use crate::Result;
use crate::network::{Dense, DenseOutput, Epilogue, Layer, Network};

kernels! {
    /// Logits, and the loss with its gradient or the margins. A block takes a group of a lane.
    fn dense_forward(
        images: i32,
        length: i32,
        places: i32,
        inputs: i32,
        weights_at: i32,
        bias_at: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        features: ConstPointer<'_, Stored>,
        labels: ConstPointer<'_, u16>,
        logits: MutPointer<'_, Stored>,
        sums: Option<MutPointer<'_, f32>>,
        parameters: i32,
        margins: Option<MutPointer<'_, f32>>
    )[lanes: usize] = ["dense_forward"][0];
    blocks: [1, (images as usize).div_ceil(length as usize), lanes];
    threads: 256;

    /// The gradient of the features. A block takes 256 of them of eight images.
    fn dense_backward(
        images: i32,
        inputs: i32,
        weights_at: i32,
        which: ConstPointer<'_, i32>,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        gradient: ConstPointer<'_, Stored>,
        rectified: Option<ConstPointer<'_, Stored>>,
        to: MutPointer<'_, Stored>
    )[lanes: usize] = ["dense_backward"][0];
    blocks: [(inputs as usize).div_ceil(ELEMENTWISE) * (images as usize).div_ceil(8), 1, lanes];
    threads: ELEMENTWISE;

    /// The loss with its gradient, or the margins, of logits. A block takes a group of a lane.
    fn softmax_loss(
        images: i32,
        length: i32,
        places: i32,
        bias_at: i32,
        weights: ConstPointer<'_, f32>,
        pitch: i32,
        labels: ConstPointer<'_, u16>,
        logits: MutPointer<'_, f32>,
        sums: Option<MutPointer<'_, f32>>,
        parameters: i32,
        margins: Option<MutPointer<'_, f32>>
    )[lanes: usize] = ["softmax_loss"][0];
    blocks: [1, (images as usize).div_ceil(length as usize), lanes];
    threads: 256;
}

/// Lowers a network: its hidden fully connected layers become convolutions of one position, as a map of height × width × channels without a border
/// lies in memory as one of 1 × 1 × inputs does. Maps, parameters and the numbers of layers stay what they are.
pub fn lowered(network: &Network) -> Network {
    let layers = network.layers.iter().map(|layer| match layer {
        Layer::Dense(dense) => match dense.output {
            DenseOutput::Hidden { written, relu } => {
                let epilogue = if relu { Epilogue::Relu { rectified: written } } else { Epilogue::Linear { written } };
                Layer::Convolution(dense.over_positions(1, epilogue))
            }
            DenseOutput::Logits => layer.clone(),
        },
        other => other.clone(),
    });
    Network { layers: layers.collect(), ..network.clone() }
}

impl CudaLayer for Dense {
    fn describe(&self) -> &'static str {
        "a warp an image"
    }

    fn source(&self, _network: &Network, index: usize, tensor: bool) -> String {
        dense_source(index, self, tensor)
    }

    /// The logits of up to 16 classes stay in registers, where cuBLAS does not multiply.
    fn forward(&self, pass: &Pass) -> Result<()> {
        if let Some(blas) = pass.blas().filter(|_| self.has_bias) {
            return on_batch!(blas.head(pass.batch(), self));
        }
        let MicroBatch { kernels, space, network, lanes, images, which, weights, pitch, length, places, output, .. } = *pass.batch();
        on_batch!(kernels.dense_forward(
            lanes,
            images as i32,
            length as i32,
            places as i32,
            self.inputs as i32,
            self.weights as i32,
            if self.has_bias { self.bias as i32 } else { -1 },
            which,
            weights,
            pitch as i32,
            pass.read(self.input),
            at(&space.labels, 0),
            at_mut(&space.logits, 0),
            output.gradients(),
            network.parameters() as i32,
            output.margins(),
        ))
    }

    fn backward(&self, pass: &Pass) -> Result<()> {
        let MicroBatch { kernels, space, lanes, images, which, weights, pitch, .. } = *pass.batch();
        let (features, sent) = (pass.read(self.input), self.producer.map(|producer| pass.sent(producer)));
        if let (Some(blas), Some((to, false)), true) = (pass.blas(), sent, self.has_bias) {
            return on_batch!(blas.head_backward(pass.batch(), self, to.cast()));
        }
        let gradient = at(&space.logits, 0);
        pass.filter_gradient(&LayerKernels::dense(self), features, gradient, None)?;
        let Some((to, through_relu)) = sent else { return Ok(()) };
        on_batch!(kernels.dense_backward(
            lanes,
            images as i32,
            self.inputs as i32,
            self.weights as i32,
            which,
            weights,
            pitch as i32,
            gradient,
            through_relu.then_some(features),
            to,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels;
    use super::*;
    use crate::network::NetworkName;

    #[test]
    fn hidden_layers_become_convolutions_of_the_same_parameters() {
        let network = Network::new(NetworkName::Lenet300x100);
        let lowered = lowered(&network);
        assert_eq!((lowered.parameters(), lowered.forward_flop()), (network.parameters(), network.forward_flop()));
        assert!(lowered.layers.iter().zip(&network.layers).all(|(a, b)| a.parameters() == b.parameters() && a.producer() == b.producer()));
        assert_eq!(kernels(&network), ["tiles of sums", "tiles of sums", "a warp an image"]);
    }
}
