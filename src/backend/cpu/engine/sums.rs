//! Sums of leaves: where they stand, and the additions of the tree ([`Leaves`]).

use std::ops::Range;

use crate::backend::cpu::dense::LOGITS;
use crate::backend::cpu::floats::Floats;
use crate::backend::cpu::lane::piece_length;
use crate::backend::cpu::simd::{Kernel, Simd};
use crate::backend::cpu::vector_unit::VectorUnit;
use crate::comm::{Leaves, Node, NodeSums};
use crate::pruning::Mask;

/// Floats from one gradient of kept parameters to the next: room for the largest with its loss, or with what `collect` writes behind it,
/// in whole cache lines.
pub(super) fn length<'a>(masks: impl Iterator<Item = &'a Mask>) -> usize {
    (masks.map(Mask::kept).max().unwrap_or(0) + LOGITS).next_multiple_of(16)
}

/// The sums of several jobs, on this rank.
#[derive(Default)]
pub(super) struct JobSums {
    /// `[job][part][length]`: gradients of kept parameters, each with its loss behind it. A job's total is its first part in the end.
    floats: Floats,
    jobs: usize,
    parts: usize,
    length: usize,
}

impl JobSums {
    /// Makes room for so many jobs of so many parts, each of `length` floats (see [`length`]). A rank without a part has one too, for totals
    /// that come from other ranks. The floats are those of earlier
    /// jobs until they are written.
    pub(super) fn shape(&mut self, jobs: usize, parts: usize, length: usize) {
        (self.jobs, self.parts, self.length) = (jobs, parts.max(1), length);
        self.floats.grow(jobs * self.parts * length);
    }

    /// The sums of each job.
    pub(super) fn jobs(&mut self) -> impl Iterator<Item = Parts<'_>> {
        let (length, job) = (self.length, self.parts * self.length);
        self.floats.chunks_exact_mut(job).take(self.jobs).map(move |floats| Parts { floats, length })
    }

    /// A job's total, of `kept` parameters, and its loss.
    pub(super) fn total(&self, job: usize, kept: usize) -> &[f32] {
        &self.floats[self.part(job, 0)][..=kept]
    }

    /// Where a job's sum of one part stands.
    fn part(&self, job: usize, part: usize) -> Range<usize> {
        let start = (job * self.parts + part) * self.length;
        start..start + self.length
    }
}

/// The sums of several jobs as ranks exchange them: for each of this rank's nodes a row of each job's kept parameters and its loss.
pub(super) struct PackedSums<'a> {
    sums: &'a mut JobSums,
    /// The part that is each node's sum.
    nodes: &'a [usize],
    /// Columns of each job.
    jobs: Vec<Range<usize>>,
}

impl<'a> PackedSums<'a> {
    /// The sums of jobs of these masks.
    pub(super) fn new<'m>(sums: &'a mut JobSums, nodes: &'a [usize], masks: impl Iterator<Item = &'m Mask>) -> PackedSums<'a> {
        let columns = |start: &mut usize, mask: &Mask| {
            let columns = *start..*start + mask.kept() + 1;
            *start = columns.end;
            Some(columns)
        };
        PackedSums { sums, nodes, jobs: masks.scan(0, columns).collect() }
    }

    /// The jobs that have some of these columns, each with its own floats among them and with their place behind the first of the columns.
    fn runs(&self, columns: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
        let first = self.jobs.partition_point(|job| job.end <= columns.start);
        (first..self.jobs.len()).map_while(move |index| {
            let job = &self.jobs[index];
            let run = job.start.max(columns.start)..job.end.min(columns.end);
            let shifted = |by: usize| run.start - by..run.end - by;
            (run.start < run.end).then(|| (index, shifted(job.start), shifted(columns.start)))
        })
    }
}

impl NodeSums for PackedSums<'_> {
    fn columns(&self) -> usize {
        self.jobs.last().map_or(0, |job| job.end)
    }

    fn append(&self, node: usize, columns: Range<usize>, to: &mut Vec<f32>) {
        for (job, run, _) in self.runs(columns) {
            to.extend_from_slice(&self.sums.floats[self.sums.part(job, self.nodes[node])][run]);
        }
    }

    fn set_total(&mut self, columns: Range<usize>, total: &[f32]) {
        let runs: Vec<_> = self.runs(columns).collect();
        for (job, run, place) in runs {
            let part = self.sums.part(job, 0);
            self.sums.floats[part][run].copy_from_slice(&total[place]);
        }
    }
}

/// The sums of one job: `[part][length]`.
pub(super) struct Parts<'a> {
    floats: &'a mut [f32],
    length: usize,
}

impl<'a> Parts<'a> {
    /// Each part's.
    pub(super) fn parts(self) -> std::slice::ChunksExactMut<'a, f32> {
        self.floats.chunks_exact_mut(self.length)
    }

    /// At most `count` pieces of the columns, at least one: of each piece `[part][width]`.
    pub(super) fn pieces(self, count: usize) -> Vec<Vec<&'a mut [f32]>> {
        let width = piece_length(self.length, count);
        let mut pieces: Vec<_> = (0..self.length.div_ceil(width)).map(|_| Vec::new()).collect();
        for part in self.parts() {
            pieces.iter_mut().zip(part.chunks_mut(width)).for_each(|(piece, columns)| piece.push(columns));
        }
        pieces
    }
}

/// The first `count` slots of a stack, of at least `length` floats each.
pub(super) fn slots(stack: &mut Vec<Floats>, count: usize, length: usize) -> &mut [Floats] {
    if stack.len() < count {
        stack.resize_with(count, Floats::default);
    }
    stack[..count].iter_mut().for_each(|floats| floats.grow(length));
    &mut stack[..count]
}

/// Adds the floats in `runs` of the stack's top sum to the sum below, its left-hand neighbour in the tree, and takes the top off the stack.
pub(super) fn merge(unit: VectorUnit, stack: &mut [Floats], waiting: &mut usize, runs: impl Iterator<Item = Range<usize>>) {
    *waiting -= 1;
    let (below, top) = stack.split_at_mut(*waiting);
    for run in runs {
        unit.run(Add { to: &mut below[*waiting - 1][run.clone()], from: &top[0][run] });
    }
}

/// The addition of floats to others on a vector unit: of its second argument to its first.
pub(super) fn add_on(unit: VectorUnit) -> impl Fn(&mut [f32], &[f32]) {
    move |to, from| unit.run(Add { to, from })
}

struct Add<'a> {
    to: &'a mut [f32],
    from: &'a [f32],
}

impl Kernel for Add<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to += from;
        }
    }
}

/// Cuts nodes into their children until there are at least `wanted`, or only leaves.
pub(super) fn split(leaves: Leaves, nodes: &[Node], wanted: usize) -> Vec<Node> {
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
