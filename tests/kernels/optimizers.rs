//! Optimizers, weight decay, averaged weights and schedules, compared with PyTorch's (tests/fixtures); and what must hold of their
//! states: the same bits on every vector unit and after an interruption, and removed weights that stay removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::networks::PAPERS;
use crate::support::fixture::{self, Fixture};
use crate::support::inputs::{fixture_mask, of_batches};
use crate::support::noise;
use dps::backend::cpu::{CpuBackend, VectorUnit};
use dps::backend::{Backend, EvaluationSet, LaneStart, LaneState};
use dps::comm::Single;
use dps::data::{Dataset, Sampler};
use dps::network::{Network, NetworkName};
use dps::optimizer::{Decay, Metaparameter, Metaparameters, OptimizerName, Rule, Schedule, ScheduleName};
use dps::settings;
use serde_json::Value;

/// The seed of the lanes' data order.
const SEED: u64 = 5;

fn fixture() -> Value {
    let path = format!("{}/tests/fixtures/optimizers.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The metaparameters of an entry: its settings have their names.
fn metaparameters(entry: &Value) -> Metaparameters {
    let settings: BTreeMap<String, f64> = serde_json::from_value(entry["settings"].clone()).unwrap();
    let rate = (Metaparameter::LearningRate, entry["learning_rate"].as_f64().unwrap());
    settings.iter().map(|(name, &value)| (name.parse().unwrap(), value)).chain([rate]).collect()
}

/// The rule of a study with this optimizer.
fn rule(optimizer: OptimizerName, values: &Metaparameters) -> Rule {
    let path = format!("{}/configs/quickstart.toml", env!("CARGO_MANIFEST_DIR"));
    let study = settings::load(path.as_ref(), &[]).unwrap().study;
    Rule::new(optimizer, study.workload.schedule, values)
}

/// A network's fixture, and a training set in which a lane of [`SEED`] finds the images of `steps` batches one after the other.
struct Problem {
    fixture: Fixture,
    network: Arc<Network>,
    dataset: Dataset,
}

impl Problem {
    fn new(name: NetworkName, first_seed: u32, steps: usize, batch: usize) -> Problem {
        let fixture = Fixture::read(name.name());
        let mut dataset = of_batches(&fixture, (0..steps as u32).map(|step| first_seed + step), batch);
        let order = Sampler::new(SEED, (steps * batch) as u32);
        let mut places = vec![0; steps * batch];
        (0..steps * batch).for_each(|position| places[order.index(position as u64) as usize] = position as u32);
        dataset.training = dataset.training.gather(&places);
        Problem { network: Arc::new(Network::new(name)), fixture, dataset }
    }

    fn start(&self, rule: Rule, masked: bool) -> LaneStart {
        let mask = fixture_mask(masked, self.fixture.parameters);
        LaneStart { seed: SEED, weights: self.fixture.start(), mask, rule, state: None }
    }

    /// The loss of each step, the state after the last one, and the margins of all images there.
    fn train(&self, unit: VectorUnit, start: LaneStart, steps: std::ops::Range<u32>, batch: usize) -> (Vec<f32>, LaneState, Vec<f32>) {
        let mut backend = CpuBackend::new(self.network.clone(), &self.dataset, unit, 1, &Single);
        let mut lanes = backend.lanes(vec![start]).unwrap();
        let losses = steps.map(|step| backend.train(&mut lanes, step..step + 1, batch).unwrap()[0].loss).collect();
        let examples: Vec<u32> = (0..self.dataset.validation.len() as u32).collect();
        let margins = backend.margins(&lanes, &[0], EvaluationSet::Validation, &examples).unwrap();
        (losses, backend.state(&lanes, 0).unwrap(), margins)
    }
}

/// Checks losses of steps, before the update of each.
fn assert_losses(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (step, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 2e-5, "{what}: step {step}: {found} {expected}");
    }
}

/// Checks every `stride`-th parameter, from 0.
fn assert_parameters(what: &str, found: &[f32], stride: usize, expected: &[f64], tolerance: f64) {
    for (index, (&found, &expected)) in found.iter().step_by(stride).zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < tolerance, "{what}: parameter {}: {found} {expected}", index * stride);
    }
}

#[test]
fn ten_steps_of_the_papers_networks_and_optimizers_are_pytorchs() {
    for name in PAPERS {
        for trajectory in Fixture::read(name.name()).trajectories {
            let (steps, batch) = (trajectory.losses.len(), trajectory.batch_size);
            let problem = Problem::new(name, trajectory.first_image_seed, steps, batch);
            let rate = trajectory.learning_rate;
            let decay = match trajectory.schedule {
                fixture::Schedule::Constant => Decay::Constant,
                fixture::Schedule::Linear { decay_steps, end_factor } => {
                    Decay::Linear { end: end_factor * rate, steps: decay_steps as f64 }
                }
            };
            let optimizer: OptimizerName = trajectory.optimizer.parse().unwrap();
            let plain = Rule::plain(optimizer, Schedule { decay, ..Schedule::constant(rate) });
            let start = problem.start(Rule { momentum: trajectory.momentum as f32, ..plain }, trajectory.masked);
            let (losses, state, _) = problem.train(VectorUnit::best(), start, 0..steps as u32, batch);
            let what = format!("{name} {optimizer} masked {}", trajectory.masked);
            assert_losses(&what, &losses, &trajectory.losses);
            assert_parameters(&what, &state.weights, problem.fixture.sample_stride, &trajectory.r#final.samples, 5e-6);
        }
    }
}

#[test]
fn ten_steps_of_every_optimizer_are_pytorchs() {
    let fixture = fixture();
    let stride = fixture["sample_stride"].as_u64().unwrap() as usize;
    let mut tested = std::collections::BTreeSet::new();
    for entry in fixture["trajectories"].as_array().unwrap() {
        let (losses, batch) = (numbers(&entry["losses"]), entry["batch_size"].as_u64().unwrap() as usize);
        let problem = Problem::new(NetworkName::SimpleCnn, entry["first_image_seed"].as_u64().unwrap() as u32, losses.len(), batch);
        let optimizer: OptimizerName = entry["optimizer"].as_str().unwrap().parse().unwrap();
        let start = problem.start(rule(optimizer, &metaparameters(entry)), entry["masked"].as_bool().unwrap());
        let what = format!("{optimizer} {} masked {}", entry["settings"], entry["masked"]);
        let (found, state, margins) = problem.train(VectorUnit::best(), start.clone(), 0..losses.len() as u32, batch);
        assert_losses(&what, &found, &losses);
        // PyTorch's own float32 run may be at another side of a ReLU's kink.
        let tolerance = (3.0 * entry["float32"]["parameter"].as_f64().unwrap()).max(5e-6);
        assert_parameters(&what, &state.weights, stride, &numbers(&entry["final"]), tolerance);
        let averages = !entry["average"].is_null();
        assert_eq!(state.average.is_empty(), !averages, "{what}");
        if averages {
            assert_parameters(&what, &state.average, stride, &numbers(&entry["average"]), tolerance);
            // Evaluations are of the averaged weights.
            let averaged = LaneStart { weights: state.average.clone(), rule: rule(optimizer, &Metaparameters::default()), ..start };
            assert_eq!(problem.train(VectorUnit::best(), averaged, 0..0, batch).2, margins, "{what}");
        }
        tested.insert(optimizer.name());
    }
    assert!(OptimizerName::NAMES.iter().all(|name| tested.contains(name)), "{tested:?}");
}

#[test]
fn the_rates_of_every_schedule_are_pytorchs() {
    let mut tested = std::collections::BTreeSet::new();
    for entry in fixture()["schedules"].as_array().unwrap() {
        let name: ScheduleName = entry["schedule"].as_str().unwrap().parse().unwrap();
        let schedule = Schedule::new(name, &metaparameters(entry));
        for (step, &expected) in numbers(&entry["rates"]).iter().enumerate() {
            let found = schedule.at(step as u32);
            assert!((found / expected - 1.0).abs() < 1e-11, "{name} {}: step {step}: {found} {expected}", entry["settings"]);
        }
        tested.insert(name.name());
    }
    assert!(ScheduleName::NAMES.iter().all(|name| tested.contains(name)), "{tested:?}");
}

/// A trial of each optimizer with weight decay, averaged weights and a warm-up.
fn everything() -> Vec<Rule> {
    let values = Metaparameters::from([
        (Metaparameter::LearningRate, 0.01),
        (Metaparameter::Momentum, 0.9),
        (Metaparameter::WeightDecay, 0.01),
        (Metaparameter::AverageDecay, 0.7),
        (Metaparameter::WarmupSteps, 2.0),
    ]);
    OptimizerName::ALL.iter().map(|&optimizer| rule(optimizer, &values)).collect()
}

#[test]
fn every_vector_unit_gives_the_same_bits_and_removed_weights_stay_removed() {
    let problem = Problem::new(NetworkName::SimpleCnn, 100, 4, 3);
    for rule in everything() {
        for masked in [false, true] {
            let of = |unit: VectorUnit| problem.train(unit, problem.start(rule, masked), 0..4, 3);
            let expected = of(VectorUnit::best());
            for unit in VectorUnit::available().into_iter().filter(|unit| *unit != VectorUnit::best()) {
                assert!(of(unit) == expected, "{} on {}, masked {masked}", rule.optimizer, unit.name());
            }
            let (_, LaneState { weights, velocity, squares, average, .. }, _) = expected;
            let numbers = rule.optimizer.kept_numbers();
            assert_eq!([velocity.is_empty(), squares.is_empty(), average.is_empty()], [numbers < 1, numbers < 2, false]);
            assert_ne!(weights, average);
            let kept = noise::mask(weights.len());
            for values in [weights, velocity, squares, average].iter().filter(|values| masked && !values.is_empty()) {
                assert!(values.iter().zip(&kept).all(|(&value, &kept)| kept || value == 0.0), "{}", rule.optimizer);
            }
        }
    }
}

#[test]
fn a_lane_goes_on_from_its_state_as_if_it_had_not_stopped() {
    let problem = Problem::new(NetworkName::SimpleCnn, 100, 4, 12);
    for rule in everything() {
        for masked in [false, true] {
            let start = problem.start(rule, masked);
            let whole = problem.train(VectorUnit::best(), start.clone(), 0..4, 12);
            let (mut losses, half, _) = problem.train(VectorUnit::best(), start.clone(), 0..2, 12);
            let (later, state, margins) = problem.train(VectorUnit::best(), LaneStart { state: Some(half), ..start }, 2..4, 12);
            losses.extend(later);
            assert!((losses, state, margins) == whole, "{} masked {masked}", rule.optimizer);
        }
    }
}

/// A parameter whose gradient is always 0 stays where it is, however small ε is.
#[test]
fn without_a_gradient_adam_moves_nothing() {
    for epsilon in [f64::MIN_POSITIVE, 1e-60, 1e-8, f64::MAX] {
        let plain = Rule::plain(OptimizerName::Adam, Schedule::constant(0.1));
        let adam = Rule { epsilon, ..plain }.adam(0);
        let (mut w, mut a, mut s) = (0.25, 0.0, 0.0);
        adam.update(&mut w, &mut a, &mut s, 0.0);
        assert_eq!([w, a, s], [0.25, 0.0, 0.0], "{epsilon}");
    }
}
