//! The sum of a batch over ranks that are threads: its bits, and how many floats a rank receives for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dps::comm::{Communicator as _, Exchanged, Leaves, Node, Rows, add, additions};

use super::ranks::Ranks;
use super::scheduler::Scheduler;

/// A leaf's sum in one column: values of many sizes, whose sum depends on its order.
fn leaf(leaf: usize, column: usize) -> f32 {
    let hash = (leaf * 7919 + column + 1) as u32;
    let hash = (hash ^ hash >> 15).wrapping_mul(0x2c1b_3c6d);
    (hash as i32 as f32) * 2.0_f32.powi((hash % 40) as i32 - 20)
}

/// The sums of these nodes, added up in the tree's order.
fn rows(leaves: Leaves, nodes: &[Node], columns: usize) -> Rows {
    let mut floats = Vec::new();
    for &node in nodes {
        let under: Vec<Node> = leaves.under(node).map(|start| Node { start, level: 0 }).collect();
        let mut sums: Vec<Vec<f32>> = under.iter().map(|node| (0..columns).map(|column| leaf(node.start, column)).collect()).collect();
        for (to, from) in additions(leaves, &under, &[node]).0 {
            let from = std::mem::take(&mut sums[from]);
            add(&mut sums[to], &from);
        }
        floats.append(&mut sums[0]);
    }
    Rows { columns, floats }
}

/// Adds up a batch on so many ranks: the bits of each rank's total, and the floats that it has received.
fn sums(ranks: usize, leaves: Leaves, columns: usize) -> Vec<(Vec<u32>, usize)> {
    let scheduler = Scheduler::new(1);
    let totals = Arc::new(Mutex::new(Vec::new()));
    let theirs = totals.clone();
    scheduler.start_world(ranks, Duration::MAX, Vec::new(), move |_, rank, group| {
        let all = Ranks::of_world(group, rank, ranks);
        let mut sums = rows(leaves, &leaves.nodes(leaves.slice(rank, all.size())), columns);
        Exchanged::default().sum(&all, leaves, &mut sums, add);
        let bits = sums.floats[..columns].iter().map(|sum| sum.to_bits()).collect();
        theirs.lock().unwrap().push((bits, all.received.get()));
    });
    assert_eq!(scheduler.run().problem, None);
    let totals = std::mem::take(&mut *totals.lock().unwrap());
    assert_eq!(totals.len(), ranks);
    totals
}

#[test]
fn any_number_of_ranks_adds_up_the_same_bits() {
    // Ranks without an example, ranks without a column, and more columns than are exchanged at a time.
    for (ranks, batch, columns) in [(1, 40, 13), (3, 100, 5), (7, 3, 10), (64, 1000, 40), (3, 37, (1 << 20) + 7)] {
        let leaves = Leaves::new(batch);
        let whole = rows(leaves, &leaves.nodes(0..leaves.count()), columns);
        let whole: Vec<u32> = whole.floats.iter().map(|sum| sum.to_bits()).collect();
        for (total, _) in sums(ranks, leaves, columns) {
            assert!(total == whole, "{ranks} ranks, {batch} examples, {columns} columns");
        }
    }
}

/// docs/cluster.md has the table that this test and the next one print.
#[test]
fn a_rank_receives_few_totals_however_many_ranks_there_are() {
    received(&[(2, 256), (8, 8192), (12, 8192), (64, 8192), (500, 8192), (512, 8192)]);
}

#[test]
#[ignore = "more than a minute; make scale"]
fn a_rank_of_a_thousand_receives_few_totals() {
    received(&[(1000, 16_384), (1024, 16_384)]);
}

/// Prints what a rank receives for some numbers of ranks and batch sizes, and compares it with the rule.
fn received(cases: &[(usize, usize)]) {
    println!("ranks  batch  totals that a rank receives  all ranks' sums");
    for &(ranks, batch) in cases {
        let (leaves, columns) = (Leaves::new(batch), 2 * ranks);
        let all: usize = (0..ranks).map(|rank| leaves.nodes(leaves.slice(rank, ranks)).len()).sum();
        let most = sums(ranks, leaves, columns).into_iter().map(|(_, received)| received).max().unwrap() as f64 / columns as f64;
        println!("{ranks:>5}  {batch:>5}  {most:>28.1}  {all:>15}");
        assert_eq!(most, 1.0 + all as f64 / ranks as f64);
    }
}
