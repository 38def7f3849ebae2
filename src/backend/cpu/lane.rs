//! One trial's state on the CPU, and its optimizer step.

use std::sync::Arc;

use super::physical::Physical;
use super::plan::Plan;
use super::simd::{Kernel, Simd};
use crate::backend::task::Task;
use crate::backend::{LaneStart, LaneState, Progress};
use crate::data::Sampler;
use crate::optimizer::{OptimizerName, Rule};
use crate::pruning::Mask;

/// A lane: weights, velocities, mask and data order, all of the physical network ([`Physical`]).
pub struct Lane {
    /// Network and training set of the lane.
    pub(super) task: Task,
    pub(super) weights: Vec<f32>,
    /// The kept weights alone, which steps update; empty where all are kept.
    trained: Vec<f32>,
    /// The averaged weights, which are evaluated; empty where the weights themselves are.
    average: Vec<f32>,
    /// [`LaneState::velocity`] of the kept parameters.
    velocity: Vec<f32>,
    /// [`LaneState::squares`] of the kept parameters.
    squares: Vec<f32>,
    pub(super) mask: Mask,
    /// The mask of the logical network, where that is another one.
    logical: Option<Mask>,
    /// Kernels of each layer, which compute what the mask leaves.
    pub(super) plan: Arc<Plan>,
    pub(super) sampler: Sampler,
    rule: Rule,
    pub(super) progress: Progress,
}

impl Lane {
    /// A lane of `start`, whose mask is `mask` in the physical network.
    pub(super) fn new(task: Task, plan: Arc<Plan>, physical: &Physical, mask: Mask, start: LaneStart) -> Lane {
        let LaneStart { seed, weights, mask: logical, rule, state } = start;
        let mut weights = physical.spread(&weights).into_owned();
        mask.apply(&mut weights);
        let numbers = rule.optimizer.kept_numbers();
        let zeros = |needed: bool| if needed { vec![0.0; mask.kept()] } else { Vec::new() };
        let (mut velocity, mut squares) = (zeros(numbers > 0), zeros(numbers > 1));
        let mut average = if rule.average_decay.is_some() { weights.clone() } else { Vec::new() };
        let mut progress = Progress { loss: f32::NAN, broken: None };
        let of_kept = |mask: &Mask, values: &[f32]| match mask {
            Mask::Sparse { kept, .. } if !values.is_empty() => kept.iter().map(|&index| values[index as usize]).collect(),
            _ => values.to_vec(),
        };
        if let Some(state) = state {
            weights = physical.spread(&state.weights).into_owned();
            (velocity, squares) = (of_kept(&logical, &state.velocity), of_kept(&logical, &state.squares));
            if !average.is_empty() {
                average = physical.spread(&state.average).into_owned();
            }
            progress = Progress { loss: state.loss, broken: state.broken };
        }
        let trained = if let Mask::Sparse { .. } = mask { of_kept(&mask, &weights) } else { Vec::new() };
        let logical = (!physical.is_logical()).then_some(logical);
        Lane {
            sampler: Sampler::new(seed, task.examples()),
            task,
            weights,
            trained,
            average,
            velocity,
            squares,
            mask,
            logical,
            plan,
            rule,
            progress,
        }
    }

    pub(super) fn state(&self, physical: &Physical) -> LaneState {
        let Progress { loss, broken } = self.progress;
        let of_all = |of_kept: &Vec<f32>| match self.logical.as_ref().unwrap_or(&self.mask) {
            Mask::Sparse { kept, parameters } if !of_kept.is_empty() => {
                let mut all = vec![0.0; *parameters];
                kept.iter().zip(of_kept).for_each(|(&index, &value)| all[index as usize] = value);
                all
            }
            _ => of_kept.clone(),
        };
        let weights = physical.gather(&self.weights).into_owned();
        let average = if self.average.is_empty() { Vec::new() } else { physical.gather(&self.average).into_owned() };
        LaneState { weights, average, velocity: of_all(&self.velocity), squares: of_all(&self.squares), loss, broken }
    }

    /// The weights that evaluations are of.
    pub(super) fn evaluated(&self) -> &[f32] {
        if self.average.is_empty() { &self.weights } else { &self.average }
    }

    /// One step by the kept parameters' gradient, summed over `batch` examples, with the summed loss behind it: at most `pieces` updates, at least
    /// one, which can run on a thread each. A loss that is not a number, or infinite, breaks the lane instead.
    pub(super) fn step<'a>(&'a mut self, step: u32, batch: usize, gradient: &'a [f32], pieces: usize) -> Vec<Update<'a>> {
        let loss = gradient[self.mask.kept()] / batch as f32;
        self.progress.loss = loss;
        if !loss.is_finite() {
            self.progress.broken = Some(step);
            return Vec::new();
        }
        let Lane { weights, trained, average, velocity, squares, mask, rule, .. } = self;
        let count = mask.kept();
        let kept = if let Mask::Sparse { kept, .. } = mask { Some(&kept[..]) } else { None };
        let gradient = &gradient[..count];
        let whole = Update { rule, step, batch: batch as f32, kept, first: 0, weights, trained, average, velocity, squares, gradient };
        whole.pieces(piece_length(count, pieces))
    }
}

/// Parameters whose addition or update is worth another thread: a whole number of cache lines.
const LEAST_PIECE: usize = 8_192;

/// The length of the pieces into which `count` parameters are cut for so many threads, at least one.
pub(super) fn piece_length(count: usize, threads: usize) -> usize {
    count.div_ceil(threads).max(LEAST_PIECE)
}

/// A step of some of a lane's kept parameters, one after the other.
pub(super) struct Update<'a> {
    rule: &'a Rule,
    step: u32,
    /// Examples of the batch.
    batch: f32,
    /// The kept parameters' places in the network; none where all are kept.
    kept: Option<&'a [u32]>,
    /// The place in the network of the first of `weights`.
    first: usize,
    /// The network's weights from the first kept parameter to the last; as many of `average`, where there is one.
    weights: &'a mut [f32],
    /// The kept parameters' weights alone; empty where all are kept.
    trained: &'a mut [f32],
    average: &'a mut [f32],
    velocity: &'a mut [f32],
    squares: &'a mut [f32],
    /// The summed gradient of the kept parameters.
    gradient: &'a [f32],
}

impl<'a> Update<'a> {
    /// Cuts the update into updates of `length` parameters each, at least one; the last has what is left.
    fn pieces(self, length: usize) -> Vec<Update<'a>> {
        let mut pieces = Vec::with_capacity(self.gradient.len() / length + 1);
        let mut rest = self;
        while rest.gradient.len() > length {
            let piece;
            [piece, rest] = rest.cut(length);
            pieces.push(piece);
        }
        pieces.push(rest);
        pieces
    }

    /// The update of the first `count` parameters, fewer than all, and that of the others.
    fn cut(self, count: usize) -> [Update<'a>; 2] {
        /// The slices before a place and from it on; both are empty where the whole is.
        fn halves<T>(all: &mut [T], place: usize) -> [&mut [T]; 2] {
            all.split_at_mut(place.min(all.len())).into()
        }
        let place = self.kept.map_or(count, |kept| kept[count] as usize - self.first);
        let [weights, weights_behind] = halves(self.weights, place);
        let [average, average_behind] = halves(self.average, place);
        let [trained, trained_behind] = halves(self.trained, count);
        let [velocity, velocity_behind] = halves(self.velocity, count);
        let [squares, squares_behind] = halves(self.squares, count);
        let (gradient, gradient_behind) = self.gradient.split_at(count);
        let behind = Update {
            kept: self.kept.map(|kept| &kept[count..]),
            first: self.first + place,
            weights: weights_behind,
            trained: trained_behind,
            average: average_behind,
            velocity: velocity_behind,
            squares: squares_behind,
            gradient: gradient_behind,
            ..self
        };
        let kept = self.kept.map(|kept| &kept[..count]);
        [Update { kept, weights, trained, average, velocity, squares, gradient, ..self }, behind]
    }
}

impl Kernel for Update<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Update { rule, step, batch, kept, first, weights, trained, average, velocity, squares, gradient } = self;
        let values = if kept.is_some() { &mut *trained } else { &mut *weights };
        let gradient = &gradient[..values.len()];
        let state = State { weights: values, velocity, squares };
        // Where the divisor is a power of two, multiplying by its reciprocal gives the same bits in a fraction of the time.
        if (batch as u32).is_power_of_two() {
            decayed(rule, step, state, |index| gradient[index] * (1.0 / batch));
        } else {
            decayed(rule, step, state, |index| gradient[index] / batch);
        }
        let trained = kept.map(|kept| kept.iter().map(|&index| index as usize - first).zip(trained.iter()));
        if let Some(trained) = trained.clone() {
            trained.for_each(|(place, &value)| weights[place] = value);
        }
        if let Some(share) = rule.share_of_average() {
            match trained {
                None => average.iter_mut().zip(weights.iter()).for_each(|(a, &w)| Rule::average(share, a, w)),
                Some(trained) => trained.for_each(|(place, &w)| Rule::average(share, &mut average[place], w)),
            }
        }
    }
}

/// The numbers of the kept parameters that a step changes; empty where the optimizer has no such numbers.
struct State<'a> {
    weights: &'a mut [f32],
    velocity: &'a mut [f32],
    squares: &'a mut [f32],
}

/// A step with the mean gradient of each parameter, to which the weight decay is added where there is one. Steps without decay have a loop of their
/// own, which does no more than they need.
#[inline(always)]
fn decayed(rule: &Rule, step: u32, state: State, gradient: impl Fn(usize) -> f32) {
    match rule.decay_of_gradient() {
        Some(decay) => update(rule, step, state, |index, w| gradient(index) + decay * w),
        None => update(rule, step, state, |index, _| gradient(index)),
    }
}

#[inline(always)]
fn update(rule: &Rule, step: u32, state: State, gradient: impl Fn(usize, f32) -> f32) {
    let State { weights, velocity, squares } = state;
    let (rate, momentum) = (rule.rate(step), rule.momentum);
    match rule.optimizer {
        OptimizerName::Sgd => weights.iter_mut().enumerate().for_each(|(index, w)| Rule::sgd(rate, w, gradient(index, *w))),
        OptimizerName::Momentum => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::momentum(rate, momentum, w, v, gradient(index, *w));
            }
        }
        OptimizerName::Nesterov => {
            for (index, (w, v)) in weights.iter_mut().zip(velocity).enumerate() {
                Rule::nesterov(rate, momentum, w, v, gradient(index, *w));
            }
        }
        OptimizerName::Adam | OptimizerName::AdamW => {
            let adam = rule.adam(step);
            for (index, ((w, a), s)) in weights.iter_mut().zip(velocity).zip(squares).enumerate() {
                adam.update(w, a, s, gradient(index, *w));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::vector_unit::VectorUnit;
    use crate::optimizer::Schedule;

    const PARAMETERS: usize = 200;

    /// A lane's numbers of each parameter, after an update in pieces of `length` parameters.
    fn updated(rule: &Rule, kept: Option<&[u32]>, length: usize) -> [Vec<f32>; 5] {
        let values = |seed: usize, count: usize| (0..count).map(|index| ((seed + index) as f32 * 0.7).sin().abs()).collect::<Vec<f32>>();
        let count = kept.map_or(PARAMETERS, <[u32]>::len);
        let numbers = |seed, needed| values(seed, if needed { count } else { 0 });
        let (mut weights, mut trained) = (values(1, PARAMETERS), numbers(2, kept.is_some()));
        let mut average = values(3, if rule.average_decay.is_some() { PARAMETERS } else { 0 });
        let kept_numbers = rule.optimizer.kept_numbers();
        let (mut velocity, mut squares) = (numbers(4, kept_numbers > 0), numbers(5, kept_numbers > 1));
        let whole = Update {
            rule,
            step: 3,
            batch: 6.0,
            kept,
            first: 0,
            weights: &mut weights,
            trained: &mut trained,
            average: &mut average,
            velocity: &mut velocity,
            squares: &mut squares,
            gradient: &values(6, count),
        };
        let pieces = whole.pieces(length);
        assert_eq!(pieces.len(), count.div_ceil(length).max(1));
        pieces.into_iter().for_each(|piece| VectorUnit::best().run(piece));
        [weights, trained, average, velocity, squares]
    }

    #[test]
    fn an_update_in_pieces_is_the_update() {
        let some: Vec<u32> = (0..PARAMETERS as u32).filter(|index| index % 7 < 3).collect();
        for optimizer in OptimizerName::ALL {
            for average_decay in [None, Some(0.9)] {
                let rule = Rule { momentum: 0.9, weight_decay: 0.01, average_decay, ..Rule::plain(optimizer, Schedule::constant(0.1)) };
                for kept in [None, Some(&some[..]), Some(&[5]), Some(&[])] {
                    let whole = updated(&rule, kept, PARAMETERS);
                    for length in [1, 16, 33, 86] {
                        assert_eq!(updated(&rule, kept, length), whole, "{optimizer:?}, {length}");
                    }
                }
            }
        }
    }
}
