//! One thread's work: the sum under a node of the tree, and the margins of a block of examples.

use std::ops::Range;
use std::sync::Arc;

use super::job::{Derivative, Job};
use super::sums::{merge, slots};
use crate::backend::cpu::dense::LOGITS;
use crate::backend::cpu::floats::Floats;
use crate::backend::cpu::lane::Lane;
use crate::backend::cpu::physical::Physical;
use crate::backend::cpu::plan::Plan;
use crate::backend::cpu::tangents::{Along, Tangents};
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::backend::cpu::worker::Worker;
use crate::backend::reference::{self, Batch};
use crate::backend::task::Task;
use crate::backend::{EvaluationSet, Interrupt};
use crate::comm::{Leaves, Node};
use crate::data::{Dataset, Examples};
use crate::network::Network;
use crate::pruning::Mask;
use crate::settings::Convolutions;

/// Data that every thread reads: the network, its plans, the data set.
pub(super) struct Context<'a> {
    /// The study's network, and how many examples it trains on.
    pub task: Task,
    pub physical: Physical,
    /// The physical network.
    pub network: Arc<Network>,
    /// `whole` is the mask that removes no weight. `scored` is the plan of `whole` for scoring connections, always with direct convolutions;
    /// `trained` is the plan of `whole` for lanes, with the study's `convolutions`.
    pub whole: Arc<Mask>,
    pub scored: Arc<Plan>,
    pub trained: Arc<Plan>,
    pub convolutions: Convolutions,
    pub dataset: &'a Dataset,
    pub tables: Vec<[f32; 256]>,
    pub unit: VectorUnit,
    /// Asked after each leaf.
    pub interrupt: Option<Interrupt>,
}

/// Buffers of one thread.
pub(super) struct Seat {
    pub worker: Worker,
    /// Buffers for products with the Hessian; none before the first product.
    pub tangents: Option<Box<Tangents>>,
    /// Sums of leaves, laid out as the lane's plan says: each waits for its right-hand neighbour in the tree to be summed behind it.
    pub stack: Vec<Floats>,
    pub indices: Vec<u32>,
}

impl<'a> Context<'a> {
    /// The context of a network on a data set.
    pub(super) fn new(logical: Arc<Network>, dataset: &'a Dataset, unit: VectorUnit, convolutions: Convolutions) -> Context<'a> {
        let physical = Physical::new(&logical);
        let network = physical.network().clone();
        let whole = Arc::new(physical.whole());
        let plan = |convolutions: Convolutions| Arc::new(Plan::new(&network, &whole, true, convolutions));
        let scored = plan(Convolutions::Direct);
        let trained = if convolutions == Convolutions::Direct { scored.clone() } else { plan(convolutions) };
        let task = Task::new("cpu", logical, dataset.training.len());
        Context {
            task,
            physical,
            network,
            whole,
            scored,
            trained,
            convolutions,
            dataset,
            tables: dataset.lookup_table(),
            unit,
            interrupt: None,
        }
    }

    /// Whether to leave the rest of the work undone.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }

    /// The kept parameters' derivative, and the loss behind it, summed over the leaves under a node in the order of the tree.
    pub(super) fn node_sum(&self, seat: &mut Seat, job: &Job, version: u64, leaves: Leaves, node: Node, sum: &mut [f32]) {
        let Seat { worker, tangents, stack, indices } = seat;
        let length = job.length();
        let together = if let Derivative::Gradient = job.derivative {
            worker.prepare(job.plan, job.weights, version, true);
            worker.together(job.plan)
        } else {
            1
        };
        let under = leaves.under(node);
        // `waiting` counts the sums on the stack; `base` is the place there of the first sum of the leaves that are computed together.
        let (mut waiting, mut base) = (0, 0);
        let merge_two = |stack: &mut [Floats], waiting: &mut usize, base: usize| {
            // Where both sums are of leaves computed together, `gradient_together` has summed the gradients of fully connected weights already, and
            // only the other floats are added.
            if *waiting >= base + 2 {
                merge(self.unit, stack, waiting, job.plan.summed_by_leaf(length + 1));
            } else {
                merge(self.unit, stack, waiting, std::iter::once(0..length + 1));
            }
        };
        'groups: for start in under.clone().step_by(together) {
            let group = start..(start + together).min(under.end);
            base = waiting;
            if together > 1 {
                worker.begin();
                for leaf in group.clone() {
                    if self.interrupted() {
                        break 'groups;
                    }
                    select(job, leaves.examples(leaf), indices);
                    worker.add_leaf((job.plan, job.weights), &self.dataset.training, &self.tables, indices, true);
                }
                let target = &mut slots(stack, base + 1, length + 1)[base][..length];
                worker.gradient_together(job.plan, job.weights, job.temperature, target);
            }
            for leaf in group {
                if self.interrupted() {
                    break 'groups;
                }
                let target = &mut slots(stack, waiting + 1, length + 1)[waiting][..=length];
                let (gradient, loss) = target.split_at_mut(length);
                if let Derivative::Gradient = job.derivative {
                    job.plan.clear(gradient);
                }
                if together > 1 {
                    loss[0] = worker.leaf_gradient(job.plan, job.weights, leaf - start, gradient);
                } else {
                    select(job, leaves.examples(leaf), indices);
                    loss[0] = self.leaf(worker, tangents, job, version, indices, gradient);
                }
                waiting += 1;
                for _ in 0..(leaf + 1 - under.start).trailing_zeros() {
                    merge_two(stack, &mut waiting, base);
                }
            }
        }
        while waiting > 1 {
            merge_two(stack, &mut waiting, base);
        }
        let most = length.max(self.network.parameters() + LOGITS);
        if let [total, scratch] = slots(stack, 2, most + 1) {
            match job.derivative {
                Derivative::Gradient => job.plan.collect(self.unit, &self.network, job.mask, &total[..length], scratch, sum),
                Derivative::HessianProduct(_) | Derivative::ReferenceProduct { .. } => sum[..length].copy_from_slice(&total[..length]),
            }
            sum[job.mask.kept()] = total[length];
        }
    }

    /// One leaf's derivative, which adds to what [`Plan::clear`] has left, and its loss.
    fn leaf(
        &self,
        worker: &mut Worker,
        tangents: &mut Option<Box<Tangents>>,
        job: &Job,
        version: u64,
        indices: &[u32],
        derivative: &mut [f32],
    ) -> f32 {
        worker.gather(&self.dataset.training, &self.tables, indices);
        match job.derivative {
            Derivative::Gradient => worker.gradient(job.plan, job.weights, job.temperature, derivative, indices.len()),
            Derivative::HessianProduct(vector) => {
                derivative.fill(0.0);
                let tangents = tangents.get_or_insert_with(|| Box::new(Tangents::new(self.network.clone(), self.unit)));
                let along = Along { weights: job.weights, vector, temperature: job.temperature };
                tangents.prepare(&along, version);
                let (images, labels) = worker.gathered(indices.len());
                tangents.add_product(images, labels, &along, derivative)
            }
            Derivative::ReferenceProduct { weights, vector } => {
                let examples = self.dataset.training.gather(indices);
                let images = reference::normalised(&examples, &self.tables);
                let batch = Batch { images: &images, labels: &examples.labels };
                let (product, loss) = reference::hessian_product(&self.task.network, weights, vector, job.temperature, batch);
                derivative.copy_from_slice(&product);
                loss
            }
        }
    }

    pub(super) fn examples(&self, set: EvaluationSet) -> &Examples {
        match set {
            EvaluationSet::Validation => &self.dataset.validation,
            EvaluationSet::Test => &self.dataset.test,
        }
    }

    pub(super) fn margins(&self, seat: &mut Seat, lane: &Lane, version: u64, set: EvaluationSet, examples: &[u32], margins: &mut [f32]) {
        let worker = &mut seat.worker;
        let weights = lane.evaluated();
        worker.prepare(&lane.plan, weights, version, false);
        let (capacity, examples_of, together) = (worker.capacity(), self.examples(set), worker.together(&lane.plan));
        for (examples, margins) in examples.chunks(capacity * together).zip(margins.chunks_mut(capacity * together)) {
            if together > 1 {
                worker.begin();
                for leaf in examples.chunks(capacity) {
                    worker.add_leaf((&lane.plan, weights), examples_of, &self.tables, leaf, false);
                }
                worker.margins_together(&lane.plan, weights, margins);
            } else {
                worker.gather(examples_of, &self.tables, examples);
                worker.margins(&lane.plan, weights, margins);
            }
        }
    }
}

/// The training examples at some places of a batch.
fn select(job: &Job, places: Range<usize>, indices: &mut Vec<u32>) {
    indices.resize(places.len(), 0);
    job.selection.fill(places.start, indices);
}
