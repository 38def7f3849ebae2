//! From which batch size on ranks share a batch, where a study leaves that to the program.

/// Examples of a batch that each rank must get for it to pay that ranks share the batch, by device and network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// Examples a rank, however few ranks share the batch.
    pub least: f64,
    /// Further examples a rank for each other rank whose gradients it gets.
    pub each_peer: f64,
}

impl Sharing {
    /// Ranks D that share a batch of `batch` examples in a world of `ranks`: `wanted`, or where `wanted` is 0, as many as each get the examples
    /// that sharing takes. The number of groups must be whole, so D is the largest divisor of the number of ranks that is no more.
    pub fn ranks_a_batch(&self, ranks: usize, batch: usize, wanted: usize) -> usize {
        let pays = |size: usize| match wanted {
            0 => (batch / size) as f64 >= self.least + self.each_peer * (size - 1) as f64,
            most => size <= most,
        };
        (1..=ranks).rev().find(|&size| ranks.is_multiple_of(size) && pays(size)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_a_batch_divide_the_world_and_get_examples_enough_unless_told_otherwise() {
        let sixteen = Sharing { least: 16.0, each_peer: 0.0 };
        for (ranks, batch, wanted, expected) in
            [(8, 128, 0, 8), (8, 127, 0, 4), (8, 16, 0, 1), (8, 2, 0, 1), (6, 80, 0, 3), (3, 37, 0, 1), (8, 64, 2, 2), (4, 2, 4, 4)]
        {
            assert_eq!(sixteen.ranks_a_batch(ranks, batch, wanted), expected, "{ranks} {batch} {wanted}");
        }
        // With 10 examples for each peer, 8 ranks need 70 each.
        let by_peers = Sharing { least: 1.0, each_peer: 10.0 };
        for (batch, expected) in [(568, 8), (567, 4), (124, 4), (123, 2), (22, 2), (21, 1)] {
            assert_eq!(by_peers.ranks_a_batch(8, batch, 0), expected, "{batch}");
        }
    }
}
