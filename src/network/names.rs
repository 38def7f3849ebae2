//! The networks that have a name, and their layers.

use super::specification::{LayerSpec, Padding};
use crate::config::names::names;

names! {
    /// The networks that have a name. None has batch normalisation.
    NetworkName {
        /// The paper's for MNIST and Fashion-MNIST: two 5×5 convolutions with ReLU and max-pooling, and one fully connected layer.
        SimpleCnn = "simple-cnn",
        /// The paper's for CIFAR-10: a 3×3 convolution, three residual blocks of 16, 32 and 64 channels, and one fully connected layer.
        Resnet8 = "resnet-8",
        /// ResNet-8 with nine residual blocks instead of three.
        Resnet20 = "resnet-20",
        /// ResNet-8 with six residual blocks, of 32, 64 and 128 channels.
        WideResnet16x2 = "wide-resnet-16-2",
        /// Fully connected layers of 300 and 100 outputs, with ReLU, and the last one.
        Lenet300x100 = "lenet-300-100",
        /// Two 5×5 convolutions of 20 and 50 channels with ReLU and max-pooling, and fully connected layers of 500 outputs and of the classes.
        Lenet5Caffe = "lenet-5-caffe",
        /// Thirteen 3×3 convolutions of 64 to 512 channels with ReLU, four max-pools, and fully connected layers of 512 outputs and of the classes.
        VggLike = "vgg-like",
    }
}

/// Convolutions of stride 1, each with a ReLU, and 2 × 2 max-pooling after the last if `pooled`.
fn convolutions(channels: &[u32], kernel: u32, padding: Padding, pooled: bool) -> Vec<LayerSpec> {
    let one = |&channels: &u32| [LayerSpec::convolution(channels, kernel, 1, padding), LayerSpec::Relu];
    let pool = pooled.then_some(LayerSpec::MaxPool { size: 2, stride: 2 });
    channels.iter().flat_map(one).chain(pool).collect()
}

/// Fully connected layers, each with a ReLU.
fn dense(outputs: &[u32]) -> Vec<LayerSpec> {
    outputs.iter().flat_map(|&outputs| [LayerSpec::dense(outputs), LayerSpec::Relu]).collect()
}

/// A 3 × 3 convolution, residual blocks as (channels, stride), and a mean.
fn residual(first: u32, blocks: &[(u32, u32)], last: [LayerSpec; 1]) -> Vec<LayerSpec> {
    let first = LayerSpec::convolution(first, 3, 1, Padding::Same);
    let blocks = blocks.iter().map(|&(channels, stride)| LayerSpec::residual(channels, stride));
    std::iter::once(first).chain(blocks).chain([LayerSpec::Relu, LayerSpec::GlobalMean]).chain(last).collect()
}

impl NetworkName {
    /// The layers of a network that has a name, for so many classes. Sources: Simple-CNN and ResNet-8 from Lee et al., ICLR 2021, appendix B; the
    /// others are the usual ones of pruning's literature, without batch normalisation, which dps does not have.
    pub fn layers(self, classes: u32) -> Vec<LayerSpec> {
        let last = [LayerSpec::dense(classes)];
        match self {
            NetworkName::SimpleCnn => [
                convolutions(&[32], 5, Padding::Valid, true),
                convolutions(&[64], 5, Padding::Valid, true),
                vec![LayerSpec::Flatten],
                last.into(),
            ]
            .concat(),
            NetworkName::Resnet8 => residual(16, &[(16, 1), (32, 2), (64, 2)], last),
            NetworkName::Resnet20 => {
                let blocks = [(16, 1), (16, 1), (16, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)];
                residual(16, &blocks, last)
            }
            NetworkName::WideResnet16x2 => residual(16, &[(32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)], last),
            NetworkName::Lenet300x100 => [vec![LayerSpec::Flatten], dense(&[300, 100]), last.into()].concat(),
            NetworkName::Lenet5Caffe => [
                convolutions(&[20], 5, Padding::Valid, true),
                convolutions(&[50], 5, Padding::Valid, true),
                vec![LayerSpec::Flatten],
                dense(&[500]),
                last.into(),
            ]
            .concat(),
            NetworkName::VggLike => [
                convolutions(&[64, 64], 3, Padding::Same, true),
                convolutions(&[128, 128], 3, Padding::Same, true),
                convolutions(&[256, 256, 256], 3, Padding::Same, true),
                convolutions(&[512, 512, 512], 3, Padding::Same, true),
                convolutions(&[512, 512, 512], 3, Padding::Same, false),
                vec![LayerSpec::GlobalMean],
                dense(&[512]),
                last.into(),
            ]
            .concat(),
        }
    }
}
