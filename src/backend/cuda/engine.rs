//! The back end itself: gradients, steps and evaluations of lanes, alone or with a group of ranks that each have a GPU.

use std::ops::Range;
use std::sync::Arc;

use super::check::refuse;
use super::dataset::Selection;
use super::device::Cuda;
use super::gpu::Arithmetic;
use super::gradients::LeafGradients;
use super::lanes::CudaLanes;
use super::model::Model;
use super::partition::MOST_LEAVES;
use super::pointer::at;
use super::sharing::sharing;
use super::step::Stepper;
use super::workspace::slot_bytes;
use super::{evaluation, scores};
use crate::Result;
use crate::backend::cpu::{CpuBackend, VectorUnit};
use crate::backend::{Backend, Device, EvaluationSet, Interrupt, LaneStart, LaneState, Progress, Sharing};
use crate::comm::Communicator;
use crate::data::Dataset;
use crate::network::Network;
use crate::pruning::Mask;
use crate::settings::Reduction;

/// Most lanes: a launch has a block for each in its grid's third dimension.
const MOST_LANES: u64 = 65_535;

/// The back end "cuda": one rank's part of training and evaluating lanes, on the rank's GPU.
pub struct CudaBackend<'a> {
    model: Model<'a>,
    dataset: &'a Dataset,
    leaf_gradients: LeafGradients,
    stepper: Stepper,
    /// Asked between steps, and between parts of what goes through the whole training set.
    interrupt: Option<Interrupt>,
}

impl Device for Cuda {
    type Backend<'a> = CudaBackend<'a>;

    fn backend<'a>(&'a self, network: &Arc<Network>, dataset: &'a Dataset, group: &'a dyn Communicator) -> Result<CudaBackend<'a>> {
        let model = Model::new(self, (self.gpu.arithmetic, self.blas()?), network.clone(), dataset, group)?;
        let stepper = Stepper::new(&self.gpu)?;
        Ok(CudaBackend { model, dataset, leaf_gradients: LeafGradients::default(), stepper, interrupt: None })
    }

    fn scorer<'a>(&'a self, backend: CudaBackend<'a>) -> Result<CudaBackend<'a>> {
        let Model { task, group, .. } = &backend.model;
        let model = Model::new(self, (Arithmetic::Single, None), task.network.clone(), backend.dataset, *group)?;
        Ok(CudaBackend { model, ..backend })
    }

    fn sharing(&self, network: &Network) -> Sharing {
        // The field `arithmetic` is that of the fused kernels, and leaves out cuBLAS's TF32.
        let arithmetic = if self.gpu.tf32 { Arithmetic::Tf32 } else { self.gpu.arithmetic };
        sharing(network, self.reduction, arithmetic, self.shared)
    }
}

impl CudaBackend<'_> {
    /// The images of a step's batch as the network gets them, `[image][bordered map]`, and their labels: for comparing with the CPU's.
    pub fn batch(&mut self, seed: u64, step: u32, batch: usize) -> Result<(Vec<f32>, Vec<u16>)> {
        let (model, gpu, map) = (&self.model, self.model.gpu(), self.model.network.maps[0]);
        gpu.write(&[step, step, step], &mut self.stepper.clock)?;
        let seeds = gpu.upload(&[seed])?;
        let mut workspace = model.cuda.workspace.borrow_mut();
        workspace.ensure(gpu, &model.network, batch, batch, false)?;
        let space = workspace.buffers()?;
        let selection = Selection::Shuffled { first: 0, batch, clock: at(&self.stepper.clock, 0), seeds: at(&seeds, 0) };
        // SAFETY: `ensure` has made room for the batch; a shuffled example is one of the set, and the clock and a seed are there for the one lane.
        unsafe { model.dataset.gather(&model.kernels, &model.dataset.training, selection, space, [1, batch]) }?;
        let pixels = gpu.download(&space.maps[0], 0, batch * map.len())?;
        Ok((pixels.iter().map(|pixel| pixel.number(model.arithmetic)).collect(), gpu.download(&space.labels, 0, batch)?))
    }
}

impl Backend for CudaBackend<'_> {
    type Lanes = CudaLanes;

    fn describe(&self) -> String {
        let cuda = self.model.cuda;
        let sums = match (self.model.group.size(), cuda.shared, cuda.reduction) {
            (1, ..) => "",
            (_, true, _) => ", gradients of shared batches summed over MPI, reproducible",
            (_, false, Reduction::Reproducible) => ", gradients of shared batches summed over NCCL, reproducible",
            (_, false, Reduction::Nccl) => ", gradients of shared batches summed by NCCL",
        };
        let products = match self.model.blas {
            Some(blas) => format!(", {}", blas.description),
            None => match self.model.arithmetic {
                Arithmetic::Single => String::new(),
                Arithmetic::Tf32 => ", products in TF32".into(),
                Arithmetic::Split => ", products in split TF32".into(),
                Arithmetic::Pairs => ", products in pairs of bfloat16".into(),
            },
        };
        format!("{}{products}{sums}", cuda.name())
    }

    fn listen(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn lanes_that_fit(&self, world: &dyn Communicator) -> Option<u64> {
        let (cuda, ranks) = (self.model.cuda, world.size() as u64);
        // Floats of a lane for each parameter: weights, velocities, squares and averages, each twice while lanes are compacted (8); kept indices (1);
        // a gradient for each leaf; with several ranks the gradients that the ranks exchange; and stored weights, in training and in evaluations (2).
        let floats = 9 + 2 * u64::from(self.model.in_pairs()) + MOST_LEAVES as u64 + if ranks > 1 { 2 * ranks } else { 0 };
        let bytes = 4 * self.model.pitch() as u64 * floats;
        // Ranks that share a GPU see the same free memory.
        let free = cuda.gpu.free().unwrap_or(0) * 3 / 4 / if cuda.shared { ranks } else { 1 };
        // Images of a micro-batch take what is left.
        Some((free.saturating_sub(slot_bytes(&self.model.network, true) * 512) / bytes).min(MOST_LANES))
    }

    fn gradient(&mut self, weights: &[f32], examples: usize) -> Result<(Vec<f32>, f32)> {
        self.model.task.check_gradient(weights, examples)?;
        scores::gradient(&self.model, &mut self.leaf_gradients, self.interrupt, weights, examples)
    }

    /// On the host's processors: a study asks for one a seed, and no kernel computes it.
    fn hessian_gradient(&mut self, weights: &[f32], temperature: f32, examples: usize) -> Result<Vec<f32>> {
        self.model.task.check_gradient(weights, examples)?;
        let Model { task, cuda, group, .. } = &self.model;
        let mut host = CpuBackend::new(task.network.clone(), self.dataset, VectorUnit::best(), cuda.threads, *group);
        host.listen(self.interrupt);
        host.hessian_gradient(weights, temperature, examples)
    }

    fn squared_norms(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
        self.model.task.check_gradient(weights, examples)?;
        self.model.task.check_mask(mask)?;
        scores::squared_norms(&self.model, self.interrupt, weights, mask, examples)
    }

    fn lanes(&mut self, starts: Vec<LaneStart>) -> Result<CudaLanes> {
        let Model { task, .. } = &self.model;
        starts.iter().try_for_each(|start| task.check_start(start))?;
        CudaLanes::new(self.model.gpu(), task.clone(), starts)
    }

    fn state(&self, lanes: &CudaLanes, lane: usize) -> Result<LaneState> {
        self.model.check_lanes(lanes)?;
        lanes.state(self.model.gpu(), lane)
    }

    fn retain(&mut self, lanes: &mut CudaLanes, keep: &[bool]) -> Result<()> {
        self.model.check_lanes(lanes)?;
        lanes.retain(self.model.gpu(), &self.model.kernels, keep)
    }

    fn train(&mut self, lanes: &mut CudaLanes, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>> {
        self.model.check_lanes(lanes)?;
        self.model.task.check_steps(&steps, batch)?;
        if i32::try_from(steps.end).is_err() {
            return Err(refuse(format!("expected at most {} steps on a GPU, found {}; set workload.max_steps lower", i32::MAX, steps.end)));
        }
        if lanes.len() > 0 && !steps.is_empty() {
            let outcome = self.stepper.train(&self.model, &mut self.leaf_gradients, self.interrupt, lanes, steps, batch);
            outcome.inspect_err(|error| self.stepper.clean_up(lanes, error))?;
        }
        Ok(lanes.known.iter().map(|lane| lane.progress).collect())
    }

    fn examples(&self, set: EvaluationSet) -> usize {
        self.model.dataset.set(set).count
    }

    fn stride(&self, lanes: usize) -> usize {
        evaluation::stride(lanes, self.model.group.size())
    }

    fn margins(&mut self, lanes: &CudaLanes, which: &[usize], set: EvaluationSet, examples: &[u32]) -> Result<Vec<f32>> {
        let set = self.model.dataset.set(set);
        self.model.check_lanes(lanes)?;
        self.model.task.check_evaluation(which, lanes.len(), examples, set.count)?;
        evaluation::margins(&self.model, lanes, which, set, examples)
    }
}
