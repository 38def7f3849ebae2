//! The threads of a rank, and the work they share: gradients of lanes, optimizer steps, evaluations.

mod squares;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::dense::LOGITS;
use super::floats::Floats;
use super::lane::Lane;
use super::memory;
use super::physical::Physical;
use super::plan::Plan;
use super::simd::{Kernel, Simd};
use super::tangents::{Along, Tangents};
use super::vector_unit::VectorUnit;
use super::worker::{Worker, collect};
use crate::Result;
use crate::backend::margin::{self, WORDS};
use crate::backend::reference::{self, Batch};
use crate::backend::{Backend, Device, EVALUATION_BLOCK, EvaluationSet, Interrupt, LaneStart, LaneState, Progress, vote};
use crate::comm::{Communicator, Leaves, Node, additions};
use crate::data::{Dataset, Examples, Sampler};
use crate::network::Network;
use crate::pruning::Mask;
use crate::readable::some;

/// Multiply-adds that are worth sharing among threads: at three quarters of it (a dense Simple-CNN at batch size 2) two threads were now
/// faster than one, now slower. Bits do not depend on it.
const SHARED_WORK: f64 = 16e6;

/// Lanes on the processor's cores.
pub struct CpuBackend<'a> {
    share: Share<'a>,
    /// The threads besides the calling one; none for one thread.
    pool: Option<rayon::ThreadPool>,
    /// One a thread.
    seats: Vec<Mutex<Seat>>,
    /// Threads of all ranks of the group, which need not have as many each.
    crew: usize,
    communicator: &'a dyn Communicator,
    /// Whether lanes leave out what their masks remove.
    pruned_kernels: bool,
    /// Tells sets of weights apart, for [`Worker::prepare`].
    version: u64,
    /// `[job][node]` gradients of kept parameters, with their loss behind them; see [`length`].
    sums: Floats,
    /// What ranks exchange.
    sent: Vec<f32>,
    received: Vec<f32>,
}

/// The processor's cores as a device.
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    /// The vector unit.
    pub unit: VectorUnit,
    /// Threads of this rank.
    pub threads: usize,
}

impl Device for Cpu {
    type Backend<'a> = CpuBackend<'a>;

    fn backend<'a>(&'a self, network: &Arc<Network>, dataset: &'a Dataset, group: &'a dyn Communicator) -> Result<CpuBackend<'a>> {
        Ok(CpuBackend::new(network.clone(), dataset, self.unit, self.threads, group))
    }
}

/// What every thread reads.
struct Share<'a> {
    /// The network of the study.
    logical: Arc<Network>,
    physical: Physical,
    /// The physical network.
    network: Arc<Network>,
    /// The mask and the plan of weights that nothing was removed from.
    whole: Arc<Mask>,
    plan: Arc<Plan>,
    dataset: &'a Dataset,
    tables: Vec<[f32; 256]>,
    unit: VectorUnit,
    /// Asked after each leaf.
    interrupt: Option<Interrupt>,
}

/// What one thread works with.
struct Seat {
    worker: Worker,
    /// For products with the Hessian; none before the first.
    tangents: Option<Box<Tangents>>,
    /// Sums of leaves, laid out as the lane's plan says: each waits for its right-hand neighbour in the tree to be summed behind it.
    stack: Vec<Floats>,
    indices: Vec<u32>,
}

/// Whose derivative to compute, on which examples.
struct Job<'a> {
    weights: &'a [f32],
    plan: &'a Plan,
    mask: &'a Mask,
    draw: Draw<'a>,
    /// What the loss divides logits by.
    temperature: f32,
    derivative: Derivative<'a>,
}

/// What is summed over examples.
#[derive(Clone, Copy)]
enum Derivative<'a> {
    /// The gradient, in a leaf laid out as the plan says.
    Gradient,
    /// The Hessian's product with a vector of all parameters, in their order, by kernels ([`Tangents`]).
    HessianProduct(&'a [f32]),
    /// The same by the reference, at these weights of the logical network, whose parameters the vector has.
    ReferenceProduct { weights: &'a [f32], vector: &'a [f32] },
}

impl<'a> Job<'a> {
    /// The gradient of the loss that is trained.
    fn of_lane(weights: &'a [f32], plan: &'a Plan, mask: &'a Mask, draw: Draw<'a>) -> Job<'a> {
        Job { weights, plan, mask, draw, temperature: 1.0, derivative: Derivative::Gradient }
    }

    /// Floats of a leaf's derivative.
    fn length(&self) -> usize {
        match self.derivative {
            Derivative::Gradient => self.plan.length,
            Derivative::HessianProduct(vector) | Derivative::ReferenceProduct { vector, .. } => vector.len(),
        }
    }
}

/// Which training examples make up a batch.
#[derive(Clone, Copy)]
enum Draw<'a> {
    /// The first ones of the training set.
    InOrder,
    /// Those at a position of a trial's endless shuffled epochs.
    Shuffled(&'a Sampler, u64),
}

impl Draw<'_> {
    fn fill(&self, offset: usize, indices: &mut [u32]) {
        match self {
            Draw::InOrder => indices.iter_mut().enumerate().for_each(|(i, index)| *index = (offset + i) as u32),
            Draw::Shuffled(sampler, position) => sampler.fill(position + offset as u64, indices),
        }
    }
}

impl<'a> CpuBackend<'a> {
    /// A back end of `threads` threads on this rank, at least one.
    pub fn new(
        network: Arc<Network>,
        dataset: &'a Dataset,
        unit: VectorUnit,
        threads: usize,
        communicator: &'a dyn Communicator,
    ) -> CpuBackend<'a> {
        let threads = threads.max(1);
        let physical = Physical::new(&network);
        let (logical, network) = (network, physical.network().clone());
        let whole = Arc::new(physical.whole());
        let seat =
            || Seat { worker: Worker::new(&physical, unit, Leaves::LONGEST), tangents: None, stack: Vec::new(), indices: Vec::new() };
        CpuBackend {
            // A pool that cannot be made (no more threads to be had) is no reason to stop: one thread gives the same bits.
            pool: (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads - 1).build().ok()).flatten(),
            seats: (0..threads).map(|_| Mutex::new(seat())).collect(),
            crew: communicator.all_gather_words(&[threads as u64]).iter().sum::<u64>() as usize,
            communicator,
            pruned_kernels: true,
            version: 0,
            sums: Floats::default(),
            sent: Vec::new(),
            received: Vec::new(),
            share: Share {
                plan: Arc::new(Plan::new(&network, &whole, true)),
                whole,
                logical,
                physical,
                network,
                dataset,
                tables: dataset.lookup_table(),
                unit,
                interrupt: None,
            },
        }
    }

    /// The same back end, but for masks, which its lanes apply to weights and nothing else: products with removed weights are computed too.
    /// What pruned kernels are compared with.
    pub fn computing_removed_weights(mut self) -> Self {
        self.pruned_kernels = false;
        self
    }

    /// Threads that are to share so many multiply-adds.
    fn sharing(&self, work: f64) -> usize {
        if work < SHARED_WORK { 1 } else { self.seats.len() }
    }

    /// Every lane takes all its steps on one thread: nothing waits for anything, and a lane's state stays in that core's cache.
    fn train_apart(&mut self, lanes: &mut [Lane], steps: Range<u32>, leaves: Leaves, batch: usize) -> Result<()> {
        let unit = self.share.unit;
        let length = length(lanes.iter().map(|lane| &lane.mask));
        let version = self.versions(lanes.len() * steps.len());
        let root = leaves.nodes(0..leaves.count())[0];
        let mut sums = std::mem::take(&mut self.sums);
        sums.grow(lanes.len() * length);
        let (count, from) = (steps.len() as u64, steps.start);
        self.each(lanes.iter_mut().zip(sums.chunks_exact_mut(length)).enumerate().collect(), |share, seat, (index, (lane, sum))| {
            for step in steps.clone() {
                if lane.progress.broken.is_some() || share.interrupted() {
                    break;
                }
                let draw = Draw::Shuffled(&lane.sampler, u64::from(step) * batch as u64);
                let job = Job::of_lane(&lane.weights, &lane.plan, &lane.mask, draw);
                share.node_sum(seat, &job, version + index as u64 * count + u64::from(step - from), leaves, root, sum);
                lane.step(unit, step, batch, sum);
            }
        });
        self.sums = sums;
        self.vote()
    }

    /// All lanes take one step, threads and ranks sharing their batches.
    fn train_together(&mut self, lanes: &mut [Lane], step: u32, leaves: Leaves, batch: usize) -> Result<()> {
        let mut lanes: Vec<&mut Lane> = lanes.iter_mut().filter(|lane| lane.progress.broken.is_none()).collect();
        let position = u64::from(step) * batch as u64;
        let jobs: Vec<Job> =
            lanes.iter().map(|lane| Job::of_lane(&lane.weights, &lane.plan, &lane.mask, Draw::Shuffled(&lane.sampler, position))).collect();
        let places = self.gradients(&jobs, leaves)?;
        drop(jobs);
        let (unit, sums) = (self.share.unit, std::mem::take(&mut self.sums));
        self.each(lanes.iter_mut().zip(places).collect(), |_, _, (lane, place)| {
            lane.step(unit, step, batch, &sums[place..][..=lane.mask.kept()]);
        });
        self.sums = sums;
        Ok(())
    }

    /// The summed gradient and loss of every job over a whole batch, on every rank: where in `self.sums` each begins.
    fn gradients(&mut self, jobs: &[Job], leaves: Leaves) -> Result<Vec<usize>> {
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        let length = length(jobs.iter().map(|job| job.mask));
        let nodes = |rank: usize| leaves.nodes(leaves.slice(rank, ranks));
        let wholes = nodes(rank);
        let examples = wholes.iter().map(|&node| leaves.under(node).len()).sum::<usize>() * leaves.examples(0).len();
        let threads = self.sharing(jobs.iter().map(|job| job.plan.work * examples as f64).sum());
        let parts = split(leaves, &wholes, threads.div_ceil(jobs.len().max(1)));
        // At least one place a job, for what other ranks send.
        let row = parts.len().max(1) * length;
        let mut sums = std::mem::take(&mut self.sums);
        sums.grow(jobs.len() * row);

        let version = self.versions(jobs.len());
        let mut tasks = Vec::with_capacity(jobs.len() * parts.len());
        for (index, (job, sums)) in jobs.iter().zip(sums.chunks_mut(row)).enumerate() {
            for (&part, sum) in parts.iter().zip(sums.chunks_exact_mut(length)) {
                tasks.push((job, version + index as u64, part, sum));
            }
        }
        self.each_of(threads, tasks, |share, seat, (job, version, part, sum)| share.node_sum(seat, job, version, leaves, part, sum));
        self.vote()?;
        let (order, places) = additions(leaves, &parts, &wholes);
        let unit = self.share.unit;
        self.each_of(threads, sums.chunks_mut(row).take(jobs.len()).collect(), |_, _, sums| add_blocks(unit, sums, length, &order));

        if ranks > 1 {
            self.exchange(jobs, leaves, &mut sums, [row, length], &places);
        }
        self.sums = sums;
        Ok((0..jobs.len()).map(|job| job * row).collect())
    }

    /// Sums over ranks: every rank sends its nodes' kept gradients, and all add them up the same way. The totals end at each job's first place.
    fn exchange(&mut self, jobs: &[Job], leaves: Leaves, sums: &mut [f32], [row, length]: [usize; 2], places: &[usize]) {
        let ranks = self.communicator.size();
        let packed: usize = jobs.iter().map(|job| job.mask.kept() + 1).sum();
        let nodes: Vec<Vec<Node>> = (0..ranks).map(|rank| leaves.nodes(leaves.slice(rank, ranks))).collect();
        let counts: Vec<usize> = nodes.iter().map(|nodes| nodes.len() * packed).collect();
        self.sent.clear();
        for &place in places {
            for (job, sums) in jobs.iter().zip(sums.chunks(row)) {
                self.sent.extend_from_slice(&sums[place * length..][..=job.mask.kept()]);
            }
        }
        self.communicator.all_gather(&self.sent, &counts, &mut self.received);
        let parts = nodes.concat();
        let (order, root) = additions(leaves, &parts, &leaves.nodes(0..leaves.count()));
        add_blocks(self.share.unit, &mut self.received, packed, &order);
        let mut total = &self.received[root[0] * packed..][..packed];
        for (job, sums) in jobs.iter().zip(sums.chunks_mut(row)) {
            let (mine, rest) = total.split_at(job.mask.kept() + 1);
            sums[..mine.len()].copy_from_slice(mine);
            total = rest;
        }
    }

    /// A derivative at weights without a mask, summed over the first `examples` training examples, and the summed loss.
    fn derivative(&mut self, weights: &[f32], temperature: f32, derivative: Derivative, examples: usize) -> Result<(Vec<f32>, f32)> {
        let count = weights.len();
        let (mask, plan) = (self.share.whole.clone(), self.share.plan.clone());
        let weights = self.share.physical.spread(weights);
        let job = Job { weights: &weights, plan: &plan, mask: &mask, draw: Draw::InOrder, temperature, derivative };
        let places = self.gradients(&[job], Leaves::new(examples))?;
        let sum = &self.sums[places[0]..][..=count];
        Ok((sum[..count].to_vec(), sum[count]))
    }

    fn vote(&self) -> Result<()> {
        vote(self.share.interrupt, self.communicator)
    }

    /// Reserves version numbers.
    fn versions(&mut self, count: usize) -> u64 {
        self.version += count as u64;
        self.version - count as u64
    }

    /// Gives every item to some thread. The calling one takes items from the start, the others as soon as they are awake: so little work is
    /// not slower on many threads than on one.
    fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(&Share, &mut Seat, T) + Sync) {
        self.each_of(self.seats.len(), items, work);
    }

    /// The same, with so many threads at most.
    fn each_of<T: Send>(&self, threads: usize, items: Vec<T>, work: impl Fn(&Share, &mut Seat, T) + Sync) {
        let (share, seats) = (&self.share, &self.seats);
        let others = threads.min(items.len()).saturating_sub(1);
        let queue = Mutex::new(items.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let take = |index: usize| {
            let seat: &mut Seat = &mut seats[index].lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(item) = next() {
                work(share, seat, item);
            }
        };
        match &self.pool {
            Some(pool) if others > 0 => pool.in_place_scope(|scope| {
                let take = &take;
                (1..=others).for_each(|index| scope.spawn(move |_| take(index)));
                take(0);
            }),
            _ => take(0),
        }
    }
}

impl Backend for CpuBackend<'_> {
    type Lanes = Vec<Lane>;

    fn describe(&self) -> String {
        let threads = self.seats.len();
        format!("CPU, {}, {} a rank", self.share.unit.name(), some(threads, "thread"))
    }

    fn listen(&mut self, interrupt: Option<Interrupt>) {
        self.share.interrupt = interrupt;
    }

    fn room(&self, world: &dyn Communicator) -> u64 {
        memory::room(&self.share.physical, self.communicator.size(), world)
    }

    fn gradient(&mut self, weights: &[f32], examples: usize) -> Result<(Vec<f32>, f32)> {
        self.derivative(weights, 1.0, Derivative::Gradient, examples)
    }

    fn hessian_gradient(&mut self, weights: &[f32], temperature: f32, examples: usize) -> Result<Vec<f32>> {
        let (gradient, _) = self.derivative(weights, temperature, Derivative::Gradient, examples)?;
        let vector = &gradient[..];
        let derivative = if Tangents::fits(&self.share.network) && self.share.physical.is_logical() {
            Derivative::HessianProduct(vector)
        } else {
            Derivative::ReferenceProduct { weights, vector }
        };
        let (product, _) = self.derivative(weights, temperature, derivative, examples)?;
        Ok(product)
    }

    fn squared_norms(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
        let weights = self.share.physical.spread(weights);
        self.sum_of_squares(&weights, mask, examples)
    }

    fn lanes(&mut self, starts: Vec<LaneStart>) -> Result<Vec<Lane>> {
        let examples = self.share.dataset.training.len() as u32;
        let Share { physical, network, plan, .. } = &self.share;
        let plan = |mask: &Mask, physical: &Mask| match mask {
            Mask::Sparse { .. } => Arc::new(Plan::new(network, physical, self.pruned_kernels)),
            Mask::Dense(_) => plan.clone(),
        };
        let lane = |start: LaneStart| {
            let mask = physical.mask(&start.mask);
            Lane::new(plan(&start.mask, &mask), physical, mask, start, examples)
        };
        Ok(starts.into_iter().map(lane).collect())
    }

    fn state(&self, lanes: &Vec<Lane>, lane: usize) -> Result<LaneState> {
        Ok(lanes[lane].state(&self.share.physical))
    }

    fn retain(&mut self, lanes: &mut Vec<Lane>, keep: &[bool]) -> Result<()> {
        let mut keep = keep.iter();
        lanes.retain(|_| keep.next().is_none_or(|&keep| keep));
        Ok(())
    }

    fn train(&mut self, lanes: &mut Vec<Lane>, steps: Range<u32>, batch: usize) -> Result<Vec<Progress>> {
        let leaves = Leaves::new(batch);
        let alone = self.sharing(lanes.iter().map(|lane| lane.plan.work * batch as f64).fold(0.0, f64::max)) == 1;
        if self.communicator.size() == 1 && (alone || lanes.len() >= self.seats.len()) {
            self.train_apart(lanes, steps, leaves, batch)?;
        } else {
            for step in steps {
                self.train_together(lanes, step, leaves, batch)?;
            }
        }
        Ok(lanes.iter().map(|lane| lane.progress).collect())
    }

    fn examples(&self, set: EvaluationSet) -> usize {
        self.share.examples(set).len()
    }

    fn stride(&self, lanes: usize) -> usize {
        self.crew.div_ceil(lanes) * EVALUATION_BLOCK
    }

    fn margins(&mut self, lanes: &Vec<Lane>, which: &[usize], set: EvaluationSet, examples: &[u32]) -> Result<Vec<f32>> {
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
        self.each(mine, |share, seat, (lane, version, examples, margins)| {
            if !share.interrupted() {
                share.margins(seat, lane, *version, set, examples, margins);
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

impl Share<'_> {
    /// Whether to leave the rest of the work undone.
    fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }

    /// The kept parameters' derivative, and the loss behind it, summed over the leaves under a node in the order of the tree.
    fn node_sum(&self, seat: &mut Seat, job: &Job, version: u64, leaves: Leaves, node: Node, sum: &mut [f32]) {
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
            job.draw.fill(examples.start, indices);
            worker.gather(&self.dataset.training, &self.tables, indices);
            let target = &mut room(stack, waiting + 1, length + 1)[waiting][..=length];
            target.fill(0.0);
            let (gradient, loss) = target.split_at_mut(length);
            loss[0] = match job.derivative {
                Derivative::Gradient => worker.gradient(job.plan, job.weights, job.temperature, gradient, examples.len()),
                Derivative::HessianProduct(vector) => {
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
        if let [total, room] = room(stack, 2, most + 1) {
            match job.derivative {
                Derivative::Gradient => collect(self.unit, &self.network, job.plan, job.mask, &total[..length], room, sum),
                Derivative::HessianProduct(_) | Derivative::ReferenceProduct { .. } => sum[..length].copy_from_slice(&total[..length]),
            }
            sum[job.mask.kept()] = total[length];
        }
    }

    fn examples(&self, set: EvaluationSet) -> &Examples {
        match set {
            EvaluationSet::Validation => &self.dataset.validation,
            EvaluationSet::Test => &self.dataset.test,
        }
    }

    fn margins(&self, seat: &mut Seat, lane: &Lane, version: u64, set: EvaluationSet, examples: &[u32], margins: &mut [f32]) {
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

/// Floats from one gradient of kept parameters to the next: room for the largest with its loss, or with what [`collect`] writes behind it,
/// in whole cache lines.
fn length<'a>(masks: impl Iterator<Item = &'a Mask>) -> usize {
    (masks.map(Mask::kept).max().unwrap_or(0) + LOGITS).next_multiple_of(16)
}

/// The first `count` places of a stack, of at least `length` floats each.
fn room(stack: &mut Vec<Floats>, count: usize, length: usize) -> &mut [Floats] {
    if stack.len() < count {
        stack.resize_with(count, Floats::default);
    }
    stack[..count].iter_mut().for_each(|floats| floats.grow(length));
    &mut stack[..count]
}

/// Adds the top of the stack, with its loss, to its left-hand neighbour below it.
fn merge(unit: VectorUnit, stack: &mut [Floats], length: usize, waiting: &mut usize) {
    *waiting -= 1;
    let (below, top) = stack.split_at_mut(*waiting);
    unit.run(Add { to: &mut below[*waiting - 1][..=length], from: &top[0][..=length] });
}

/// Runs the additions (to, from) over blocks of `length` floats.
fn add_blocks(unit: VectorUnit, sums: &mut [f32], length: usize, order: &[(usize, usize)]) {
    for &(to, from) in order {
        // A sum always goes to the left.
        let (left, right) = sums.split_at_mut(from * length);
        unit.run(Add { to: &mut left[to * length..][..length], from: &right[..length] });
    }
}

struct Add<'a> {
    to: &'a mut [f32],
    from: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to += from;
        }
    }
}

/// Cuts nodes into their children until there are at least `wanted`, or only leaves.
fn split(leaves: Leaves, nodes: &[Node], wanted: usize) -> Vec<Node> {
    let mut parts = nodes.to_vec();
    while parts.len() < wanted {
        let largest = (0..parts.len()).max_by_key(|&index| leaves.under(parts[index]).len());
        let Some((index, children)) = largest.and_then(|index| Some((index, halves(leaves, parts[index])?))) else { break };
        parts.splice(index..=index, children);
    }
    parts
}

/// The two nodes that a node's sum is made of; none for a leaf.
fn halves(leaves: Leaves, node: Node) -> Option<[Node; 2]> {
    if node.level == 0 {
        return None;
    }
    leaves.children(node).or_else(|| halves(leaves, Node { level: node.level - 1, ..node }))
}
