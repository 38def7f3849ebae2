//! Which part of a batch's gradient sum each rank of a group computes.

use std::ops::Range;

use super::launch::Parts;
use crate::comm::{Leaves, Node};

/// Most leaves of a batch: each is a gradient of its own in memory, `[lanes][leaves][parameters]`.
pub(super) const MOST_LEAVES: usize = 32;

/// The longest leaf, unless a batch would then have more than [`MOST_LEAVES`] leaves: longer leaves would leave a kernel fewer blocks than a GPU has
/// room for.
const LONGEST: usize = 32;

/// A batch as the ranks of a group share it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchPartition {
    pub leaves: Leaves,
    /// Examples of a leaf; the batch's last one may have fewer.
    pub length: usize,
    rank: usize,
    ranks: usize,
}

impl BatchPartition {
    /// A batch of that many examples. The leaves' length depends on nothing else: an eighth of the batch, at least 1 and at most
    /// [`LONGEST`], unless that would make more than [`MOST_LEAVES`].
    pub fn new(batch: usize, rank: usize, ranks: usize) -> BatchPartition {
        let length = (batch / 8).clamp(1, LONGEST).max(batch.div_ceil(MOST_LEAVES));
        BatchPartition { leaves: Leaves::of_length(batch, length), length, rank, ranks }
    }

    /// A batch of that many examples, each of which is a leaf, on one rank.
    pub fn single_examples(batch: usize) -> BatchPartition {
        BatchPartition { leaves: Leaves::of_length(batch, 1), length: 1, rank: 0, ranks: 1 }
    }

    /// This rank's leaves.
    pub fn own_leaves(&self) -> Range<usize> {
        self.leaves.slice(self.rank, self.ranks)
    }

    /// The examples of some leaves.
    pub fn examples(&self, leaves: &Range<usize>) -> Range<usize> {
        if leaves.is_empty() {
            return 0..0;
        }
        self.leaves.examples(leaves.start).start..self.leaves.examples(leaves.end - 1).end
    }

    /// The nodes that a rank sends.
    pub fn nodes(&self, rank: usize) -> Vec<Node> {
        self.leaves.nodes(self.leaves.slice(rank, self.ranks))
    }

    /// This rank's nodes, each with the place of its first leaf among this rank's and its leaves.
    pub fn sent(&self) -> Vec<(usize, Parts)> {
        let mine = self.own_leaves();
        let of = |node: Node| (node.start - mine.start, Parts::leaves(self.leaves.under(node).len()));
        self.nodes(self.rank).into_iter().map(of).collect()
    }

    /// Nodes of the rank that sends most: every rank sends as many, the last of them empty.
    pub fn most_nodes(&self) -> usize {
        (0..self.ranks).map(|rank| self.nodes(rank).len()).max().unwrap_or(0)
    }

    /// All ranks' nodes, where each rank's begin at a multiple of [`BatchPartition::most_nodes`].
    pub fn received(&self) -> Parts {
        let most = self.most_nodes();
        let of_rank = |rank: usize| self.nodes(rank).into_iter().enumerate().map(move |(at, node)| (node.level, rank * most + at));
        Parts::new((0..self.ranks).flat_map(of_rank))
    }
}
