//! `make bench`: how fast this machine trains and evaluates, beside what its arithmetic allows.

use std::sync::Arc;
use std::time::Instant;

use dps::backend::cpu::{CpuBackend, Level, peak_flop};
use dps::backend::{Backend, LaneStart, Set};
use dps::comm::Single;
use dps::config::{DataSplit, DatasetName, NetworkName, OptimizerName};
use dps::data::{Dataset, Examples, ImageShape};
use dps::network::{Network, initial_weights};
use dps::optimizer::{Rule, Schedule};
use dps::pruning::Mask;

fn main() {
    let peak = peak_flop(Level::best());
    println!("{} peak of one core: {:.0} GFLOP/s", Level::best().name(), peak / 1e9);
    for name in [NetworkName::SimpleCnn, NetworkName::Resnet8] {
        let network = Arc::new(Network::new(name));
        let map = network.maps[0];
        let shape = ImageShape { height: map.height, width: map.width, channels: map.channels };
        let examples = |n: usize| Examples {
            images: (0..n * shape.bytes()).map(|i| (i * 7 % 251) as u8).collect(),
            labels: (0..n).map(|i| (i % 10) as u8).collect(),
            shape,
        };
        let split = DataSplit { validation_fraction: 0.25, split_seed: 0 };
        let dataset = Dataset::new(DatasetName::Mnist, &examples(8000), examples(10), &split).expect("pixels that differ");
        for threads in [1, 2] {
            let mut backend = CpuBackend::new(network.clone(), &dataset, Level::best(), threads, &Single);
            for batch in [2, 16, 128, 1024] {
                let rule = Rule { optimizer: OptimizerName::Momentum, momentum: 0.9, schedule: Schedule::Constant { rate: 1e-4 } };
                let start = LaneStart {
                    seed: 1,
                    weights: initial_weights(&network, 1),
                    mask: Mask::Dense(network.parameters()),
                    rule,
                    state: None,
                };
                let mut lanes = backend.lanes(vec![start]).expect("a lane");
                let steps = (2048 / batch).max(1) as u32;
                let mut best = f64::INFINITY;
                let mut step = 0;
                for _ in 0..6 {
                    let clock = Instant::now();
                    backend.train(&mut lanes, step..step + steps, batch).expect("steps");
                    step += steps;
                    best = best.min(clock.elapsed().as_secs_f64());
                }
                let rate = f64::from(steps) * batch as f64 / best;
                println!(
                    "{name:<12} {threads} threads  batch {batch:>5}: {rate:>8.0} images/s, {:>3.0} % of peak",
                    100.0 * rate * network.training_flop() / peak / threads as f64
                );
                if batch == 1024 {
                    let clock = Instant::now();
                    backend.evaluate(&lanes, &[0], Set::Validation, None).expect("an evaluation");
                    let rate = 2000.0 / clock.elapsed().as_secs_f64();
                    println!(
                        "{name:<12} {threads} threads  evaluation : {rate:>8.0} images/s, {:>3.0} % of peak",
                        100.0 * rate * network.forward_flop() / peak / threads as f64
                    );
                }
            }
        }
    }
}
