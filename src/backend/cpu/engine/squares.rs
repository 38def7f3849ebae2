//! The sum over examples of the squared norm of each one's gradient.
//!
//! Each example's gradient is formed, one at a time, in a buffer that stays in the cache. Norms by Gram matrices of patches would need products of
//! all pairs of positions (576² × 25 for Simple-CNN's first layer, where its filter gradient takes 576 × 25 × 32), and know no masks.

use std::ops::Range;

use super::backend::CpuBackend;
use super::context::{Context, Seat};
use super::sums::slots;
use crate::Result;
use crate::backend::cpu::dense::LOGITS;
use crate::comm::sum_of_blocks;
use crate::pruning::Mask;

/// Examples that one thread sums over by itself; sums of blocks are added in order. It is no function of ranks or threads.
const BLOCK: usize = 64;

/// Partial sums of one example's squares: enough to keep any vector unit busy. The number is the same on every vector unit, so the bits are too.
const PARTS: usize = 16;

impl CpuBackend<'_> {
    pub(super) fn sum_of_squares(&mut self, weights: &[f32], mask: &Mask, examples: usize) -> Result<f64> {
        let blocks = examples.div_ceil(BLOCK);
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        let version = self.versions(1);
        let mut mine: Vec<(usize, f64)> = (rank..blocks).step_by(ranks).map(|block| (block, 0.0)).collect();
        self.threads.each(mine.iter_mut().collect(), |context, seat, (block, sum)| {
            let range = *block * BLOCK..((*block + 1) * BLOCK).min(examples);
            *sum = context.block_of_squares(seat, weights, mask, version, range);
        });
        self.vote()?;
        Ok(sum_of_blocks(self.communicator, mine.iter().map(|(_, sum)| *sum), blocks))
    }
}

impl Context<'_> {
    /// The sum over one thread's examples at physical weights; the mask is that of the logical network, in whose order gradients are collected.
    fn block_of_squares(&self, seat: &mut Seat, weights: &[f32], mask: &Mask, version: u64, examples: Range<usize>) -> f64 {
        let Seat { worker, stack, indices, .. } = seat;
        worker.prepare(&self.scored, weights, version, true);
        let places = slots(stack, 3, self.scored.length.max(self.network.parameters() + LOGITS));
        let [leaf, between, gradient] = places else { return f64::NAN };
        let mut sum = 0.0;
        for example in examples {
            if self.interrupted() {
                break;
            }
            indices.clear();
            indices.push(example as u32);
            worker.gather(&self.dataset.training, &self.tables, indices);
            self.scored.clear(&mut leaf[..self.scored.length]);
            worker.gradient(&self.scored, weights, 1.0, leaf, 1);
            self.scored.collect(self.unit, &self.network, &self.whole, leaf, between, gradient);
            let gradient = &gradient[..self.task.network.parameters()];
            sum += match mask {
                Mask::Dense(_) => {
                    squares(gradient.chunks(PARTS).map(|chunk| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0.0))))
                }
                Mask::Sparse { kept, .. } => squares(
                    kept.chunks(PARTS).map(|chunk| std::array::from_fn(|i| chunk.get(i).map_or(0.0, |&index| gradient[index as usize]))),
                ),
            };
        }
        sum
    }
}

/// Σ x² in [`PARTS`] chains, added in order.
fn squares(chunks: impl Iterator<Item = [f32; PARTS]>) -> f64 {
    let mut parts = [0.0_f64; PARTS];
    for chunk in chunks {
        for (part, value) in parts.iter_mut().zip(chunk) {
            *part += f64::from(value) * f64::from(value);
        }
    }
    parts.iter().sum()
}
