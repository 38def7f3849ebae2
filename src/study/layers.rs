//! The table of a network's layers: what each writes, what it costs, and which kernels compute it.

use std::fmt::Write;

use crate::backend::cpu;
use crate::config::Study;
use crate::network::{DenseOutput, Epilogue, Layer, Network, PoolKind};
use crate::pruning::{Mask, keep_highest, random_scores};
use crate::readable::{aligned, count};

/// A line for each layer of a study's network: what it is, the map it writes, its parameters, the FLOP of an image's forward pass, and its
/// kernels on the CPU and on a GPU.
pub fn layer_table(study: &Study, network: &Network) -> String {
    let gpu = gpu_kernels(network);
    let mut heading = ["layer", "writes", "parameters", "FLOP an image", "kernels on the CPU"].map(str::to_owned).to_vec();
    heading.extend(gpu.as_ref().map(|_| "on a GPU".to_owned()));
    let row = |(index, (layer, kernels)): (usize, (&Layer, String))| {
        let parameters = parameters(layer);
        let mut row = vec![
            what(layer),
            written(network, layer),
            if parameters > 0 { count(parameters as u64) } else { "·".to_owned() },
            if layer.has_weights() { count(layer.forward_flop() as u64) } else { "·".to_owned() },
            kernels,
        ];
        row.extend(gpu.as_ref().map(|gpu| gpu[index].to_owned()));
        row
    };
    let rows = network.layers.iter().zip(cpu_kernels(study, network)).enumerate().map(row);
    aligned(&[heading].into_iter().chain(rows).collect::<Vec<_>>(), "")
}

/// The kernels of each layer on the CPU, dense; then, where a mask changes them, those at each of the study's sparsities from which on they are
/// others. A study's masks are not known before its scores, so random ones stand for them.
fn cpu_kernels(study: &Study, network: &Network) -> Vec<String> {
    let mut said = cpu::kernels(network, &Mask::Dense(network.parameters()));
    let mut words: Vec<String> = said.iter().map(|&kernels| kernels.to_owned()).collect();
    let scores = random_scores(network, 0);
    let mut sparsities = study.grid.sparsities.clone();
    sparsities.sort_unstable_by(f64::total_cmp);
    for sparsity in sparsities {
        let mask = keep_highest(network, &scores, sparsity, study.pruning.biases);
        for ((words, said), kernels) in words.iter_mut().zip(&mut said).zip(cpu::kernels(network, &mask)) {
            if *said != kernels {
                write!(words, "; at {sparsity} {kernels}").expect("a string can be written to");
                *said = kernels;
            }
        }
    }
    words
}

/// The kernels of each layer on a GPU; none where this program was built without CUDA.
fn gpu_kernels(network: &Network) -> Option<Vec<&'static str>> {
    #[cfg(feature = "cuda")]
    return Some(crate::backend::cuda::kernels(network));
    #[cfg(not(feature = "cuda"))]
    {
        let _ = network;
        None
    }
}

fn what(layer: &Layer) -> String {
    match layer {
        Layer::Convolution(layer) => {
            let then = match layer.epilogue {
                Epilogue::Linear { .. } => "",
                Epilogue::Relu { .. } => ", relu",
                Epilogue::ReluMaxPool { .. } => ", relu, max-pool 2 × 2",
                Epilogue::Stream { shortcut: None, .. } => ", relu beside it",
                Epilogue::Stream { shortcut: Some(_), .. } => ", shortcut, relu",
            };
            let stride = if layer.stride > 1 { format!(", stride {}", layer.stride) } else { String::new() };
            format!("convolution {0} × {0}{stride}{then}", layer.kernel)
        }
        Layer::Pool(layer) => {
            let kind = if layer.kind == PoolKind::Max { "max-pool" } else { "average-pool" };
            format!("{kind} {0} × {0}, stride {1}{2}", layer.size, layer.stride, if layer.relu { ", relu" } else { "" })
        }
        Layer::GlobalMean(_) => "global mean".to_owned(),
        Layer::Dense(layer) => format!("dense{}", if let DenseOutput::Hidden { relu: true, .. } = layer.output { ", relu" } else { "" }),
    }
}

fn written(network: &Network, layer: &Layer) -> String {
    layer.written().map_or_else(
        || format!("{} logits", network.classes),
        |slot| {
            let map = network.maps[slot];
            format!("{} × {} × {}", map.height, map.width, map.channels)
        },
    )
}

fn parameters(layer: &Layer) -> usize {
    layer.parameters().map_or(0, |ranges| ranges.iter().map(ExactSizeIterator::len).sum())
}
