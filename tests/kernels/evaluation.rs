//! Evaluations that end once they are decided: which examples they may leave out, and in which order they go through them.

use std::sync::Arc;

use crate::support::inputs::of_noise;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::{Backend, EVALUATION_BLOCK, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::data::{Dataset, ImageShape};
use dps::network::{Network, NetworkName, initial_weights};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::Mask;
use dps::training::{Evaluation, decide};

/// Validation examples; not a multiple of a block.
const COUNT: usize = 370;

fn dataset() -> Dataset {
    of_noise(ImageShape { height: 28, width: 28, channels: 1 }, 2 * COUNT, 0.5)
}

/// Expected result of an evaluation in that order, computed from the margins of the whole set. Notes the margins it has seen in `last`.
fn expected(order: &[u32], whole: &[f32], limit: u32, last: &mut [f32]) -> Evaluation {
    let mut found = Evaluation { errors: 0, examples: 0 };
    for block in order.chunks(EVALUATION_BLOCK) {
        if found.errors <= limit {
            for &example in block {
                last[example as usize] = whole[example as usize];
                found.errors += u32::from(whole[example as usize].is_sign_negative());
                found.examples += 1;
            }
        }
    }
    found
}

#[test]
fn what_was_nearest_to_wrong_is_looked_at_first_until_it_is_decided() {
    let (network, dataset) = (Arc::new(Network::new(NetworkName::SimpleCnn)), dataset());
    let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(0.001)) };
    let start = |seed| {
        let mask = Mask::Dense(network.parameters());
        LaneStart { seed, weights: initial_weights(&network, seed), mask, rule, state: None }
    };
    let all: Vec<u32> = (0..COUNT as u32).collect();
    let mut saved = 0;
    for (threads, limit) in [(1, 7), (3, 7), (1, 240), (3, 240), (2, 330), (1, COUNT as u32 - 1)] {
        let mut backend = CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), threads, &Single);
        let mut lanes = backend.lanes((0..3).map(start).collect()).unwrap();
        // Lanes in another order than they were made in.
        let which = [2, 0, 1];
        let (mut margins, mut last) = (vec![Vec::new(); 3], vec![vec![0.0_f32; COUNT]; 3]);
        for round in 0..3 {
            let whole = backend.margins(&lanes, &which, EvaluationSet::Validation, &all.repeat(3)).unwrap();
            let errors = backend.evaluate(&lanes, &which, EvaluationSet::Validation).unwrap();
            let found = decide(&mut backend, &lanes, &which, limit, &mut margins).unwrap();
            for lane in 0..3 {
                let whole = &whole[lane * COUNT..][..COUNT];
                let mut order = all.clone();
                order.sort_by(|&a, &b| last[lane][a as usize].total_cmp(&last[lane][b as usize]));
                assert_eq!(found[lane], expected(&order, whole, limit, &mut last[lane]), "limit {limit}, round {round}, lane {lane}");
                assert_eq!(found[lane].errors > limit, errors[lane] > limit);
                assert!(errors[lane] > limit || found[lane] == Evaluation { errors: errors[lane], examples: COUNT as u32 });
                assert!(margins[lane].iter().zip(&last[lane]).all(|(a, b)| a.to_bits() == b.to_bits()));
                let in_order = expected(&all, whole, limit, &mut [0.0; COUNT]);
                saved += i64::from(in_order.examples) - i64::from(found[lane].examples);
            }
            backend.train(&mut lanes, 2 * round..2 * round + 2, 5).unwrap();
        }
    }
    assert!(saved > 0, "{saved} examples");
}
