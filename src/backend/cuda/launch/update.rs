//! The kernels of `kernels/update.cu`.

use super::{kernels, shared_structs};
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::config::OptimizerName;
use crate::optimizer::{Decay, Rule};

/// Most parts of a sum.
pub const MOST_PARTS: usize = 64;

/// The optimizers' numbers in `kernels/update.cu`.
pub const SGD: i32 = 0;
pub const MOMENTUM: i32 = 1;
pub const NESTEROV: i32 = 2;

shared_structs! {
    /// The parts of a gradient sum, in order: the level of each in the tree over the batch's leaves, and its place in the buffer. `leaves` is their
    /// number where they are single leaves, one after the other, and a power of two of them, for which the kernels have a shorter sum; else 0.
    pub struct Parts {
        pub count: i32,
        pub leaves: i32,
        pub level: [u8; MOST_PARTS],
        pub place: [u8; MOST_PARTS],
    }

    /// What a lane trains by; `decay` is the steps of a linear decay from `rate` to `end`, or 0.
    pub struct UpdateRule {
        pub rate: f64,
        pub end: f64,
        pub decay: f64,
        pub momentum: f32,
        pub optimizer: i32,
    }
}

impl Parts {
    /// Nodes of these levels at these places, in the order of the tree.
    pub fn new(nodes: impl Iterator<Item = (u32, usize)>) -> Parts {
        let mut parts = Parts { count: 0, leaves: 0, level: [0; MOST_PARTS], place: [0; MOST_PARTS] };
        for (at, (level, place)) in nodes.enumerate() {
            (parts.level[at], parts.place[at]) = (level as u8, place as u8);
            parts.count = at as i32 + 1;
        }
        let count = parts.count as usize;
        let single = (0..count).all(|at| parts.level[at] == 0 && usize::from(parts.place[at]) == at);
        parts.leaves = if single && count.is_power_of_two() { parts.count } else { 0 };
        parts
    }

    /// So many leaves, one after the other.
    pub fn leaves(count: usize) -> Parts {
        Parts::new((0..count).map(|place| (0, place)))
    }
}

impl UpdateRule {
    pub fn new(rule: &Rule) -> UpdateRule {
        let rate = rule.schedule.rate;
        let (end, decay) = match rule.schedule.decay {
            Decay::Constant => (rate, 0.0),
            Decay::Linear { end, steps } => (end, steps),
            Decay::Cosine { .. } | Decay::Step { .. } => unreachable!("`support::check_rule` refuses them"),
        };
        let optimizer = match rule.optimizer {
            OptimizerName::Sgd => SGD,
            OptimizerName::Momentum => MOMENTUM,
            OptimizerName::Nesterov => NESTEROV,
            OptimizerName::Adam | OptimizerName::AdamW => unreachable!("`support::check_rule` refuses them"),
        };
        UpdateRule { rate, end, decay, momentum: rule.momentum, optimizer }
    }
}

kernels! {
    /// One optimizer step of every lane.
    fn update(
        parameters: i32,
        batch: i32,
        packed: i32,
        parts: Parts,
        lane_stride: i64,
        part_stride: i64,
        loss_at: i32,
        pitch: i32,
        rules: ConstPointer<'_, UpdateRule>,
        kept: Option<ConstPointer<'_, i32>>,
        kept_count: ConstPointer<'_, i32>,
        most: i32,
        sums: ConstPointer<'_, f32>,
        weights: MutPointer<'_, f32>,
        velocity: MutPointer<'_, f32>,
        losses: MutPointer<'_, f32>,
        broken: MutPointer<'_, i32>,
        clock: MutPointer<'_, u32>
    )[lanes: usize] = ["update"][0];
    blocks: [(most as usize).div_ceil(256), 1, lanes];
    threads: 256;

    /// Begins a step.
    fn clock_step(clock: MutPointer<'_, u32>)[] = ["clock_step"][0];
    blocks: [1, 1, 1];
    threads: 32;

    /// The sums over some of a lane's places, kept entries and the loss alone.
    fn pack(
        parameters: i32,
        first: i32,
        parts: Parts,
        lane_stride: i64,
        pitch: i32,
        kept: Option<ConstPointer<'_, i32>>,
        kept_count: Option<ConstPointer<'_, i32>>,
        most: i32,
        packed_pitch: i32,
        sums: ConstPointer<'_, f32>,
        to: MutPointer<'_, f32>
    )[lanes: usize] = ["pack"][0];
    blocks: [(packed_pitch as usize).div_ceil(256), 1, lanes];
    threads: 256;

    /// The sum of the squares of each place's kept gradients.
    fn squares(
        places: i32,
        pitch: i32,
        kept: Option<ConstPointer<'_, i32>>,
        count: i32,
        sums: ConstPointer<'_, f32>,
        to: MutPointer<'_, f64>
    )[] = ["squares"][0];
    blocks: [places as usize, 1, 1];
    threads: 256;

    /// Copies the state of some lanes to the first places.
    fn retain(
        pitch: i32,
        from: ConstPointer<'_, i32>,
        old: ConstPointer<'_, f32>,
        kept: MutPointer<'_, f32>
    )[lanes: usize] = ["retain"][0];
    blocks: [(pitch as usize).div_ceil(256), 1, lanes];
    threads: 256;
}
