//! Shapes, refusals and what may change places.

use super::*;

fn convolution(channels: u32, kernel: u32, stride: u32, padding: Padding) -> LayerSpec {
    LayerSpec::convolution(channels, kernel, stride, padding)
}

fn problem(layers: &[LayerSpec], image: [usize; 3]) -> String {
    network(layers, image, 10).unwrap_err()
}

#[test]
fn shapes_follow_from_the_images() {
    use LayerSpec::{AveragePool, Flatten, GlobalMean, MaxPool, Relu};
    let layers = [
        convolution(6, 5, 2, Padding::Same),
        MaxPool { size: 3, stride: 2 },
        Relu,
        convolution(7, 3, 1, Padding::Valid),
        AveragePool { size: 2, stride: 1 },
        Flatten,
        LayerSpec::dense(20),
        Relu,
        LayerSpec::dense(10),
    ];
    let found = problem(&layers, [28, 31, 3]);
    assert!(found.starts_with("layer 1 (convolution): gets 28 × 31, where its stride needs other zeros"), "{found}");
    let network = Network::listed(&layers, [29, 29, 3], 10).unwrap();
    let shapes: Vec<_> = network.maps.iter().map(|map| [map.height, map.width, map.channels, map.before, map.after]).collect();
    assert_eq!(
        shapes,
        [[29, 29, 3, 2, 2], [15, 15, 6, 0, 0], [7, 7, 6, 0, 0], [5, 5, 7, 0, 0], [4, 4, 7, 0, 0], [1, 1, 20, 0, 0]],
        "the image first"
    );
    assert_eq!(network.parameters(), 5 * 5 * 3 * 6 + 6 + 3 * 3 * 6 * 7 + 7 + 112 * 20 + 20 + 20 * 10 + 10);
    // Without parameters before it nobody needs a gradient.
    let network = Network::listed(&[GlobalMean, LayerSpec::dense(10)], [4, 4, 3], 10).unwrap();
    assert_eq!(network.layers[1].producer(), None);
    assert_eq!(network.training_flop(), 2.0 * network.forward_flop());
}

#[test]
fn a_maximum_and_a_relu_can_change_places() {
    let one = |layers: &[LayerSpec]| {
        let mut list = vec![convolution(4, 3, 1, Padding::Valid)];
        list.extend_from_slice(layers);
        list.extend([LayerSpec::Flatten, LayerSpec::dense(10)]);
        Network::listed(&list, [8, 8, 1], 10).unwrap()
    };
    let pool = LayerSpec::MaxPool { size: 2, stride: 2 };
    let relu = LayerSpec::Relu;
    for network in [one(&[relu.clone(), pool.clone()]), one(&[pool.clone(), relu.clone()]), one(&[relu.clone(), pool, relu])] {
        assert!(matches!(&network.layers[0], Layer::Convolution(c) if matches!(c.epilogue, Epilogue::ReluMaxPool { .. })));
        assert_eq!(network.layers.len(), 2);
    }
}

#[test]
fn lists_that_do_not_fit_are_refused_in_words() {
    use LayerSpec::{Flatten, GlobalMean, MaxPool, Relu};
    let image = [8, 8, 3];
    let last = LayerSpec::dense(10);
    let norm = |groups| LayerSpec::GroupNorm { groups };
    let cases: [(&[LayerSpec], &str); 17] = [
        (&[], "expected a dense layer at the end, which makes the logits, found no layer"),
        (&[GlobalMean], "expected a dense layer at the end, which makes the logits, found \"global-mean\""),
        (
            std::slice::from_ref(&last),
            "layer 1 (dense): gets 8 × 8 × 3, needs 1 × 1 × inputs; put \"flatten\" or \"global-mean\" before it",
        ),
        (&[Flatten, LayerSpec::dense(9)], "layer 2 (dense): expected 10 outputs, one for each class, found 9"),
        (&[Flatten, Relu, last.clone()], "layer 1 (flatten): gets 8 × 8 × 3, needs a dense layer directly after it"),
        (&[convolution(4, 9, 1, Padding::Valid)], "layer 1 (convolution): gets 8 × 8 × 3, needs at least 9 × 9 for its kernel"),
        (&[MaxPool { size: 9, stride: 1 }], "layer 1 (max-pool): gets 8 × 8 × 3, needs at least 9 × 9 for one window"),
        (&[LayerSpec::residual(4, 1)], "layer 1 (residual): gets 8 × 8 × 3, needs a convolution or another residual block"),
        (
            &[convolution(4, 3, 1, Padding::Same), LayerSpec::residual(4, 3)],
            "layer 2 (residual): gets 8 × 8 × 4, needs sides that its stride 3 divides",
        ),
        (
            &[convolution(4, 3, 1, Padding::Same), LayerSpec::residual(4, 1), GlobalMean, last.clone()],
            "layer 2 (residual): gets 8 × 8 × 4, needs a relu or another residual block directly after it",
        ),
        (
            &[norm(1), Flatten, last.clone()],
            "layer 1 (group-norm): gets 8 × 8 × 3, needs a convolution before it; images are normalised already",
        ),
        (&[convolution(6, 3, 1, Padding::Same), norm(4)], "layer 2 (group-norm): gets 8 × 8 × 6, needs channels that its 4 groups divide"),
        (&[convolution(6, 8, 1, Padding::Valid), norm(6)], "layer 2 (group-norm): gets 1 × 1 × 6, needs at least 2 values in a group"),
        (
            &[convolution(6, 3, 1, Padding::Same), norm(3), LayerSpec::residual(6, 1)],
            "layer 3 (residual): gets 8 × 8 × 6, needs a convolution or another residual block directly before it",
        ),
        (
            &[convolution(6, 3, 1, Padding::Same), LayerSpec::residual(6, 1), norm(3)],
            "layer 2 (residual): gets 8 × 8 × 6, needs a relu or another residual block directly after it",
        ),
        (
            &[Flatten, LayerSpec::dense(100), Relu, GlobalMean],
            "layer 2 (dense): gets 1 × 1 × 192, needs another dense layer after it, or after its relu",
        ),
        (&[Flatten, LayerSpec::dense(4_000_000_000)], "layer 2 (dense): gets 1 × 1 × 192, needs at most 100000000 parameters"),
    ];
    for (layers, sentence) in cases {
        let found = problem(layers, image);
        assert!(found.starts_with(sentence), "{layers:?}: {found}");
    }
}
