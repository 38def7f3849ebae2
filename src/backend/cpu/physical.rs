//! A network as the kernels want it: channels in whole vectors of the widest unit.
//!
//! A channel that is added has no weights, no bias and so no value but zero: kernels treat an added channel like one that a mask has removed.
//! A layer without a bias gets a bias of zero in the same way, so that every physical layer with weights has a bias. The back end turns weights,
//! masks and gradients of one network into those of the other where they enter and leave ([`Physical::spread`], [`Physical::mask`]), and computes
//! with the physical network alone. A network whose channels are whole vectors already, and whose layers all have a bias, is its own physical one.

use std::borrow::Cow;
use std::sync::Arc;

use super::check::{VECTOR, check, check_vectors};
use super::dense::is_narrow;
use crate::network::{DenseOutput, Epilogue, Layer, Map, Network, Tensor, TensorKind};
use crate::pruning::Mask;

/// A network whose channels are whole vectors, and whose shapes fit together: what the kernels rely on.
pub struct Physical {
    network: Arc<Network>,
    /// Where each parameter of the logical network is; none where it is the same one.
    places: Option<Vec<u32>>,
}

impl Physical {
    /// The physical network of a logical one.
    ///
    /// # Panics
    /// Where the shapes of the network do not fit together, a map is written twice or read before it is written, or a map or the parameters are more
    /// than 4,294,967,295 numbers. No list of layers leads there.
    pub fn new(logical: &Arc<Network>) -> Physical {
        let network = Physical::network_of(logical);
        let places = (!Arc::ptr_eq(&network, logical)).then(|| places(logical, &network));
        Physical { network, places }
    }

    /// The physical network of a logical one, without the places of parameters, which are as many.
    ///
    /// # Panics
    /// As [`Physical::new`].
    pub fn network_of(logical: &Arc<Network>) -> Arc<Network> {
        check(logical);
        let network = pad(logical);
        check(&network);
        check_vectors(&network);
        if network == **logical { logical.clone() } else { Arc::new(network) }
    }

    /// The network that the kernels compute.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Whether the physical network is the logical one.
    pub(super) fn is_logical(&self) -> bool {
        self.places.is_none()
    }

    /// Values of logical parameters in their physical places, zero elsewhere.
    pub(super) fn spread<'a>(&self, values: &'a [f32]) -> Cow<'a, [f32]> {
        let Some(places) = &self.places else { return Cow::Borrowed(values) };
        let mut spread = vec![0.0; self.network.parameters()];
        places.iter().zip(values).for_each(|(&place, &value)| spread[place as usize] = value);
        Cow::Owned(spread)
    }

    /// Values of physical parameters in the order of the logical ones.
    pub(super) fn gather<'a>(&self, values: &'a [f32]) -> Cow<'a, [f32]> {
        let Some(places) = &self.places else { return Cow::Borrowed(values) };
        Cow::Owned(places.iter().map(|&place| values[place as usize]).collect())
    }

    /// The physical parameters that a mask of the logical ones keeps, in the same order.
    pub(super) fn mask(&self, mask: &Mask) -> Mask {
        let Some(places) = &self.places else { return mask.clone() };
        let kept = match mask {
            Mask::Dense(_) => places.clone(),
            Mask::Sparse { kept, .. } => kept.iter().map(|&index| places[index as usize]).collect(),
        };
        Mask::Sparse { kept, parameters: self.network.parameters() }
    }

    /// The physical mask that keeps every parameter of the logical network.
    pub(super) fn whole(&self) -> Mask {
        self.mask(&Mask::Dense(self.network.parameters()))
    }
}

/// Outputs of a fully connected layer in whole vectors, unless it has a kernel for as many as there are.
fn dense_outputs(inputs: usize, outputs: usize, output: DenseOutput) -> usize {
    if is_narrow(inputs, outputs, output) { outputs } else { outputs.next_multiple_of(VECTOR) }
}

/// Where each parameter of the logical network is in the physical one.
fn places(logical: &Network, physical: &Network) -> Vec<u32> {
    let mut places = vec![0; logical.parameters()];
    for index in 0..logical.layers.len() {
        let [from, to] = [logical, physical].map(|network| {
            let layer = &network.layers[index];
            // A normalisation has one weight for each output.
            let inputs = network.weights(index).map_or(1, |(_, [inputs, _])| inputs);
            Some((layer.parameters()?, [inputs, layer.outputs()?]))
        });
        let Some((([weights, bias], [inputs, outputs]), (to, [wide_inputs, wide_outputs]))) = from.zip(to) else { continue };
        for (at, place) in places[weights].iter_mut().enumerate() {
            let (row, output) = (at / outputs, at % outputs);
            *place = (to[0].start + (row / inputs * wide_inputs + row % inputs) * wide_outputs + output) as u32;
        }
        places[bias].iter_mut().zip(to[1].clone()).for_each(|(place, at)| *place = at as u32);
    }
    places
}

/// The physical network.
fn pad(logical: &Network) -> Network {
    let mut network = logical.clone();
    let mut offset = 0;
    let wide = |map: Map| Map { channels: map.channels.next_multiple_of(VECTOR), ..map };
    for layer in &mut network.layers {
        match layer {
            Layer::Convolution(layer) => {
                let before = layer.output;
                layer.input_map = network.maps[layer.input];
                layer.output = wide(before);
                if let Epilogue::Stream { stream, shortcut, .. } = layer.epilogue {
                    // Kernels tell a shortcut that is the block's input from others by the shapes: equal ones stay so, and others stay different.
                    if let Some(slot) = shortcut {
                        let (from, old) = (network.maps[slot], logical.maps[slot]);
                        layer.output.channels = match (old == before, from.height == layer.output.height) {
                            (true, _) => from.channels,
                            (false, true) => layer.output.channels.max(from.channels + VECTOR),
                            (false, false) => layer.output.channels.max(from.channels),
                        };
                    }
                    network.maps[stream].channels = layer.output.channels;
                }
                network.maps[layer.epilogue.written()].channels = layer.output.channels;
                (layer.weights, layer.bias, layer.has_bias) = (offset, offset + layer.weight_count(), true);
                offset = layer.bias + layer.output.channels;
            }
            Layer::Dense(layer) => {
                layer.inputs = network.maps[layer.input].inner_len();
                layer.outputs = dense_outputs(layer.inputs, layer.outputs, layer.output);
                if let DenseOutput::Hidden { written, .. } = layer.output {
                    network.maps[written].channels = layer.outputs;
                }
                (layer.weights, layer.bias, layer.has_bias) = (offset, offset + layer.inputs * layer.outputs, true);
                offset = layer.bias + layer.outputs;
            }
            Layer::GroupNorm(layer) => {
                layer.channels = network.maps[layer.input].channels;
                network.maps[layer.output].channels = layer.channels;
                (layer.scale, layer.bias) = (offset, offset + layer.channels);
                offset = layer.bias + layer.channels;
            }
            // A layer without parameters keeps the channels, or `check` refuses what comes out.
            other => {
                if let Some(written) = other.written() {
                    network.maps[written].channels = network.maps[other.input()].channels;
                }
            }
        }
    }
    let ranges = network.layers.iter().filter_map(Layer::parameters);
    let weights = logical.tensors.iter().filter(|tensor| tensor.kind != TensorKind::Bias);
    let tensors = weights.zip(ranges).flat_map(|(tensor, [weights, bias])| {
        let name = tensor.name.replace(".weights", ".bias").replace(".scale", ".bias");
        let bias = Tensor { name, kind: TensorKind::Bias, offset: bias.start, len: bias.len(), ..tensor.clone() };
        [Tensor { offset: weights.start, len: weights.len(), ..tensor.clone() }, bias]
    });
    network.tensors = tensors.collect();
    network
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Initialisation, LayerSpec, NetworkName, Padding};

    #[test]
    fn the_papers_networks_are_their_own_physical_ones() {
        for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
            let network = Arc::new(Network::new(name));
            let physical = Physical::new(&network);
            assert!(physical.places.is_none() && Arc::ptr_eq(&physical.network, &network), "{name}");
        }
    }

    #[test]
    fn parameters_come_back_from_where_they_go() {
        let layers = [
            LayerSpec::convolution(5, 3, 1, Padding::Same),
            LayerSpec::residual(9, 1),
            LayerSpec::residual(9, 1),
            LayerSpec::residual(20, 2),
            LayerSpec::Relu,
            LayerSpec::GroupNorm { groups: 5 },
            LayerSpec::Flatten,
            LayerSpec::Dense { outputs: 7, initialisation: Initialisation::VarianceScaling, bias: false },
            LayerSpec::Relu,
            LayerSpec::dense(3),
        ];
        let network = Arc::new(Network::listed(&layers, [6, 6, 3], 3).unwrap());
        let physical = Physical::new(&network);
        let values: Vec<f32> = (1..=network.parameters()).map(|value| value as f32).collect();
        let spread = physical.spread(&values);
        assert_eq!(spread.iter().filter(|value| **value != 0.0).count(), values.len());
        assert!(spread.iter().filter(|value| **value != 0.0).is_sorted(), "the order stays");
        assert_eq!(physical.gather(&spread), values);
        let Mask::Sparse { kept, .. } = physical.whole() else { panic!("it is larger") };
        assert_eq!(kept.len(), values.len());
    }
}
