//! The back end itself: gradients, steps and evaluations of lanes, alone or with a group of ranks that each have a GPU.

use std::cell::RefMut;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::CudaSlice;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::check::{Doing, refuse};
use super::exchange::{Exchange, Sum};
use super::gpu::{Cuda, Gpu, at, launch};
use super::lanes::{Captured, CudaLanes, pitch};
use super::pass::{Aim, Pass};
use super::resident::{Draw, Resident};
use super::sums::{MOST_LEAVES, Parts, Share};
use super::workspace::{Workspace, slot_bytes};
use crate::Result;
use crate::backend::cpu::{CpuBackend, Level};
use crate::backend::margin::{self, WORDS};
use crate::backend::{Backend, EVALUATION_BLOCK, Interrupt, LaneStart, LaneState, Progress, Set, vote};
use crate::comm::{Communicator, additions};
use crate::config::Reduction;
use crate::data::Dataset;
use crate::network::Network;
use crate::pruning::Mask;

/// Images of all lanes that fill a GPU: an evaluation looks at about so many before the host asks whether it is decided.
const FULL: usize = 1 << 14;

/// Examples whose gradients are one sum while connections are scored: more are summed in order, so that memory never has to hold them all.
const SEGMENT: usize = 8192;

/// Examples whose gradients are kept apart at a time: 64 MB of them.
const APART: usize = 256;

/// Lanes on a GPU.
pub struct CudaBackend<'a> {
    cuda: &'a Cuda,
    network: Arc<Network>,
    dataset: &'a Dataset,
    resident: Rc<Resident>,
    group: &'a dyn Communicator,
    /// `[lane][place][pitch]`: gradients of this rank's leaves, each with its loss.
    sums: Option<CudaSlice<f32>>,
    /// The step that is next, and the one under way.
    clock: CudaSlice<u32>,
    /// Between the ranks of a group of several, from their first step on.
    exchange: Option<Exchange>,
    /// Whether a step was taken: kernels are loaded and NCCL's connections made by then, which must not happen while a step is recorded.
    warm: bool,
    /// Asked between steps, and between parts of what goes through the whole training set.
    interrupt: Option<Interrupt>,
}

/// What one set of weights after another goes through.
struct Work<'a> {
    lanes: usize,
    /// `[lane]` places among the weights.
    which: &'a CudaSlice<i32>,
    weights: &'a CudaSlice<f32>,
}

impl<'a> CudaBackend<'a> {
    pub(super) fn new(
        cuda: &'a Cuda,
        network: Arc<Network>,
        dataset: &'a Dataset,
        resident: Rc<Resident>,
        group: &'a dyn Communicator,
    ) -> Result<CudaBackend<'a>> {
        if network.classes() != 10 {
            return Err(refuse(format!("expected a network of 10 classes, found {}; use --device cpu", network.classes())));
        }
        Ok(CudaBackend {
            clock: cuda.gpu.zeros(2)?,
            sums: None,
            exchange: None,
            warm: false,
            interrupt: None,
            cuda,
            network,
            dataset,
            resident,
            group,
        })
    }

    /// The images of a step's batch as the network gets them, `[image][bordered map]`, and their labels: for comparing with the CPU's.
    pub fn batch(&mut self, seed: u64, step: u32, batch: usize) -> Result<(Vec<f32>, Vec<u8>)> {
        let (gpu, map) = (self.gpu(), self.network.maps[0]);
        gpu.stream.memcpy_htod(&[step, step], &mut self.clock).doing("take the step's number")?;
        let (seeds, images, labels) = (gpu.upload(&[seed])?, gpu.zeros::<f32>(batch * map.len())?, gpu.zeros::<u8>(batch)?);
        let draw = Draw::Shuffled(0, batch, at(&self.clock, 0), at(&seeds, 0));
        self.resident.gather(gpu, &self.resident.training, draw, map, 1, batch, at(&images, 0), at(&labels, 0))?;
        Ok((gpu.download(&images, 0, batch * map.len())?, gpu.download(&labels, 0, batch)?))
    }

    fn vote(&self) -> Result<()> {
        vote(self.interrupt, self.group)
    }

    fn gpu(&self) -> &'a Gpu {
        &self.cuda.gpu
    }

    fn share(&self, batch: usize) -> Share {
        Share::new(batch, self.group.rank(), self.group.size())
    }

    /// Makes room for what a batch needs: the sums of this rank's leaves, and images of all lanes.
    fn prepare(&mut self, lanes: usize, share: &Share) -> Result<()> {
        let mine = share.mine();
        let (gpu, floats) = (self.gpu(), lanes * mine.len() * pitch(self.network.parameters()));
        if self.sums.as_ref().is_none_or(|sums| sums.len() < floats) {
            self.sums = None;
            self.sums = Some(gpu.room(floats)?);
        }
        let wanted = lanes * share.examples(&mine).len();
        self.cuda.workspace.borrow_mut().ensure(gpu, &self.network, wanted, share.length, true)
    }

    /// The sums of this rank's leaves, for which [`CudaBackend::prepare`] has made room; each lane's place among the
    /// weights is its own number. `draw` says which examples those from one on are, for the lanes from one on.
    fn leaf_sums(&self, work: &Work, share: &Share, draw: impl Fn(usize, usize) -> Draw) -> Result<()> {
        let (gpu, mine, pitch) = (self.gpu(), share.mine(), pitch(self.network.parameters()));
        let space: RefMut<Workspace> = self.cuda.workspace.borrow_mut();
        let sums = self.sums.as_ref().ok_or_else(|| refuse("expected room for gradients, found none; report this as a bug"))?;
        for (lanes, leaves) in passes(work.lanes, mine.len(), share.length, space.slots) {
            let examples = share.examples(&(mine.start + leaves.start..mine.start + leaves.end));
            let map = self.network.maps[0];
            let labels = space.labels.as_ref().map_or(0, |labels| at(labels, 0));
            let draw = draw(examples.start, lanes.start);
            self.resident.gather(gpu, &self.resident.training, draw, map, lanes.len(), examples.len(), at(&space.maps[0], 0), labels)?;
            Pass {
                gpu,
                space: &space,
                network: &self.network,
                lanes: lanes.len(),
                images: examples.len(),
                which: at(work.which, lanes.start),
                weights: at(work.weights, 0),
                blas: self.cuda.blas(),
                ordered: at(work.weights, lanes.start * pitch),
                pitch,
                length: share.length,
                places: mine.len(),
                aim: Aim::Gradients(at(sums, (lanes.start * mine.len() + leaves.start) * pitch)),
                failed: Ok(()),
            }
            .run()?;
        }
        Ok(())
    }

    /// The sums of this rank's leaves of the clock's step.
    fn step_sums(&self, lanes: &CudaLanes, share: &Share, batch: usize) -> Result<()> {
        let work = Work { lanes: lanes.len(), which: &lanes.identity, weights: &lanes.weights };
        self.leaf_sums(&work, share, |first, lane| Draw::Shuffled(first, batch, at(&self.clock, 0), at(&lanes.seeds, lane)))
    }

    /// One step of every lane, from the clock's.
    fn step(&mut self, lanes: &CudaLanes, share: &Share, batch: usize) -> Result<()> {
        let gpu = self.gpu();
        launch!(gpu, &gpu.kernels()?.clock_step, [1, 1, 1], 32, at(&self.clock, 0))?;
        self.step_sums(lanes, share, batch)?;
        let clock = at(&self.clock, 0);
        let (places, parameters) = (share.mine().len(), self.network.parameters());
        let sums = self.sums.as_ref().map_or(0, |sums| at(sums, 0));
        let [rules, kept, kept_count, weights, velocity, losses, broken] = lanes.pointers();
        let group = self.group;
        let (packed, loss_at, sum) = match &mut self.exchange {
            Some(exchange) => (1_i32, lanes.most_kept, exchange.sum(gpu, group, lanes, share, sums, parameters)?),
            None => {
                let strides = [places * lanes.pitch, lanes.pitch].map(|stride| stride as i64);
                (0, parameters, Sum { from: sums, parts: Parts::leaves(places), lane_stride: strides[0], part_stride: strides[1] })
            }
        };
        launch!(
            gpu,
            &gpu.kernels()?.update,
            [lanes.most_kept.div_ceil(256), 1, lanes.len()],
            256,
            parameters as i32,
            batch as i32,
            packed,
            sum.parts,
            sum.lane_stride,
            sum.part_stride,
            loss_at as i32,
            lanes.pitch as i32,
            rules,
            kept,
            kept_count,
            lanes.most_kept as i32,
            sum.from,
            weights,
            velocity,
            losses,
            broken,
            clock
        )
    }

    /// Captures a step, unless the one that was captured last still serves.
    fn capture(&mut self, lanes: &mut CudaLanes, share: &Share, batch: usize, [sent, received]: [u64; 2]) -> Result<()> {
        let stream = &self.gpu().stream;
        let generation = self.cuda.workspace.borrow().generation;
        let sums = self.sums.as_ref().map_or(0, |sums| at(sums, 0));
        let captured = Captured { batch, generation, buffers: [sums, sent, received] };
        if lanes.graph.as_ref().is_some_and(|(key, _)| *key == captured) {
            return Ok(());
        }
        lanes.graph = None;
        if self.cuda.blas().is_some() {
            // cuBLAS chooses, and loads, a kernel when it first meets a size, which must not happen in a capture. Sums alone change nothing.
            self.step_sums(lanes, share, batch)?;
        }
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).doing("record a step")?;
        let recorded = self.step(lanes, share, batch);
        // A capture that failed has to be ended all the same.
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).doing("record a step");
        recorded?;
        let graph = graph?.ok_or_else(|| refuse("expected a recorded step, found none; report this as a bug"))?;
        lanes.graph = Some((captured, graph));
        Ok(())
    }

    /// Loss and end of every lane, from the device.
    fn read_back(&self, lanes: &mut CudaLanes) -> Result<()> {
        let gpu = self.gpu();
        gpu.stream.memcpy_dtoh(&lanes.report, &mut lanes.pinned).doing("give the losses")?;
        match &self.exchange {
            Some(exchange) => exchange.wait(gpu)?,
            None => gpu.wait()?,
        }
        let report = lanes.pinned.as_slice().doing("give the losses")?;
        let (losses, broken) = report.split_at(lanes.known.len());
        for ((lane, &loss), &broken) in lanes.known.iter_mut().zip(losses).zip(broken) {
            lane.progress = Progress { loss: f32::from_bits(loss as u32), broken: u32::try_from(broken).ok() };
        }
        Ok(())
    }
}

/// Cuts lanes × groups of `length` images into passes of at most `slots` images: whole lanes' groups where they fit, else a group of as many
/// lanes as fit. A group is never cut.
pub(super) fn passes(lanes: usize, groups: usize, length: usize, slots: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let cut = |count: usize, size: usize| (0..count).step_by(size.max(1)).map(move |start| start..(start + size.max(1)).min(count));
    if lanes * length <= slots {
        return cut(groups, slots / (lanes * length).max(1)).map(|groups| (0..lanes, groups)).collect();
    }
    cut(lanes, slots / length.max(1)).flat_map(|lanes| (0..groups).map(move |group| (lanes.clone(), group..group + 1))).collect()
}

impl Backend for CudaBackend<'_> {
    type Lanes = CudaLanes;

    fn describe(&self) -> String {
        let sums = match (self.group.size(), self.cuda.shared, self.cuda.reduction) {
            (1, ..) => "",
            (_, true, _) => ", gradients summed over MPI, reproducible",
            (_, false, Reduction::Reproducible) => ", gradients summed over NCCL, reproducible",
            (_, false, Reduction::Nccl) => ", gradients summed by NCCL",
        };
        let products = match self.cuda.blas() {
            Some(blas) => format!(", {}", blas.description),
            None if self.gpu().tf32 => ", products in TF32".into(),
            None => String::new(),
        };
        format!("{}{products}{sums}", self.cuda.name())
    }

    fn listen(&mut self, interrupt: Option<Interrupt>) {
        self.interrupt = interrupt;
    }

    fn room(&self, world: &dyn Communicator) -> u64 {
        let ranks = world.size() as u64;
        // Weights and velocities, twice while lanes are compacted or evaluated by cuBLAS; kept indices; gradients; and what ranks exchange.
        let floats = 5 + MOST_LEAVES as u64 + if ranks > 1 { 2 * ranks } else { 0 };
        let bytes = 4 * pitch(self.network.parameters()) as u64 * floats;
        // Ranks that share a GPU see the same free memory.
        let free = self.gpu().free().unwrap_or(0) * 3 / 4 / if self.cuda.shared { ranks } else { 1 };
        // Images of a pass take what is left.
        // A launch takes no more lanes than its third dimension has blocks.
        (free.saturating_sub(slot_bytes(&self.network, true) * 512) / bytes).min(65_535)
    }

    fn gradient(&mut self, weights: &[f32], examples: usize) -> Result<(Vec<f32>, f32)> {
        let gpu = self.gpu();
        let (parameters, pitch) = (weights.len(), pitch(weights.len()));
        let weights = gpu.upload(weights)?;
        let which = gpu.upload(&[0_i32])?;
        let work = Work { lanes: 1, which: &which, weights: &weights };
        let mut total = vec![0.0_f32; parameters + 1];
        for start in (0..examples).step_by(SEGMENT) {
            self.vote()?;
            let share = self.share(SEGMENT.min(examples - start));
            self.prepare(1, &share)?;
            self.leaf_sums(&work, &share, |first, _| Draw::InOrder(start + first))?;
            let sums = self.sums.as_ref().map_or(0, |sums| at(sums, 0));
            let mut sent = Vec::new();
            for (first, parts) in share.sent() {
                let node = gpu.room::<f32>(parameters + 1)?;
                launch!(
                    gpu,
                    &gpu.kernels()?.pack,
                    [(parameters + 1).div_ceil(256), 1, 1],
                    256,
                    parameters as i32,
                    first as i32,
                    parts,
                    0_i64,
                    pitch as i32,
                    0_u64,
                    0_u64,
                    parameters as i32,
                    (parameters + 1) as i32,
                    sums,
                    at(&node, 0)
                )?;
                sent.extend(gpu.download(&node, 0, parameters + 1)?);
            }
            let nodes: Vec<_> = (0..self.group.size()).map(|rank| share.nodes(rank)).collect();
            let counts: Vec<usize> = nodes.iter().map(|nodes| nodes.len() * (parameters + 1)).collect();
            let mut received = Vec::new();
            self.group.all_gather(&sent, &counts, &mut received);
            let root = share.leaves.nodes(0..share.leaves.count());
            for (to, from) in additions(share.leaves, &nodes.concat(), &root).0 {
                let (left, right) = received.split_at_mut(from * (parameters + 1));
                left[to * (parameters + 1)..][..parameters + 1].iter_mut().zip(right).for_each(|(to, from)| *to += *from);
            }
            total.iter_mut().zip(&received).for_each(|(total, sum)| *total += sum);
        }
        let loss = total.pop().unwrap_or(0.0);
        Ok((total, loss))
    }

    /// On the host's processors: a study asks for one a seed, and no kernel computes it.
    fn hessian_gradient(&mut self, weights: &[f32], temperature: f32, examples: usize) -> Result<Vec<f32>> {
        let mut host = CpuBackend::new(self.network.clone(), self.dataset, Level::best(), self.cuda.threads, self.group);
        host.listen(self.interrupt);
        host.hessian_gradient(weights, temperature, examples)
    }

    /// The same bits on any number of ranks: each takes whole blocks of examples, and the blocks' sums are added up in order.
    fn squared_norms(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
        let (rank, ranks) = (self.group.rank(), self.group.size());
        let blocks = examples.div_ceil(APART);
        let gpu = self.gpu();
        let (weights, which) = (gpu.upload(weights)?, gpu.upload(&[0_i32])?);
        let kept = match mask {
            Mask::Dense(_) => None,
            Mask::Sparse { kept, .. } => Some(gpu.upload(&kept.iter().map(|&index| index as i32).collect::<Vec<_>>())?),
        };
        let mut words = Vec::new();
        for block in (rank..blocks).step_by(ranks) {
            if self.interrupt.is_some_and(|interrupt| interrupt()) {
                break;
            }
            let range = block * APART..((block + 1) * APART).min(examples);
            let squares = self.squares(&weights, &which, kept.as_ref(), mask.kept(), range)?;
            words.push(squares.iter().sum::<f64>().to_bits());
        }
        self.vote()?;
        words.resize(blocks.div_ceil(ranks), 0);
        let all = self.group.all_gather_words(&words);
        Ok((0..blocks).map(|block| f64::from_bits(all[block % ranks * words.len() + block / ranks])).sum())
    }

    fn lanes(&mut self, starts: Vec<LaneStart>) -> Result<CudaLanes> {
        CudaLanes::new(self.gpu(), starts, self.network.parameters())
    }

    fn state(&self, lanes: &CudaLanes, lane: usize) -> Result<LaneState> {
        lanes.state(self.gpu(), lane)
    }

    fn retain(&mut self, lanes: &mut CudaLanes, keep: &[bool]) -> Result<()> {
        lanes.retain(self.gpu(), keep)
    }

    fn train(&mut self, lanes: &mut CudaLanes, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>> {
        if lanes.len() > 0 && !steps.is_empty() {
            let share = self.share(batch);
            self.prepare(lanes.len(), &share)?;
            let gpu = self.gpu();
            gpu.stream.memcpy_htod(&[steps.start, steps.start], &mut self.clock).doing("take the step's number")?;
            let (group, ranks) = (self.group, self.group.size());
            if ranks > 1 && self.exchange.is_none() {
                self.exchange = Some(Exchange::new(group, self.cuda.shared, self.cuda.reduction, self.gpu().deadline)?);
            }
            let buffers = self.exchange.as_mut().map_or(Ok([0; 2]), |exchange| exchange.prepare(gpu, lanes, &share, ranks))?;
            for _ in steps {
                self.vote()?;
                if !self.warm || self.exchange.as_ref().is_some_and(|exchange| !exchange.in_stream()) {
                    self.step(lanes, &share, batch)?;
                    self.warm = true;
                    continue;
                }
                self.capture(lanes, &share, batch, buffers)?;
                if let Some((_, graph)) = &lanes.graph {
                    graph.launch().doing("take a step")?;
                }
            }
            self.read_back(lanes)?;
        }
        Ok(lanes.known.iter().map(|lane| lane.progress).collect())
    }

    fn examples(&self, set: Set) -> usize {
        self.resident.set(set).examples
    }

    fn stride(&self, lanes: usize) -> usize {
        FULL.div_ceil(lanes * EVALUATION_BLOCK).max(self.group.size()) * EVALUATION_BLOCK
    }

    fn margins(&mut self, lanes: &CudaLanes, which: &[usize], set: Set, examples: &[u32]) -> Result<Vec<f32>> {
        let (rank, ranks) = (self.group.rank(), self.group.size());
        let length = examples.len() / which.len().max(1);
        let blocks = length.div_ceil(EVALUATION_BLOCK);
        // Each rank takes some blocks of every lane's list.
        let slice = |rank: usize| blocks * rank / ranks..blocks * (rank + 1) / ranks;
        let mine = self.margins_of(lanes, which, self.resident.set(set), examples, slice(rank))?;
        let most = blocks.div_ceil(ranks) * WORDS;
        let mut words = Vec::with_capacity(which.len() * most);
        for margins in mine.chunks((slice(rank).len() * EVALUATION_BLOCK).max(1)) {
            let end = words.len() + most;
            margins.chunks(EVALUATION_BLOCK).for_each(|margins| margin::send(margins, &mut words));
            words.resize(end, 0);
        }
        words.resize(which.len() * most, 0);
        let all = self.group.all_gather_words(&words);
        let mut margins = vec![0.0; examples.len()];
        for (lane, margins) in margins.chunks_mut(length.max(1)).enumerate() {
            let mut blocks = margins.chunks_mut(EVALUATION_BLOCK);
            for rank in 0..ranks {
                let words = all[rank * words.len() + lane * most..].chunks(WORDS);
                blocks.by_ref().take(slice(rank).len()).zip(words).for_each(|(margins, words)| margin::receive(words, margins));
            }
        }
        Ok(margins)
    }
}

impl CudaBackend<'_> {
    /// ‖mask · ∇fᵢ‖² of each of some training examples, at one set of weights.
    fn squares(
        &mut self,
        weights: &CudaSlice<f32>,
        which: &CudaSlice<i32>,
        kept: Option<&CudaSlice<i32>>,
        count: usize,
        examples: Range<usize>,
    ) -> Result<Vec<f64>> {
        let (gpu, pitch, images) = (self.gpu(), pitch(self.network.parameters()), examples.len());
        let sums = gpu.room::<f32>(images * pitch)?;
        let squares = gpu.room::<f64>(images)?;
        let mut space = self.cuda.workspace.borrow_mut();
        space.ensure(gpu, &self.network, images, 1, true)?;
        for (_, part) in passes(1, images, 1, space.slots) {
            let labels = space.labels.as_ref().map_or(0, |labels| at(labels, 0));
            let draw = Draw::InOrder(examples.start + part.start);
            let map = self.network.maps[0];
            self.resident.gather(gpu, &self.resident.training, draw, map, 1, part.len(), at(&space.maps[0], 0), labels)?;
            Pass {
                gpu,
                space: &space,
                network: &self.network,
                lanes: 1,
                images: part.len(),
                which: at(which, 0),
                weights: at(weights, 0),
                blas: self.cuda.blas(),
                ordered: at(weights, 0),
                pitch,
                length: 1,
                places: images,
                aim: Aim::Gradients(at(&sums, part.start * pitch)),
                failed: Ok(()),
            }
            .run()?;
        }
        let kept = kept.map_or(0, |kept| at(kept, 0));
        let (places, pitch, count) = (images as i32, pitch as i32, count as i32);
        launch!(gpu, &gpu.kernels()?.squares, [images, 1, 1], 256, places, pitch, kept, count, at(&sums, 0), at(&squares, 0))?;
        gpu.download(&squares, 0, images)
    }

    /// Margins of some lanes on some blocks of their lists, `[lane][block][EVALUATION_BLOCK]`; behind a list's end they are undefined.
    fn margins_of(
        &self,
        lanes: &CudaLanes,
        which: &[usize],
        set: &super::resident::Set,
        examples: &[u32],
        blocks: Range<usize>,
    ) -> Result<Vec<f32>> {
        if blocks.is_empty() || which.is_empty() {
            return Ok(Vec::new());
        }
        let (gpu, count) = (self.gpu(), blocks.len());
        let length = examples.len() / which.len();
        let range = blocks.start * EVALUATION_BLOCK..(blocks.end * EVALUATION_BLOCK).min(length);
        let lists: Vec<u32> = examples.chunks_exact(length).flat_map(|list| &list[range.clone()]).copied().collect();
        let places: Vec<i32> = which.iter().map(|&lane| lane as i32).collect();
        let (lists, which) = (gpu.upload(&lists)?, gpu.upload(&places)?);
        let margins = gpu.room::<f32>(places.len() * count * EVALUATION_BLOCK)?;
        let ordered = self.cuda.blas().map(|_| lanes.ordered(gpu, &which, places.len())).transpose()?;
        let mut space = self.cuda.workspace.borrow_mut();
        space.ensure(gpu, &self.network, (places.len() * range.len()).min(2 * FULL), EVALUATION_BLOCK, false)?;
        for (lanes_here, groups) in passes(places.len(), count, EVALUATION_BLOCK, space.slots) {
            let first = groups.start * EVALUATION_BLOCK;
            let images = (groups.end * EVALUATION_BLOCK).min(range.len()) - first;
            let labels = space.labels.as_ref().map_or(0, |labels| at(labels, 0));
            let draw = Draw::Listed(at(&lists, lanes_here.start * range.len() + first), range.len());
            self.resident.gather(gpu, set, draw, self.network.maps[0], lanes_here.len(), images, at(&space.maps[0], 0), labels)?;
            Pass {
                gpu,
                space: &space,
                network: &self.network,
                lanes: lanes_here.len(),
                images,
                which: at(&which, lanes_here.start),
                weights: at(&lanes.weights, 0),
                blas: self.cuda.blas(),
                ordered: ordered.as_ref().map_or(0, |ordered| at(ordered, lanes_here.start * lanes.pitch)),
                pitch: lanes.pitch,
                length: EVALUATION_BLOCK,
                places: count,
                aim: Aim::Margins(at(&margins, (lanes_here.start * count + groups.start) * EVALUATION_BLOCK)),
                failed: Ok(()),
            }
            .run()?;
        }
        gpu.download(&margins, 0, places.len() * count * EVALUATION_BLOCK)
    }
}
