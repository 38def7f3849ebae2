//! Which networks and optimizers the GPU's kernels know.

use super::check::refuse;
use crate::Result;
use crate::config::{NetworkName, OptimizerName};
use crate::network::{Convolution, Dense, DenseOutput, Epilogue, Layer, Map, Network};
use crate::optimizer::{Decay, Rule};

/// Why images that are no bytes are refused.
pub(super) const FLOATS: &str =
    "expected images as bytes, which the GPU's kernels read, found 32-bit floating point; use --device cpu, or save them as bytes";

/// Whether the kernels know every layer of a network.
pub fn supports(network: &Network) -> bool {
    check(network).is_ok()
}

/// Refuses a network with a layer that the kernels do not know: they know those of the paper's two networks.
pub(super) fn check(network: &Network) -> Result<()> {
    let known: Vec<Shape> = [NetworkName::SimpleCnn, NetworkName::Resnet8].map(Network::new).iter().flat_map(shapes).collect();
    let unknown = shapes(network).position(|shape| !known.contains(&shape));
    unknown.map_or(Ok(()), |index| {
        let layer = match &network.layers[index] {
            Layer::Convolution(Convolution { has_bias: false, .. }) => "convolution, without a bias",
            Layer::Dense(Dense { has_bias: false, .. }) => "dense layer, without a bias",
            Layer::Convolution(_) => "convolution",
            Layer::Pool(_) => "pool",
            Layer::GlobalMean(_) => "global mean",
            Layer::Dense(_) => "dense layer",
        };
        Err(refuse(format!(
            "expected a network of layers that the GPU's kernels know, those of simple-cnn and resnet-8, found another {layer}, number {} of the \
             network; use --device cpu",
            index + 1
        )))
    })
}

/// Refuses what the kernels do not know of a rule: they know the paper's optimizers and schedules.
///
/// # Errors
/// [`Error::Device`](crate::Error::Device), which names the first thing unknown.
pub fn check_rule(rule: &Rule) -> Result<()> {
    let is_known = matches!(rule.optimizer, OptimizerName::Sgd | OptimizerName::Momentum | OptimizerName::Nesterov);
    let falls_as_known = matches!(rule.schedule.decay, Decay::Constant | Decay::Linear { .. });
    let unknown = match () {
        () if !is_known => format!("the optimizer {}", rule.optimizer),
        () if !falls_as_known => "another schedule".to_owned(),
        () if rule.schedule.warmup_steps > 0 => "a warm-up".to_owned(),
        () if rule.weight_decay != 0.0 => "weight decay".to_owned(),
        () if rule.average_decay.is_some() => "averaged weights".to_owned(),
        () => return Ok(()),
    };
    Err(refuse(format!(
        "expected what the GPU's kernels know, the optimizers sgd, momentum and nesterov with the schedules constant and linear-decay, found \
         {unknown}; use --device cpu"
    )))
}

/// What a layer's kernels depend on.
#[derive(PartialEq)]
enum Shape {
    Convolution { kernel: usize, stride: usize, input: Map, output: Map, written: Map, epilogue: [Option<Map>; 2], is_pooled: bool },
    Mean { input: Map, output: Map },
    Dense { input: Map, outputs: usize, is_last: bool },
    Other,
}

fn shapes(network: &Network) -> impl Iterator<Item = Shape> {
    network.layers.iter().map(|layer| match layer {
        Layer::Pool(_) | Layer::Convolution(Convolution { has_bias: false, .. }) | Layer::Dense(Dense { has_bias: false, .. }) => {
            Shape::Other
        }
        Layer::Convolution(layer) => convolution(network, layer),
        Layer::GlobalMean(layer) => Shape::Mean { input: network.maps[layer.input], output: network.maps[layer.output] },
        Layer::Dense(Dense { input, outputs, output, .. }) => {
            Shape::Dense { input: network.maps[*input], outputs: *outputs, is_last: *output == DenseOutput::Logits }
        }
    })
}

fn convolution(network: &Network, layer: &Convolution) -> Shape {
    let written = network.maps[layer.epilogue.written()];
    let epilogue = match layer.epilogue {
        Epilogue::Linear { .. } => return Shape::Other,
        Epilogue::ReluMaxPool { .. } | Epilogue::Relu { .. } => [None, None],
        Epilogue::Stream { stream, shortcut, .. } => [Some(network.maps[stream]), shortcut.map(|slot| network.maps[slot])],
    };
    let is_pooled = matches!(layer.epilogue, Epilogue::ReluMaxPool { .. });
    let (kernel, stride, input, output) = (layer.kernel, layer.stride, layer.input_map, layer.output);
    Shape::Convolution { kernel, stride, input, output, written, epilogue, is_pooled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Initialisation, LayerSpec};
    use crate::optimizer::Schedule;

    #[test]
    fn networks_of_other_layers_are_refused_in_words() {
        for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
            assert!(check(&Network::new(name)).is_ok(), "{name}");
        }
        let found = check(&Network::new(NetworkName::Lenet5Caffe)).unwrap_err().to_string();
        assert!(found.contains("found another convolution, number 1 of the network; use --device cpu"), "{found}");
        let found = check(&Network::new(NetworkName::WideResnet16x2)).unwrap_err().to_string();
        assert!(found.contains("found another convolution, number 2"), "{found}");
        let mut layers = NetworkName::SimpleCnn.layers(10);
        layers.pop();
        layers.push(LayerSpec::Dense { outputs: 10, initialisation: Initialisation::He, bias: false });
        let found = check(&Network::listed(&layers, [28, 28, 1], 10).unwrap()).unwrap_err().to_string();
        assert!(found.contains("found another dense layer, without a bias, number 3 of the network"), "{found}");
    }

    #[test]
    fn rules_that_the_kernels_do_not_know_are_refused_in_words() {
        let schedule = Schedule::constant(0.1);
        let found = |rule: Rule| check_rule(&rule).err().map(|error| error.to_string()).unwrap_or_default();
        for &optimizer in OptimizerName::ALL {
            let rule = Rule::plain(optimizer, schedule);
            let is_known = optimizer.kept_numbers() < 2;
            assert_eq!(found(rule).contains(&format!("found the optimizer {optimizer}; use --device cpu")), !is_known, "{optimizer}");
            assert_eq!(check_rule(&rule).is_ok(), is_known, "{optimizer}");
        }
        let sgd = Rule::plain(OptimizerName::Sgd, schedule);
        let step = Decay::Step { factor: 0.5, every: 3 };
        for (rule, words) in [
            (Rule { weight_decay: 0.1, ..sgd }, "weight decay"),
            (Rule { average_decay: Some(0.9), ..sgd }, "averaged weights"),
            (Rule { schedule: Schedule { warmup_steps: 1, ..schedule }, ..sgd }, "a warm-up"),
            (Rule { schedule: Schedule { decay: step, ..schedule }, ..sgd }, "another schedule"),
        ] {
            assert!(found(rule).contains(&format!("found {words}; use --device cpu")), "{words}");
        }
    }
}
