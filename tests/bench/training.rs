//! `make bench`: how fast this machine trains and evaluates, beside what its arithmetic allows, and what a mask saves.
//!
//! All cases of a table take turns, a slice of time each, so that whatever else the machine does hits all alike: rates are medians over the
//! rounds, ratios medians over the rounds' ratios, with the range of the middle half of the rounds.

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use dps::backend::cpu::{Cpu, CpuBackend, Lane, VectorUnit, peak_flop};
use dps::backend::{Backend, EvaluationSet, LaneStart};
use dps::comm::Single;
use dps::data::{DataSplit, Dataset, Examples, ImageShape};
use dps::network::{Epilogue, Layer, Network, NetworkName, initial_weights};
use dps::optimizer::{OptimizerName, Rule, Schedule};
use dps::pruning::{BiasPruning, connection_sensitivity, keep_highest};
use dps::settings::Convolutions;

/// How fast this machine trains and evaluates.
#[derive(Parser)]
struct Arguments {
    /// simple-cnn, resnet-8 or both.
    #[arg(long, value_delimiter = ',', default_values = ["simple-cnn", "resnet-8"])]
    network: Vec<NetworkName>,
    /// Training, evaluation or both.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["train", "evaluate"])]
    task: Vec<Kind>,
    /// Examples a step.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 16, 128, 1024])]
    batch: Vec<usize>,
    /// Threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Fractions of the parameters removed by connection sensitivity [default: 0,0.5,0.7,0.9,0.98, of ResNet-8 0,0.9,0.98]
    #[arg(long, value_delimiter = ',')]
    sparsity: Vec<f64>,
    /// Pruned networks by the kernels of dense ones too, which multiply removed weights like any other.
    #[arg(long)]
    unpruned: bool,
    /// Each network with execution.convolutions = "direct" too.
    #[arg(long)]
    direct: bool,
    /// Three rounds of short turns: to see that it works.
    #[arg(long)]
    quick: bool,
    /// Rounds in which every case has its turn.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of a turn.
    #[arg(long, default_value_t = 60)]
    turn: u64,
    /// One JSON object a line: network, task, batch, threads, sparsity, kernels, images_per_second, low, high, best.
    #[arg(long)]
    json: bool,
    /// Option that cargo adds to the command line of a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Kind of task to measure.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Kind {
    Train,
    Evaluate,
}

/// Task of a case.
#[derive(Clone, Copy, PartialEq)]
enum Task {
    /// Steps on batches of that many.
    Train(usize),
    /// Whole evaluations.
    Evaluate,
}

/// Which kernels compute a case.
#[derive(Clone, Copy, PartialEq)]
enum Kernels {
    /// The mask chooses them.
    Chosen,
    /// The kernels of a dense network, which multiply removed weights like any other.
    Dense,
    /// The mask chooses them with execution.convolutions = "direct".
    Direct,
}

/// One line of a table.
struct Case<'a> {
    task: Task,
    sparsity: f64,
    kernels: Kernels,
    backend: CpuBackend<'a>,
    lanes: Vec<Lane>,
    step: u32,
    /// Images a second, by round.
    rates: Vec<f64>,
}

impl Case<'_> {
    /// Images a second over at least `turn`.
    fn run(&mut self, turn: Duration) {
        let (clock, mut images) = (Instant::now(), 0);
        while images == 0 || clock.elapsed() < turn {
            images += match self.task {
                Task::Train(batch) => {
                    let steps = (64 / batch).max(1) as u32;
                    self.backend.train(&mut self.lanes, self.step..self.step + steps, batch).expect("steps");
                    self.step += steps;
                    steps as usize * batch
                }
                Task::Evaluate => {
                    self.backend.evaluate(&self.lanes, &[0], EvaluationSet::Validation).expect("an evaluation");
                    self.backend.examples(EvaluationSet::Validation)
                }
            };
        }
        self.rates.push(images as f64 / clock.elapsed().as_secs_f64());
    }
}

/// First quartile, median, third quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// Seconds of processors that all programs of this machine have taken, and that this one has. None where the system does not say.
fn processor_seconds() -> Option<[f64; 2]> {
    // Linux counts hundredths of a second, whatever the kernel's own clock is.
    let seconds =
        |fields: &[&str], counted: &[usize]| counted.iter().map(|&place| Some(fields.get(place)?.parse::<f64>().ok()? / 100.0)).sum();
    let (machine, own) = (fs::read_to_string("/proc/stat").ok()?, fs::read_to_string("/proc/self/stat").ok()?);
    // user, nice, system, idle, iowait, irq, softirq
    let machine: Option<f64> = seconds(&machine.lines().next()?.split_whitespace().skip(1).collect::<Vec<_>>(), &[0, 1, 2, 5, 6]);
    let own: Option<f64> = seconds(&own.rsplit_once(')')?.1.split_whitespace().collect::<Vec<_>>(), &[11, 12]);
    Some([machine?, own?])
}

fn main() {
    let (began, before) = (Instant::now(), processor_seconds());
    let mut arguments = Arguments::parse();
    if arguments.quick {
        (arguments.rounds, arguments.turn) = (3, 20);
    }
    let peak = peak_flop(VectorUnit::best());
    if !arguments.json {
        println!("{} peak of one core: {:.0} GFLOP/s", VectorUnit::best().name(), peak / 1e9);
    }
    for &name in &arguments.network {
        let network = Arc::new(Network::new(name));
        let dataset = dataset(&network);
        let weights = initial_weights(&network, 1);
        let sparsities = match (&arguments.sparsity[..], name) {
            ([], NetworkName::SimpleCnn) => vec![0.0, 0.5, 0.7, 0.9, 0.98],
            ([], NetworkName::Resnet8) => vec![0.0, 0.9, 0.98],
            (given, _) => given.to_vec(),
        };
        let scored = if sparsities.iter().any(|&sparsity| sparsity > 0.0) { 2000 } else { 1 };
        let (gradient, _) =
            CpuBackend::new(network.clone(), &dataset, VectorUnit::best(), 1, &Single).gradient(&weights, scored).expect("a gradient");
        let scores = connection_sensitivity(&weights, &gradient);
        for &threads in &arguments.threads {
            let batches = arguments.batch.iter().map(|&batch| Task::Train(batch));
            let mut tasks: Vec<Task> = batches.filter(|_| arguments.task.contains(&Kind::Train)).collect();
            tasks.extend(arguments.task.contains(&Kind::Evaluate).then_some(Task::Evaluate));
            for task in tasks {
                let case = |sparsity: f64, kernels: Kernels| {
                    let convolutions = if kernels == Kernels::Direct { Convolutions::Direct } else { Convolutions::Winograd };
                    let cpu = Cpu { unit: VectorUnit::best(), threads, convolutions };
                    let mut backend = CpuBackend::of(cpu, network.clone(), &dataset, &Single);
                    if kernels == Kernels::Dense {
                        backend = backend.computing_removed_weights();
                    }
                    let mask = keep_highest(&network, &scores, sparsity, BiasPruning::Prunable);
                    let rule = Rule { momentum: 0.9, ..Rule::plain(OptimizerName::Momentum, Schedule::constant(1e-4)) };
                    let start = LaneStart { seed: 1, weights: weights.clone(), mask, rule, state: None };
                    let lanes = backend.lanes(vec![start]).expect("a lane");
                    Case { task, sparsity, kernels, backend, lanes, step: 0, rates: Vec::new() }
                };
                let mut cases: Vec<Case> = sparsities.iter().map(|&sparsity| case(sparsity, Kernels::Chosen)).collect();
                let pruned = sparsities.iter().filter(|&&sparsity| arguments.unpruned && sparsity > 0.0);
                cases.extend(pruned.map(|&sparsity| case(sparsity, Kernels::Dense)));
                let direct = sparsities.iter().filter(|_| arguments.direct);
                cases.extend(direct.map(|&sparsity| case(sparsity, Kernels::Direct)));
                measure(&mut cases, arguments.rounds, Duration::from_millis(arguments.turn));
                for index in 0..cases.len() {
                    report(&arguments, (name, &network), threads, peak, &cases, index);
                }
            }
        }
    }
    if let (Some(before), Some(after), false) = (before, processor_seconds(), arguments.json) {
        let [machine, own] = [0, 1].map(|place| after[place] - before[place]);
        println!(
            "Other programs kept {:.2} cores of this machine busy meanwhile.",
            (machine - own).max(0.0) / began.elapsed().as_secs_f64()
        );
    }
}

fn measure(cases: &mut [Case], rounds: usize, turn: Duration) {
    // Buffers grow and caches fill in a round that does not count.
    cases.iter_mut().for_each(|case| case.run(Duration::ZERO));
    cases.iter_mut().for_each(|case| case.rates.clear());
    for _ in 0..rounds {
        cases.iter_mut().for_each(|case| case.run(turn));
    }
}

fn report(arguments: &Arguments, (name, network): (NetworkName, &Network), threads: usize, peak: f64, cases: &[Case], index: usize) {
    let case = &cases[index];
    let [low, rate, high] = quartiles(case.rates.clone());
    let kernels = match case.kernels {
        Kernels::Chosen => "chosen",
        Kernels::Dense => "dense",
        Kernels::Direct => "direct",
    };
    let (task, batch, flop, multiplied) = match case.task {
        Task::Train(batch) => ("train", batch, network.training_flop(), multiplied_flop(network)),
        Task::Evaluate => ("evaluate", 0, network.forward_flop(), network.forward_flop()),
    };
    if arguments.json {
        println!(
            "{}",
            serde_json::json!({"network": name.to_string(), "task": task, "batch": batch, "threads": threads, "sparsity": case.sparsity,
                "kernels": kernels, "images_per_second": rate, "low": low, "high": high, "best": case.rates.iter().copied().fold(0.0, f64::max)})
        );
    } else {
        let what = if batch == 0 { "evaluation ".to_string() } else { format!("batch {batch:>5}") };
        print!("{name:<10} {threads} threads  {what}  sparsity {:<4}  {kernels:<8} kernels  {rate:>8.0} images/s", case.sparsity);
        let share = |flop: f64| 100.0 * rate * flop / peak / threads as f64;
        print!(" ({low:.0}–{high:.0}), {:>3.0} % of peak, {:>3.0} % without dropped gradients", share(flop), share(multiplied));
        // The gain of the chosen kernels over direct ones; else the mask's.
        let (compared, what) = if case.kernels == Kernels::Direct {
            (cases.iter().find(|other| other.sparsity == case.sparsity).map(|chosen| (chosen, case)), "by chosen kernels")
        } else {
            (cases.first().filter(|dense| index > 0 && dense.sparsity == 0.0).map(|dense| (case, dense)), "sparsity 0")
        };
        if let Some((case, reference)) = compared {
            let ratios = case.rates.iter().zip(&reference.rates).map(|(rate, reference)| rate / reference);
            let [low, ratio, high] = quartiles(ratios.collect());
            print!(", {ratio:.2}× {what} ({low:.2}–{high:.2})");
        }
        println!();
    }
    std::io::stdout().flush().expect("standard output");
}

/// [`Network::training_flop`] without the products of gradients that a max-pool drops: three of four.
fn multiplied_flop(network: &Network) -> f64 {
    let dropped = network.layers.iter().map(|layer| match layer {
        Layer::Convolution(convolution) if matches!(convolution.epilogue, Epilogue::ReluMaxPool { .. }) => {
            let gradients = if convolution.producer.is_some() { 2.0 } else { 1.0 };
            0.75 * gradients * layer.forward_flop()
        }
        _ => 0.0,
    });
    network.training_flop() - dropped.sum::<f64>()
}

/// Images of blurred shapes on black, so that masks look like those of photographs: a class has its place, size and slant.
fn dataset(network: &Network) -> Dataset {
    let map = network.maps[0];
    let shape = ImageShape { height: map.height, width: map.width, channels: map.channels };
    let pixel = |i: usize| {
        let (image, pixel) = (i / shape.values(), i % shape.values() / shape.channels);
        let (y, x) = ((pixel / shape.width) as f64, (pixel % shape.width) as f64);
        let class = (image % 10) as f64;
        let noise = (image * 2_654_435_761 % 97) as f64 / 97.0;
        let (down, right) = (y - 9.0 - class * 0.8 - 4.0 * noise, x - 18.0 + class * 0.7 - 3.0 * noise);
        let (along, across) = (down + right * (class / 5.0 - 1.0), right - down * (class / 5.0 - 1.0));
        let value = 250.0 * (-(along / (5.0 + class)).powi(4) - (across / (3.0 + 9.0 * noise)).powi(2)).exp();
        let texture = 1.0 - 0.4 * ((x * (1.0 + class / 4.0)).sin() * (y * (1.5 - noise)).cos()).abs();
        (value * texture) as u8
    };
    // A few hundred different ones are enough, and quickly made.
    let images: Vec<u8> = (0..400 * shape.values()).map(pixel).collect();
    let examples = |n: usize| Examples {
        images: images.iter().copied().cycle().take(n * shape.values()).collect::<Vec<u8>>().into(),
        labels: (0..n).map(|i| (i % 10) as u16).collect(),
        shape,
    };
    let split = DataSplit { validation_fraction: 0.25, ..DataSplit::default() };
    Dataset::new("shapes", 10, examples(8000), examples(10), &split).expect("pixels that differ")
}
