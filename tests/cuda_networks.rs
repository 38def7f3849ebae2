//! Random networks, the built-in ones, many classes and images of floats on the GPU back end, against the CPU's. Without a GPU (or the stand-in of
//! tests/cuda-double) tests say that they are skipped; with DPS_NEED_CUDA=1 that is a failure. DPS_NETWORKS says how many random networks there are,
//! 8 without it, and DPS_FROM the first one's seed.
#![cfg(feature = "cuda")]

mod random_networks;
mod support;

use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::cuda::{self, Arithmetic};
use dps::backend::reference::{self, Batch};
use dps::backend::{Backend, Device, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::data::{Dataset, Examples, Pixels};
use dps::network::{Initialisation, LayerSpec, Network, NetworkName, Padding, Tensor};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::Mask;
use dps::settings::{Execution, Products};
use random_networks::{Case, Draws};
use support::gpu::{difference, number, open, some};

/// The largest difference that rounding explains, as a share of the largest entry.
const MOST: f32 = 2e-5;

/// How far a gradient by some products may be from that in 64 bits, over how far the plain reference's gradient in 32 bits is: all round otherwise,
/// and pairs of bfloat16 numbers, of 17 bits, round 128 times as far as floats, of 24.
fn times(products: Products) -> f32 {
    if products == Products::Pairs { 128.0 } else { 8.0 }
}

/// By how much more than [`MOST`] rounding explains of each tensor's gradient, and at last of the margins, at least 1: more where small changes of
/// numbers change these much, as where a normalised channel hardly varies, or its weights hardly change it, or logits are nearly equal.
fn excused(case: &Case, products: Products, weights: &[f32]) -> Vec<f32> {
    let (network, images) = (&case.network, case.images());
    let batch = Batch { images: &images, labels: case.labels() };
    let wide: Vec<f64> = weights.iter().map(|&weight| weight.into()).collect();
    let narrow = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect::<Vec<f32>>();
    let [found, exact] = [reference::gradient(network, weights, 1.0, batch).0, narrow(reference::gradient(network, &wide, 1.0, batch).0)];
    let of_tensor = |tensor: &Tensor| difference(&found[tensor.range()], &exact[tensor.range()]);
    let margin = |(image, &label): (&[f32], &u16)| {
        let logits = reference::logits(network, &wide, image);
        let others = logits.iter().enumerate().filter(|(class, _)| *class != usize::from(label)).map(|(_, logit)| *logit);
        logits[usize::from(label)] - others.fold(f64::NEG_INFINITY, f64::max)
    };
    let margins = narrow(images.chunks_exact(images.len() / case.labels().len()).zip(case.labels()).map(margin).collect());
    let of_margins = difference(&reference::margins(network, weights, batch), &margins);
    network.tensors.iter().map(of_tensor).chain([of_margins]).map(|off| (times(products) / MOST * off).max(1.0)).collect()
}

/// The largest difference of a tensor's gradient, or of the margins, as a share of the largest entry, and over what rounding explains beyond
/// [`MOST`]; after that of the loss is found small.
fn off(case: &Case, execution: &Execution, weights: &[f32]) -> Option<f32> {
    let cuda = open(execution)?;
    let (network, dataset) = (&case.network, &case.dataset);
    let mut gpu = cuda.backend(network, dataset, &Single).unwrap();
    let mut cpu = CpuBackend::new(network.clone(), dataset, VectorUnit::best(), 2, &Single);
    let examples = dataset.training.len();
    let (found, loss) = gpu.gradient(weights, examples).unwrap();
    let (expected, expected_loss) = cpu.gradient(weights, examples).unwrap();
    assert!((loss - expected_loss).abs() < 1e-5 * (1.0 + expected_loss), "{}: loss {loss}, expected {expected_loss}", case.name);
    let mut all: Vec<f32> = network.tensors.iter().map(|tensor| difference(&found[tensor.range()], &expected[tensor.range()])).collect();
    let rule = Rule::plain(OptimizerName::Sgd, Schedule::constant(0.1));
    let start = LaneStart { seed: 4, weights: weights.to_vec(), mask: Mask::Dense(network.parameters()), rule, state: None };
    let (gpu_lanes, cpu_lanes) = (gpu.lanes(vec![start.clone()]).unwrap(), cpu.lanes(vec![start]).unwrap());
    let list: Vec<u32> = (0..dataset.validation.len() as u32).collect();
    let found = gpu.margins(&gpu_lanes, &[0], EvaluationSet::Validation, &list).unwrap();
    all.push(difference(&found, &cpu.margins(&cpu_lanes, &[0], EvaluationSet::Validation, &list).unwrap()));
    if all.iter().any(|&off| off >= MOST) {
        all.iter_mut().zip(excused(case, execution.products, weights)).for_each(|(off, excused)| *off /= excused);
    }
    all.into_iter().max_by(f32::total_cmp)
}

/// Compares gradients, losses and margins. Where a ReLU or a maximum is decided by rounding, other weights must agree.
fn compare(case: &Case, execution: &Execution) {
    let Some(mut found) = off(case, execution, &case.weights) else { return };
    if (MOST..0.5).contains(&found) {
        println!("{}: off by {found}, as if rounding had decided; with other weights:", case.name);
        let mut draws = Draws::new(77);
        let weights: Vec<f32> = case.weights.iter().map(|weight| weight * (1.0 + 0.3 * draws.sign()) as f32).collect();
        found = off(case, execution, &weights).unwrap();
    }
    assert!(found < MOST, "{}: off by {found}", case.name);
}

fn products_of(seed: u64) -> Products {
    [Products::Fused, Products::Split, Products::Cublas, Products::Pairs][seed as usize % 4]
}

#[test]
fn random_networks_agree() {
    let from = number("DPS_FROM", 0);
    for seed in from..from + number("DPS_NETWORKS", 8) {
        let case = Case::new(seed, 1 + seed as usize * 7 % 20);
        println!("{}", case.name);
        compare(&case, &Execution { products: products_of(seed), ..Execution::default() });
    }
}

/// Numbers of terms that no power of two is: of a 1 × 1 convolution of 12, 20, 24 or 28 channels, and of a hidden dense layer of 20 inputs. Only from
/// the 120th row on could a tile show that some are not copied.
#[test]
fn any_number_of_terms_agrees() {
    let convolution = |channels| LayerSpec::convolution(channels, 1, 1, Padding::Valid);
    for (turn, channels) in [12, 20, 24, 28].into_iter().enumerate() {
        let layers = [convolution(channels), LayerSpec::Relu, convolution(20), LayerSpec::Relu, LayerSpec::GlobalMean, LayerSpec::dense(3)];
        for products in some(&[Products::Fused, Products::Split, Products::Pairs], turn) {
            compare(&Case::of_layers(&layers, [14, 14, 1], 3, 2), &Execution { products, ..Execution::default() });
        }
    }
    let layers = [LayerSpec::Flatten, LayerSpec::dense(20), LayerSpec::Relu, LayerSpec::dense(12), LayerSpec::Relu, LayerSpec::dense(3)];
    compare(&Case::of_layers(&layers, [3, 3, 1], 3, 130), &Execution::default());
}

/// Networks that tests/cuda.rs does not go through step by step.
#[test]
fn built_in_networks_agree() {
    for name in some(&[NetworkName::Lenet300x100, NetworkName::Lenet5Caffe, NetworkName::WideResnet16x2], 0) {
        compare(&Case::named(name, 2), &Execution::default());
    }
}

#[test]
fn any_number_of_classes_agrees() {
    for (turn, classes) in [2, 16, 17, 300].into_iter().enumerate() {
        for products in some(&[Products::Fused, Products::Cublas, Products::Pairs], turn) {
            compare(&Case::of_classes(classes, 6), &Execution { products, ..Execution::default() });
        }
    }
}

/// Instance, group and layer normalisation, with a ReLU and without, where cuBLAS multiplies and where it does not.
#[test]
fn normalised_groups_agree() {
    let initialisation = Initialisation::VarianceScaling;
    let convolution =
        |channels| LayerSpec::Convolution { channels, kernel: 3, stride: 1, padding: Padding::Same, initialisation, bias: false };
    let choices = [(18, Products::Fused), (6, Products::Cublas), (1, Products::Split), (2, Products::Pairs)];
    for (groups, products) in some(&choices, 0) {
        let norm = LayerSpec::GroupNorm { groups };
        let first = [convolution(18), LayerSpec::Relu, norm.clone(), convolution(18), norm, LayerSpec::Relu];
        let layers = [&first[..], &[convolution(4), LayerSpec::Flatten, LayerSpec::dense(3)]].concat();
        compare(&Case::of_layers(&layers, [9, 7, 2], 3, 20), &Execution { products, ..Execution::default() });
    }
}

/// Images of floats are what the table makes of bytes, so gradients are the same bits.
#[test]
fn images_of_floats_are_those_of_bytes() {
    let Some(cuda) = open(&Execution::default()) else { return };
    let case = Case::of_classes(10, 6);
    let bytes = &case.dataset;
    let images = case.images();
    let floats = |set: &Examples| Examples { images: Pixels::Floats(images.clone()), ..set.clone() };
    let floats = Dataset {
        training: floats(&bytes.training),
        validation: floats(&bytes.validation),
        test: floats(&bytes.test),
        digest: "floats".into(),
        ..bytes.clone()
    };
    let [found, expected] = [&floats, bytes].map(|dataset| {
        let mut gpu = cuda.backend(&case.network, dataset, &Single).unwrap();
        gpu.gradient(&case.weights, 6).unwrap()
    });
    assert!(expected.0.iter().any(|&entry| entry != 0.0));
    assert_eq!(found, expected);
}

/// The comparisons above went through all kinds of kernels, by the words for them.
#[test]
fn random_networks_use_every_kind_of_kernel() {
    let mut words: Vec<&str> = (0..8).flat_map(|seed| cuda::kernels(&Case::new(seed, 1).network)).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words, ["a thread a channel", "a warp an image", "plain loops", "tiles of sums"]);
}

/// Compiles what a machine with a GPU would compile first: the kernels of the networks that configurations name, and of the random networks above.
/// NVRTC's answers go into the cache of XDG_CACHE_HOME; their files are printed.
#[test]
#[ignore = "a tool of tests/gpu/build.sh, which needs no GPU"]
fn kernels_are_compiled_ahead() {
    use Arithmetic::{Pairs, Single, Split, Tf32};
    let built_in = [NetworkName::SimpleCnn, NetworkName::Resnet8].map(|name| (name.to_string(), Network::new(name)));
    let mut wanted = Vec::new();
    for (capability, ways) in [((9, 0), &[Single, Split, Pairs, Tf32][..]), ((8, 0), &[Single, Split, Pairs, Tf32]), ((7, 0), &[Single])] {
        wanted.extend(
            built_in.iter().flat_map(|(name, network)| ways.iter().map(move |&way| (name.clone(), network.clone(), way, capability))),
        );
    }
    wanted.extend((0..number("DPS_NETWORKS", 8)).map(|seed| {
        let way = match products_of(seed) {
            Products::Split => Split,
            Products::Pairs => Pairs,
            Products::Fused | Products::Cublas => Single,
        };
        (format!("seed {seed}"), (*Case::new(seed, 1).network).clone(), way, (9, 0))
    }));
    for (name, network, way, (major, minor)) in wanted {
        let file = cuda::compile_ahead(&network, way, (major, minor)).unwrap();
        println!("kept for compute capability {major}.{minor}, {name}, {way:?}: {file}");
    }
}
