//! Which part of a batch's gradient sum a rank computes, and how parts are added up.

use std::ops::Range;

use crate::comm::{Leaves, Node};

/// Most leaves of a batch: each is a gradient of its own in memory, `[lanes][leaves][parameters]`.
pub(super) const MOST_LEAVES: usize = 32;

/// Longest leaf of a batch that has fewer: below that, a longer leaf costs blocks that a GPU could fill.
const LONGEST: usize = 32;

/// Most parts of a sum: the twin of MOST_PARTS in common.cuh.
const MOST_PARTS: usize = 64;

/// The twin of Parts in common.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Parts {
    count: i32,
    level: [u8; MOST_PARTS],
    place: [u8; MOST_PARTS],
}

// Plain integers, as the kernels have them.
unsafe impl cudarc::driver::DeviceRepr for Parts {}

impl Parts {
    /// Nodes of these levels at these places, in the order of the tree.
    pub fn new(nodes: impl Iterator<Item = (u32, usize)>) -> Parts {
        let mut parts = Parts { count: 0, level: [0; MOST_PARTS], place: [0; MOST_PARTS] };
        for (at, (level, place)) in nodes.enumerate() {
            (parts.level[at], parts.place[at]) = (level as u8, place as u8);
            parts.count = at as i32 + 1;
        }
        parts
    }

    /// So many leaves, one after the other.
    pub fn leaves(count: usize) -> Parts {
        Parts::new((0..count).map(|place| (0, place)))
    }
}

/// A batch, shared by the ranks of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub leaves: Leaves,
    /// Examples of a leaf; the batch's last one may have fewer.
    pub length: usize,
    rank: usize,
    ranks: usize,
}

impl Share {
    /// A batch of that many examples. The leaves' length depends on nothing else: an eighth of the batch, at least 1 and at most
    /// [`LONGEST`], unless that would make more than [`MOST_LEAVES`].
    pub fn new(batch: usize, rank: usize, ranks: usize) -> Share {
        let length = (batch / 8).clamp(1, LONGEST).max(batch.div_ceil(MOST_LEAVES));
        Share { leaves: Leaves::of_length(batch, length), length, rank, ranks }
    }

    /// This rank's leaves.
    pub fn mine(&self) -> Range<usize> {
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
        let mine = self.mine();
        let of = |node: Node| (node.start - mine.start, Parts::leaves(self.leaves.under(node).len()));
        self.nodes(self.rank).into_iter().map(of).collect()
    }

    /// Nodes of the rank that sends most: every rank sends as many, the last of them empty.
    pub fn most_nodes(&self) -> usize {
        (0..self.ranks).map(|rank| self.nodes(rank).len()).max().unwrap_or(0)
    }

    /// All ranks' nodes, where each rank's begin at a multiple of [`Share::most_nodes`].
    pub fn received(&self) -> Parts {
        let most = self.most_nodes();
        let of_rank = |rank: usize| self.nodes(rank).into_iter().enumerate().map(move |(at, node)| (node.level, rank * most + at));
        Parts::new((0..self.ranks).flat_map(of_rank))
    }
}
