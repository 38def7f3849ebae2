//! The sum of a batch over ranks: each rank adds up some columns of all nodes' sums, then every rank gathers the totals.
//!
//! A rank so receives about as many floats as its own nodes have, on any number of ranks, and adds up its share of the columns only. The
//! additions are the tree's, column by column, so neither the ranks nor their shares change a bit of the total.

use std::ops::Range;

use super::tree::add_blocks;
use super::{Communicator, Leaves, Node, additions};

/// The sum of a number for each of some blocks, in the order of the blocks, the same bits on every rank. Rank r of R has the numbers of blocks r,
/// r + R, r + 2R, …
pub fn sum_of_blocks(group: &dyn Communicator, mine: impl IntoIterator<Item = f64>, blocks: usize) -> f64 {
    let ranks = group.size();
    let mut words: Vec<u64> = mine.into_iter().map(f64::to_bits).collect();
    words.resize(blocks.div_ceil(ranks), 0);
    let all = group.all_gather_words(&words);
    (0..blocks).map(|block| f64::from_bits(all[block % ranks * words.len() + block / ranks])).sum()
}

/// Columns that are exchanged at a time, at most: 4 MiB a node. More would gain nothing, and take memory.
const PIECE: usize = 1 << 20;

/// A rank's sums of its nodes, which become the totals of the whole batch.
pub trait NodeSums {
    /// Floats of a node's sum; as many on every rank.
    fn columns(&self) -> usize;

    /// Appends these columns of the sum of this rank's node number `node`.
    fn append(&self, node: usize, columns: Range<usize>, to: &mut Vec<f32>);

    /// Takes the totals of these columns. Their nodes' sums are not asked for afterwards.
    fn set_total(&mut self, columns: Range<usize>, total: &[f32]);
}

/// Sums of nodes, one after the other.
pub struct Rows {
    /// Floats of a node's sum.
    pub columns: usize,
    /// `[node][column]`; the total is the first row.
    pub floats: Vec<f32>,
}

impl NodeSums for Rows {
    fn columns(&self) -> usize {
        self.columns
    }

    fn append(&self, node: usize, columns: Range<usize>, to: &mut Vec<f32>) {
        to.extend_from_slice(&self.floats[node * self.columns..][columns]);
    }

    fn set_total(&mut self, columns: Range<usize>, total: &[f32]) {
        // A rank without examples has no row yet.
        self.floats.resize(self.floats.len().max(self.columns), 0.0);
        self.floats[columns].copy_from_slice(total);
    }
}

/// Adds `from` to `to`, one by one.
pub fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

/// Buffers of an exchange, kept from one to the next.
#[derive(Default)]
pub struct Exchanged {
    sent: Vec<f32>,
    received: Vec<f32>,
    total: Vec<f32>,
}

impl Exchanged {
    /// Adds up the sums of all nodes of a group, whose ranks have the leaves of [`Leaves::slice`]; `add` adds its second argument to its first.
    /// Every rank of the group must call it.
    pub fn sum(&mut self, group: &dyn Communicator, leaves: Leaves, sums: &mut impl NodeSums, add: impl Fn(&mut [f32], &[f32])) {
        let (rank, ranks) = (group.rank(), group.size());
        let nodes: Vec<Vec<Node>> = (0..ranks).map(|rank| leaves.nodes(leaves.slice(rank, ranks))).collect();
        let (order, root) = additions(leaves, &nodes.concat(), &leaves.nodes(0..leaves.count()));
        let mine = nodes[rank].len();
        let columns = sums.columns();
        for first in (0..columns).step_by(PIECE) {
            let piece = PIECE.min(columns - first);
            let share = |rank: usize| first + piece * rank / ranks..first + piece * (rank + 1) / ranks;
            let widths: Vec<usize> = (0..ranks).map(|rank| share(rank).len()).collect();
            let width = widths[rank];

            self.sent.clear();
            for owner in 0..ranks {
                (0..mine).for_each(|node| sums.append(node, share(owner), &mut self.sent));
            }
            let sent: Vec<usize> = widths.iter().map(|width| mine * width).collect();
            let received: Vec<usize> = nodes.iter().map(|nodes| nodes.len() * width).collect();
            group.all_to_all(&self.sent, &sent, &received, &mut self.received);
            if width > 0 {
                add_blocks(&mut self.received.chunks_exact_mut(width).collect::<Vec<_>>(), &order, &add);
            }
            let total = root.first().map_or(&[][..], |root| &self.received[root * width..][..width]);
            group.all_gather(total, &widths, &mut self.total);
            sums.set_total(first..first + piece, &self.total);
        }
    }

    /// Floats that an exchange has in memory at a time, about, on a rank that sends the sums of `nodes` nodes of so many columns.
    pub fn floats(nodes: u64, columns: u64) -> u64 {
        (2 * nodes + 1) * columns.min(PIECE as u64)
    }
}
