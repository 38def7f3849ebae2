//! The kernels of `kernels/update.cu`.

use super::{ELEMENTWISE, blocks, kernels, shared_structs};
use crate::backend::cuda::gpu::Stored;
use crate::backend::cuda::pointer::{ConstPointer, MutPointer};
use crate::optimizer::{Adam, OptimizerName, Rule};

/// Most parts of a sum.
pub const MOST_PARTS: usize = 64;

/// The optimizers' numbers in `kernels/update.cu`.
pub const SGD: i32 = 0;
pub const MOMENTUM: i32 = 1;
pub const NESTEROV: i32 = 2;
pub const ADAM: i32 = 3;

shared_structs! {
    /// The parts of a gradient sum, in order: the level of each in the tree over the batch's leaves, and its place in the buffer. `leaves` is their
    /// number where they are single leaves, one after the other, and a power of two of them, for which the kernels have a shorter sum; else 0.
    pub struct Parts {
        pub count: i32,
        pub leaves: i32,
        pub level: [u8; MOST_PARTS],
        pub place: [u16; MOST_PARTS],
    }

    /// A lane's optimizer and metaparameters, the same at every step.
    pub struct UpdateRule {
        pub momentum: f32,
        pub optimizer: i32,
        /// The decay that is added to the gradient; 0 for none.
        pub weight_decay: f32,
        /// The share of averaged weights that a step's weights make up; 0 for none.
        pub share_of_average: f32,
        /// Adam's: the shares of its two averages that a step's gradient makes up.
        pub share_of_gradients: f32,
        pub share_of_squares: f32,
        pub epsilon: f32,
    }

    /// A lane's numbers at one step: the learning rate; for Adam, as [`Adam`] has these numbers.
    pub struct StepNumbers {
        pub rate: f32,
        pub scale: f32,
        pub shrink: f32,
    }
}

impl Parts {
    /// Nodes of these levels at these places, in the order of the tree.
    pub fn new(nodes: impl Iterator<Item = (u32, usize)>) -> Parts {
        let mut parts = Parts { count: 0, leaves: 0, level: [0; MOST_PARTS], place: [0; MOST_PARTS] };
        for (at, (level, place)) in nodes.enumerate() {
            (parts.level[at], parts.place[at]) = (level as u8, u16::try_from(place).expect("places that 16 bits count"));
            parts.count = at as i32 + 1;
        }
        let count = parts.count as usize;
        let single = (0..count).all(|at| parts.level[at] == 0 && usize::from(parts.place[at]) == at);
        parts.leaves = if single && count.is_power_of_two() { parts.count } else { 0 };
        parts
    }

    /// The parts of `count` leaves, one after the other.
    pub fn leaves(count: usize) -> Parts {
        Parts::new((0..count).map(|place| (0, place)))
    }
}

impl UpdateRule {
    pub fn new(rule: &Rule) -> UpdateRule {
        let optimizer = match rule.optimizer {
            OptimizerName::Sgd => SGD,
            OptimizerName::Momentum => MOMENTUM,
            OptimizerName::Nesterov => NESTEROV,
            OptimizerName::Adam | OptimizerName::AdamW => ADAM,
        };
        // These numbers do not depend on the step.
        let Adam { taken: [share_of_gradients, share_of_squares], epsilon, .. } = rule.adam(0);
        UpdateRule {
            momentum: rule.momentum,
            optimizer,
            weight_decay: rule.decay_of_gradient().unwrap_or(0.0),
            share_of_average: rule.share_of_average().unwrap_or(0.0),
            share_of_gradients,
            share_of_squares,
            epsilon,
        }
    }
}

impl StepNumbers {
    /// Numbers of a rule at a step, from 0: computed as on the CPU, so that they have the same bits.
    pub fn new(rule: &Rule, step: u32) -> StepNumbers {
        match rule.optimizer {
            OptimizerName::Adam | OptimizerName::AdamW => {
                let Adam { rate, scale, shrink, .. } = rule.adam(step);
                StepNumbers { rate, scale, shrink }
            }
            OptimizerName::Sgd | OptimizerName::Momentum | OptimizerName::Nesterov => {
                StepNumbers { rate: rule.rate(step), scale: 0.0, shrink: 0.0 }
            }
        }
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
        numbers: ConstPointer<'_, StepNumbers>,
        kept: Option<ConstPointer<'_, i32>>,
        kept_count: ConstPointer<'_, i32>,
        most: i32,
        sums: ConstPointer<'_, f32>,
        weights: MutPointer<'_, f32>,
        velocity: MutPointer<'_, f32>,
        squares: MutPointer<'_, f32>,
        average: MutPointer<'_, f32>,
        losses: MutPointer<'_, f32>,
        broken: MutPointer<'_, i32>,
        clock: MutPointer<'_, u32>
    )[lanes: usize] = ["update"][0];
    blocks: [(most as usize).div_ceil(256), 1, lanes];
    threads: 256;

    /// Writes weights as convolutions read them.
    fn store(count: i64, weights: ConstPointer<'_, f32>, to: MutPointer<'_, Stored>)[] = ["store"][0];
    blocks: [blocks(count as usize), 1, 1];
    threads: ELEMENTWISE;

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
