//! One thread's work: the sum under a node of the tree, and the margins of a block of examples.

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
use crate::backend::cpu::worker::{Worker, collect};
use crate::backend::reference::{self, Batch};
use crate::backend::{EvaluationSet, Interrupt};
use crate::comm::{Leaves, Node};
use crate::data::{Dataset, Examples};
use crate::network::Network;
use crate::pruning::Mask;

/// What every thread reads.
pub(super) struct Context<'a> {
    /// The network of the study.
    pub logical: Arc<Network>,
    pub physical: Physical,
    /// The physical network.
    pub network: Arc<Network>,
    /// The mask and the plan of weights that nothing was removed from.
    pub whole: Arc<Mask>,
    pub plan: Arc<Plan>,
    pub dataset: &'a Dataset,
    pub tables: Vec<[f32; 256]>,
    pub unit: VectorUnit,
    /// Asked after each leaf.
    pub interrupt: Option<Interrupt>,
}

/// What one thread works with.
pub(super) struct Seat {
    pub worker: Worker,
    /// For products with the Hessian; none before the first.
    pub tangents: Option<Box<Tangents>>,
    /// Sums of leaves, laid out as the lane's plan says: each waits for its right-hand neighbour in the tree to be summed behind it.
    pub stack: Vec<Floats>,
    pub indices: Vec<u32>,
}

impl<'a> Context<'a> {
    /// What threads need for a network on a dataset.
    pub(super) fn new(logical: Arc<Network>, dataset: &'a Dataset, unit: VectorUnit) -> Context<'a> {
        let physical = Physical::new(&logical);
        let network = physical.network().clone();
        let whole = Arc::new(physical.whole());
        let plan = Arc::new(Plan::new(&network, &whole, true));
        Context { logical, physical, network, whole, plan, dataset, tables: dataset.lookup_table(), unit, interrupt: None }
    }

    /// Whether to leave the rest of the work undone.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }

    /// The kept parameters' derivative, and the loss behind it, summed over the leaves under a node in the order of the tree.
    pub(super) fn node_sum(&self, seat: &mut Seat, job: &Job, version: u64, leaves: Leaves, node: Node, sum: &mut [f32]) {
        let Seat { worker, tangents, stack, indices } = seat;
        let length = job.length();
        if let Derivative::Gradient = job.derivative {
            worker.prepare(job.plan, job.weights, version, true);
        }
        let mut waiting = 0;
        for (done, leaf) in leaves.under(node).enumerate() {
            if self.interrupted() {
                break;
            }
            let examples = leaves.examples(leaf);
            indices.resize(examples.len(), 0);
            job.selection.fill(examples.start, indices);
            worker.gather(&self.dataset.training, &self.tables, indices);
            let target = &mut slots(stack, waiting + 1, length + 1)[waiting][..=length];
            let (gradient, loss) = target.split_at_mut(length);
            loss[0] = match job.derivative {
                Derivative::Gradient => {
                    job.plan.clear(gradient);
                    worker.gradient(job.plan, job.weights, job.temperature, gradient, examples.len())
                }
                Derivative::HessianProduct(vector) => {
                    gradient.fill(0.0);
                    let tangents = tangents.get_or_insert_with(|| Box::new(Tangents::new(self.network.clone(), self.unit)));
                    let along = Along { weights: job.weights, vector, temperature: job.temperature };
                    tangents.prepare(&along, version);
                    let (images, labels) = worker.gathered(examples.len());
                    tangents.add_product(images, labels, &along, gradient)
                }
                Derivative::ReferenceProduct { weights, vector } => {
                    let examples = self.dataset.training.gather(indices);
                    let images = reference::normalised(&examples, &self.tables);
                    let batch = Batch { images: &images, labels: &examples.labels };
                    let (product, loss) = reference::hessian_product(&self.logical, weights, vector, job.temperature, batch);
                    gradient.copy_from_slice(&product);
                    loss
                }
            };
            waiting += 1;
            for _ in 0..(done + 1).trailing_zeros() {
                merge(self.unit, stack, length, &mut waiting);
            }
        }
        while waiting > 1 {
            merge(self.unit, stack, length, &mut waiting);
        }
        let most = length.max(self.network.parameters() + LOGITS);
        if let [total, scratch] = slots(stack, 2, most + 1) {
            match job.derivative {
                Derivative::Gradient => collect(self.unit, &self.network, job.plan, job.mask, &total[..length], scratch, sum),
                Derivative::HessianProduct(_) | Derivative::ReferenceProduct { .. } => sum[..length].copy_from_slice(&total[..length]),
            }
            sum[job.mask.kept()] = total[length];
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
        let capacity = worker.capacity();
        for (examples, margins) in examples.chunks(capacity).zip(margins.chunks_mut(capacity)) {
            worker.gather(self.examples(set), &self.tables, examples);
            worker.margins(&lane.plan, weights, margins);
        }
    }
}
