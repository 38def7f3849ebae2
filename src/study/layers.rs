//! The table of a network's layers: what each writes, what it costs, and which kernels compute it.

use crate::backend::cpu;
use crate::network::{Layer, Network};
use crate::pruning::{keep_highest, random_scores};
use crate::readable::{aligned, count};
use crate::settings::Study;

/// Parameters of the largest network for which a plan draws masks: each takes several times their memory.
pub(super) const MOST_DRAWN: usize = 16_000_000;

/// A line for each layer of a study's network: what it is, the map it writes, its parameters, the FLOP of an image's forward pass, and its
/// kernels on a GPU and on the CPU; then a line for each sparsity at which it has other kernels on the CPU.
pub fn layer_table(study: &Study, network: &Network) -> String {
    let gpu = gpu_kernels(network);
    let mut heading = vec!["layer", "writes", "parameters", "FLOP an image"];
    heading.extend(gpu.as_ref().map(|_| "on a GPU"));
    heading.push("kernels on the CPU");
    let writes = |layer: &Layer| match layer.written().map(|slot| network.maps[slot]) {
        Some(map) => format!("{} × {} × {}", map.height, map.width, map.channels),
        None => format!("{} logits", network.classes),
    };
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (index, (layer, kernels)) in network.layers.iter().zip(cpu_kernels(study, network)).enumerate() {
        let parameters = parameters(layer);
        let mut row = vec![
            layer.to_string(),
            writes(layer),
            if parameters > 0 { count(parameters as u64) } else { "·".to_owned() },
            if parameters > 0 { count(layer.forward_flop() as u64) } else { "·".to_owned() },
        ];
        row.extend(gpu.as_ref().map(|gpu| gpu[index].to_owned()));
        for kernels in kernels {
            let columns = row.len();
            row.push(kernels);
            rows.push(std::mem::replace(&mut row, vec![String::new(); columns]));
        }
    }
    aligned(&rows, "")
}

/// The kernels of each layer on the CPU, dense; then, where a mask changes them, those at each of the study's sparsities from which on they are
/// others. A study's masks are not known before its scores, so random ones stand for them; of a large network none is drawn.
fn cpu_kernels(study: &Study, network: &Network) -> Vec<Vec<String>> {
    let convolutions = study.execution.convolutions;
    let dense = cpu::kernels(network, None, convolutions);
    if network.parameters() > MOST_DRAWN {
        return dense.into_iter().map(|kernels| vec![kernels.to_owned()]).collect();
    }
    let scores = random_scores(network, 0);
    let mut sparsities: Vec<f64> = study.grid.sparsities.iter().copied().filter(|&sparsity| sparsity > 0.0).collect();
    sparsities.sort_unstable_by(f64::total_cmp);
    let mask = |sparsity: f64| keep_highest(network, &scores, sparsity, study.pruning.biases);
    let masked: Vec<_> = sparsities.iter().map(|&sparsity| cpu::kernels(network, Some(&mask(sparsity)), convolutions)).collect();
    let of_layer = |layer: usize| {
        let mut last = dense[layer];
        let mut lines = vec![last.to_owned()];
        for (sparsity, kernels) in sparsities.iter().zip(&masked) {
            if kernels[layer] != last {
                last = kernels[layer];
                lines.push(format!("from sparsity {sparsity}: {last}"));
            }
        }
        lines
    };
    (0..network.layers.len()).map(of_layer).collect()
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

fn parameters(layer: &Layer) -> usize {
    layer.parameters().map_or(0, |ranges| ranges.iter().map(ExactSizeIterator::len).sum())
}
