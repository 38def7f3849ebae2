//! The order of the gradient sum: leaves of a fixed length, added in one binary tree over the whole batch.
//!
//! A rank computes whole nodes of the tree, so the sum has the same bits on any number of ranks.

use std::ops::Range;

/// A batch cut into leaves: runs of consecutive examples whose gradients are summed one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaves {
    batch: usize,
    length: usize,
}

/// A node of the tree: leaves `start` up to `start + 2^level`, as far as the batch has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// First leaf; a multiple of 2^level.
    pub start: usize,
    /// Height above the leaves.
    pub level: u32,
}

impl Leaves {
    /// Longest leaf, in examples: long enough that adding two leaves' gradients costs under 1 % of computing them.
    pub const LONGEST: usize = 8;

    /// The leaves of a batch of that many examples. Their length depends on nothing else: an eighth of the batch, at least 1 example and
    /// at most [`Leaves::LONGEST`].
    pub fn new(batch: usize) -> Leaves {
        Leaves { batch, length: (batch / 8).clamp(1, Leaves::LONGEST) }
    }

    /// The leaves of a batch, of a length that a device chooses; it must depend on the batch alone.
    pub fn of_length(batch: usize, length: usize) -> Leaves {
        Leaves { batch, length: length.max(1) }
    }

    /// Number of leaves.
    pub fn count(&self) -> usize {
        self.batch.div_ceil(self.length)
    }

    /// Examples of a leaf; the last one may be shorter.
    pub fn examples(&self, leaf: usize) -> Range<usize> {
        leaf * self.length..((leaf + 1) * self.length).min(self.batch)
    }

    /// The leaves of rank `rank` of `size`: slices differ by at most one leaf, and may be empty.
    pub fn slice(&self, rank: usize, size: usize) -> Range<usize> {
        self.count() * rank / size..self.count() * (rank + 1) / size
    }

    /// The leaves under a node.
    pub fn under(&self, node: Node) -> Range<usize> {
        node.start..(node.start + (1 << node.level)).min(self.count())
    }

    /// The fewest nodes that make up a slice, in order.
    pub fn nodes(&self, slice: Range<usize>) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut start = slice.start;
        while start < slice.end {
            let node = self.highest(start..slice.end);
            nodes.push(node);
            start = self.under(node).end;
        }
        nodes
    }

    /// The highest node that begins where a slice does and has no leaf outside of it, nor is higher than its leaves need. At the end of the batch it
    /// may reach beyond: there is nothing there to add.
    fn highest(&self, slice: Range<usize>) -> Node {
        let mut node = Node { start: slice.start, level: 0 };
        while self.under(node).end < slice.end {
            let parent = Node { start: slice.start, level: node.level + 1 };
            if !parent.start.is_multiple_of(1 << parent.level) || self.under(parent).end > slice.end {
                break;
            }
            node = parent;
        }
        node
    }

    /// A node's two children, where it has leaves in both.
    pub fn children(&self, node: Node) -> Option<[Node; 2]> {
        let level = node.level.checked_sub(1)?;
        let right = Node { start: node.start + (1 << level), level };
        (right.start < self.count()).then_some([Node { start: node.start, level }, right])
    }
}

/// The additions (to, from), in order, that turn the sums of `parts` into those of `wholes`: every part lies under one of the wholes, both
/// are in order and cover the same leaves. Afterwards the sum of each whole stands where its first part stood; those places are returned too.
pub fn additions(leaves: Leaves, parts: &[Node], wholes: &[Node]) -> (Vec<(usize, usize)>, Vec<usize>) {
    fn gather(leaves: Leaves, parts: &[Node], node: Node, next: &mut usize, out: &mut Vec<(usize, usize)>) -> usize {
        let part = parts[*next];
        if leaves.under(part) == leaves.under(node) {
            *next += 1;
            return *next - 1;
        }
        match leaves.children(node) {
            Some([left, right]) => {
                let to = gather(leaves, parts, left, next, out);
                let from = gather(leaves, parts, right, next, out);
                out.push((to, from));
                to
            }
            None => gather(leaves, parts, Node { level: node.level - 1, ..node }, next, out),
        }
    }
    let (mut next, mut out) = (0, Vec::new());
    let places = wholes.iter().map(|&whole| gather(leaves, parts, whole, &mut next, &mut out)).collect();
    (out, places)
}

/// Runs the additions (to, from) over blocks of as many floats; `add` adds its second argument to its first.
pub(crate) fn add_blocks(blocks: &mut [&mut [f32]], order: &[(usize, usize)], add: impl Fn(&mut [f32], &[f32])) {
    for &(to, from) in order {
        // `to` is always smaller than `from`.
        let (left, right) = blocks.split_at_mut(from);
        add(left[to], right[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expression a sum is, written out: equal text means equal bits.
    fn expression(leaves: Leaves, node: Node) -> String {
        match leaves.children(node) {
            Some([left, right]) => format!("({}+{})", expression(leaves, left), expression(leaves, right)),
            None if node.level > 0 => expression(leaves, Node { level: node.level - 1, ..node }),
            None => node.start.to_string(),
        }
    }

    fn root(leaves: Leaves) -> Node {
        leaves.nodes(0..leaves.count())[0]
    }

    #[test]
    fn the_sum_is_the_same_expression_on_any_number_of_ranks() {
        for batch in [1, 2, 3, 5, 7, 8, 16, 37, 64, 100, 129, 1000, 1024] {
            let leaves = Leaves::new(batch);
            assert_eq!(leaves.nodes(0..leaves.count()).len(), 1);
            let expected = expression(leaves, root(leaves));
            for size in 1..=9 {
                let mut parts = Vec::new();
                for rank in 0..size {
                    parts.extend(leaves.nodes(leaves.slice(rank, size)));
                }
                let mut sums: Vec<String> = parts.iter().map(|&part| expression(leaves, part)).collect();
                let (order, places) = additions(leaves, &parts, &[root(leaves)]);
                for (to, from) in order {
                    sums[to] = format!("({}+{})", sums[to], sums[from]);
                }
                assert_eq!(sums[places[0]], expected, "batch {batch}, {size} ranks");
            }
        }
    }

    #[test]
    fn slices_cover_the_batch_and_differ_by_one_leaf_at_most() {
        for batch in [1, 2, 3, 17, 64, 1000] {
            let leaves = Leaves::new(batch);
            for size in 1..=8 {
                let slices: Vec<_> = (0..size).map(|rank| leaves.slice(rank, size)).collect();
                assert_eq!(slices.iter().map(ExactSizeIterator::len).sum::<usize>(), leaves.count());
                let longest = slices.iter().map(ExactSizeIterator::len).max();
                let shortest = slices.iter().map(ExactSizeIterator::len).min();
                assert!(longest.zip(shortest).is_some_and(|(long, short)| long - short <= 1));
                let covered: usize = (0..leaves.count()).map(|leaf| leaves.examples(leaf).len()).sum();
                assert_eq!(covered, batch);
            }
        }
    }

    #[test]
    fn a_rank_that_has_a_power_of_two_of_the_batch_sends_one_node() {
        let leaves = Leaves::new(1024);
        for rank in 0..8 {
            assert_eq!(leaves.nodes(leaves.slice(rank, 8)).len(), 1);
        }
    }
}
