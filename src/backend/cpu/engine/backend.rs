//! The CPU as a device and as a back end.

use std::ops::Range;
use std::sync::Arc;

use super::context::Context;
use super::job::Derivative;
use super::sums::JobSums;
use super::threads::Threads;
use crate::Result;
use crate::backend::cpu::lane::Lane;
use crate::backend::cpu::plan::Plan;
use crate::backend::cpu::tangents::Tangents;
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::backend::margin::{self, WORDS};
use crate::backend::{Backend, Device, EVALUATION_BLOCK, EvaluationSet, Interrupt, LaneStart, LaneState, Progress, Sharing, vote};
use crate::comm::{Communicator, Exchanged, Leaves};
use crate::data::Dataset;
use crate::network::Network;
use crate::pruning::Mask;
use crate::readable::some;
use crate::settings::Convolutions;

/// Lanes on the processor's cores.
pub struct CpuBackend<'a> {
    pub(super) threads: Threads<'a>,
    /// Threads of all ranks of the group, which need not have as many each.
    crew: usize,
    pub(super) communicator: &'a dyn Communicator,
    /// Whether lanes leave out what their masks remove.
    pruned_kernels: bool,
    /// Tells sets of weights apart, for `Worker::prepare`.
    version: u64,
    pub(super) sums: JobSums,
    pub(super) exchanged: Exchanged,
}

/// The processor's cores as a device.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    /// The vector unit.
    pub unit: VectorUnit,
    /// Threads of this rank.
    pub threads: usize,
    /// How the convolutions of trials are computed.
    pub convolutions: Convolutions,
}

/// A rank exchanges, adds up and steps by a whole gradient, of however few examples. With fewer than 16 examples a rank, ranks that take a trial each
/// are faster.
pub const SHARING: Sharing = Sharing { least: 16.0, each_peer: 0.0 };

impl Device for Cpu {
    type Backend<'a> = CpuBackend<'a>;

    fn backend<'a>(&'a self, network: &Arc<Network>, dataset: &'a Dataset, group: &'a dyn Communicator) -> Result<CpuBackend<'a>> {
        Ok(CpuBackend::of(*self, network.clone(), dataset, group))
    }

    fn sharing(&self, _: &Network) -> Sharing {
        SHARING
    }
}

impl<'a> CpuBackend<'a> {
    /// A back end of `threads` threads on this rank, at least one, with direct convolutions, by which connections are scored.
    pub fn new(
        network: Arc<Network>,
        dataset: &'a Dataset,
        unit: VectorUnit,
        threads: usize,
        communicator: &'a dyn Communicator,
    ) -> CpuBackend<'a> {
        CpuBackend::of(Cpu { unit, threads, convolutions: Convolutions::Direct }, network, dataset, communicator)
    }

    /// A back end with the kernels of a configuration.
    pub fn of(cpu: Cpu, network: Arc<Network>, dataset: &'a Dataset, communicator: &'a dyn Communicator) -> CpuBackend<'a> {
        let threads = Threads::new(Context::new(network, dataset, cpu.unit, cpu.convolutions), cpu.threads);
        CpuBackend {
            crew: communicator.all_gather_words(&[threads.count() as u64]).iter().sum::<u64>() as usize,
            threads,
            communicator,
            pruned_kernels: true,
            version: 0,
            sums: JobSums::default(),
            exchanged: Exchanged::default(),
        }
    }

    /// Makes lanes compute products with removed weights, too: masks then change weights and no kernel. Pruned kernels are compared with such lanes.
    pub fn computing_removed_weights(mut self) -> Self {
        self.pruned_kernels = false;
        self
    }

    pub(super) fn vote(&self) -> Result<()> {
        vote(self.threads.context.interrupt, self.communicator)
    }

    /// Reserves version numbers.
    pub(super) fn versions(&mut self, count: usize) -> u64 {
        self.version += count as u64;
        self.version - count as u64
    }
}

impl Backend for CpuBackend<'_> {
    type Lanes = Vec<Lane>;

    fn describe(&self) -> String {
        let threads = self.threads.count();
        format!("CPU, {}, {} a rank", self.threads.context.unit.name(), some(threads, "thread"))
    }

    fn listen(&mut self, interrupt: Option<Interrupt>) {
        self.threads.context.interrupt = interrupt;
    }

    fn lanes_that_fit(&self, _: &dyn Communicator) -> Option<u64> {
        None
    }

    fn gradient(&mut self, weights: &[f32], examples: usize) -> Result<(Vec<f32>, f32)> {
        self.threads.context.task.check_gradient(weights, examples)?;
        self.derivative(weights, 1.0, Derivative::Gradient, examples)
    }

    fn hessian_gradient(&mut self, weights: &[f32], temperature: f32, examples: usize) -> Result<Vec<f32>> {
        self.threads.context.task.check_gradient(weights, examples)?;
        let (gradient, _) = self.derivative(weights, temperature, Derivative::Gradient, examples)?;
        let vector = &gradient[..];
        let derivative = if Tangents::fits(&self.threads.context.network) && self.threads.context.physical.is_logical() {
            Derivative::HessianProduct(vector)
        } else {
            Derivative::ReferenceProduct { weights, vector }
        };
        let (product, _) = self.derivative(weights, temperature, derivative, examples)?;
        Ok(product)
    }

    fn squared_norms(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
        self.threads.context.task.check_gradient(weights, examples)?;
        self.threads.context.task.check_mask(mask)?;
        let weights = self.threads.context.physical.spread(weights);
        self.sum_of_squares(&weights, mask, examples)
    }

    fn lanes(&mut self, starts: Vec<LaneStart>) -> Result<Vec<Lane>> {
        let Context { task, physical, network, trained, convolutions, .. } = &self.threads.context;
        starts.iter().try_for_each(|start| task.check_start(start))?;
        let plan = |mask: &Mask, physical: &Mask| match mask {
            Mask::Sparse { .. } => Arc::new(Plan::new(network, physical, self.pruned_kernels, *convolutions)),
            Mask::Dense(_) => trained.clone(),
        };
        let lane = |start: LaneStart| {
            let mask = physical.mask(&start.mask);
            Lane::new(task.clone(), plan(&start.mask, &mask), physical, mask, start)
        };
        Ok(starts.into_iter().map(lane).collect())
    }

    fn state(&self, lanes: &Vec<Lane>, lane: usize) -> Result<LaneState> {
        let lane = &lanes[lane];
        self.threads.context.task.check_lanes(&lane.task)?;
        Ok(lane.state(&self.threads.context.physical))
    }

    fn retain(&mut self, lanes: &mut Vec<Lane>, keep: &[bool]) -> Result<()> {
        let mut keep = keep.iter();
        lanes.retain(|_| keep.next().is_none_or(|&keep| keep));
        Ok(())
    }

    fn train(&mut self, lanes: &mut Vec<Lane>, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>> {
        let task = &self.threads.context.task;
        task.check_steps(&steps, batch)?;
        lanes.iter().try_for_each(|lane| task.check_lanes(&lane.task))?;
        let leaves = Leaves::new(batch);
        let alone = self.threads.sharing(lanes.iter().map(|lane| lane.plan.work * batch as f64).fold(0.0, f64::max)) == 1;
        if self.communicator.size() == 1 && (alone || lanes.len() >= self.threads.count()) {
            self.train_apart(lanes, steps, leaves, batch)?;
        } else {
            for step in steps {
                self.train_together(lanes, step, leaves, batch)?;
            }
        }
        Ok(lanes.iter().map(|lane| lane.progress).collect())
    }

    fn examples(&self, set: EvaluationSet) -> usize {
        self.threads.context.examples(set).len()
    }

    fn stride(&self, lanes: usize) -> usize {
        self.crew.div_ceil(lanes) * EVALUATION_BLOCK
    }

    fn margins(&mut self, lanes: &Vec<Lane>, which: &[usize], set: EvaluationSet, examples: &[u32]) -> Result<Vec<f32>> {
        let task = &self.threads.context.task;
        task.check_evaluation(which, lanes.len(), examples, self.examples(set))?;
        which.iter().try_for_each(|&lane| task.check_lanes(&lanes[lane].task))?;
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        let version = self.versions(which.len());
        let length = (examples.len() / which.len().max(1)).max(1);
        let mut margins = vec![0.0; examples.len()];
        let lists = which.iter().zip(version..).zip(examples.chunks(length)).zip(margins.chunks_mut(length));
        let mut tasks: Vec<_> = lists
            .flat_map(|(((&lane, version), examples), margins)| {
                let blocks = examples.chunks(EVALUATION_BLOCK).zip(margins.chunks_mut(EVALUATION_BLOCK));
                blocks.map(move |(examples, margins)| (&lanes[lane], version, examples, margins))
            })
            .collect();
        let mine = tasks.iter_mut().skip(rank).step_by(ranks).collect();
        self.threads.each(mine, |context, seat, (lane, version, examples, margins)| {
            if !context.interrupted() {
                context.margins(seat, lane, *version, set, examples, margins);
            }
        });
        self.vote()?;
        if ranks > 1 {
            let mut words = Vec::with_capacity(tasks.len().div_ceil(ranks) * WORDS);
            tasks.iter().skip(rank).step_by(ranks).for_each(|(_, _, _, margins)| margin::send(margins, &mut words));
            words.resize(tasks.len().div_ceil(ranks) * WORDS, 0);
            let all = self.communicator.all_gather_words(&words);
            for (index, (_, _, _, margins)) in tasks.iter_mut().enumerate() {
                margin::receive(&all[index % ranks * words.len() + index / ranks * WORDS..], margins);
            }
        }
        Ok(margins)
    }
}
