//! SynFlow: flows and masks compared with PyTorch's (tests/fixtures), and masks kept in the journal.

use std::convert::Infallible;
use std::sync::Arc;

use crate::support::fixture::{Cut, Fixture};
use crate::support::inputs::{assert_cut, biases};
use crate::support::study::{Study, fail, succeed, train};
use dps::backend::reference;
use dps::journal::{Journal, Opened, Record, journal_path};
use dps::network::{LayerSpec, Network, NetworkName, initial_weights};
use dps::pruning::{BiasPruning, Mask, Synflow, Untrained, in_rounds, shuffled};
use dps::records::MaskRecord;
use dps::storage::Disk;
use serde::Deserialize;

#[derive(Deserialize)]
struct Flows {
    sample_stride: usize,
    #[serde(rename = "simple-cnn")]
    simple_cnn: Flow,
    #[serde(rename = "resnet-8")]
    resnet_8: Flow,
}

#[derive(Deserialize)]
struct Flow {
    flow: f64,
    samples: Vec<f64>,
    masks: Vec<Cut>,
}

fn mask(network: &Network, weights: &[f32], sparsity: f64, biases: BiasPruning) -> Mask {
    let start = Untrained { network, seed: 0, weights };
    let Ok(mask) = in_rounds(&Synflow, &start, sparsity, biases, |magnitudes| Ok::<_, Infallible>(reference::flow(network, magnitudes).0));
    mask
}

#[test]
fn flows_and_masks_are_pytorchs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/synflow.json");
    let Flows { sample_stride, simple_cnn, resnet_8 } = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (name, expected) in [(NetworkName::SimpleCnn, simple_cnn), (NetworkName::Resnet8, resnet_8)] {
        let (network, weights) = (Network::new(name), Fixture::read(name.name()).start());
        let magnitudes: Vec<f64> = weights.iter().map(|&weight| f64::from(weight.abs())).collect();
        let (gradient, flow) = reference::flow(&network, &magnitudes);
        assert!((flow / expected.flow - 1.0).abs() < 1e-12, "{name}: {flow}, expected {}", expected.flow);
        for (sample, expected) in expected.samples.iter().enumerate() {
            let index = sample * sample_stride;
            let score = magnitudes[index] * gradient[index];
            assert!((score / expected - 1.0).abs() < 1e-10, "{name}: score {index}: {score}, expected {expected}");
        }
        for cut in &expected.masks {
            assert_cut(cut, &mask(&network, &weights, cut.sparsity, biases(cut)), name.name());
        }
    }
}

/// A study keeps one mask of each seed and sparsity. A run that goes on with more cells makes those that are missing alone.
#[test]
fn the_journal_keeps_each_mask_once() {
    let changes = [
        ("batch_sizes = [2, 37]", "batch_sizes = [37]"),
        ("sparsities = [0, 0.9]", "sparsities = [0.9]"),
        ("max_steps = 40", "max_steps = 4"),
        ("trials = 5", "trials = 2"),
        ("examples = 100", "criterion = \"synflow\""),
    ];
    let study = Study::with_data(300, 30, &changes);
    let layers = [LayerSpec::Flatten, LayerSpec::dense(20), LayerSpec::Relu, LayerSpec::dense(10)];
    let network = Network::listed(&layers, [28, 28, 1], 10).unwrap();
    let list = "[{ layer = \"flatten\" }, { layer = \"dense\", outputs = 20 }, { layer = \"relu\" }, { layer = \"dense\", outputs = 10 }]";
    for shuffle in [false, true] {
        let output = format!("{shuffle}.h5");
        let command = |options: &[&str]| {
            let settings = [format!("workload.network={list}"), format!("pruning.shuffle={shuffle}")];
            let mut command = study.measuring(train(), &output, options);
            command.args(["--quiet", "--threads", "2"]).args(settings.iter().flat_map(|setting| ["--set", setting]));
            command
        };
        let journal = journal_path(&study.at(&output));
        let run = |options: &[&str]| {
            succeed(&mut command(options));
            Journal::read(&journal, &Disk).unwrap().unwrap()
        };
        let first = run(&[]);
        assert_eq!(first.masks.iter().map(|mask| (mask.seed, mask.sparsity)).collect::<Vec<_>>(), [(0, 0.9), (1, 0.9)]);
        for record in &first.masks {
            let weights = initial_weights(&network, record.seed);
            let made = mask(&network, &weights, 0.9, BiasPruning::Prunable);
            assert!(matches!(&made, Mask::Sparse { kept, .. } if *kept == record.kept));
            let used = if shuffle { shuffled(&network, &made, record.seed) } else { made };
            assert_eq!(first.finished[0].trials[record.seed as usize].mask_hash, used.hash());
        }
        let second = run(&["--batch-size", "37,20", "--sparsity", "0,0.9,0.5"]);
        let [old, new] = [&second.masks[..2], &second.masks[2..]];
        assert_eq!(old, first.masks);
        assert_eq!(new.iter().map(|mask| (mask.seed, mask.sparsity)).collect::<Vec<_>>(), [(0, 0.5), (1, 0.5)]);
        // A mask that is of no such network.
        let Opened { mut journal, .. } = Journal::open(&journal, &second.header, Arc::new(Disk)).unwrap();
        journal.append(&[Record::Mask(MaskRecord { seed: 1, sparsity: 0.9, kept: vec![5, 4_000_000] })]).unwrap();
        drop(journal);
        let stderr = fail(&mut command(&[]), 7);
        assert!(
            stderr.contains("expected kept parameters of trial 1 at sparsity 0.9 in ascending order and below 15910, found others"),
            "{stderr}"
        );
    }
}
