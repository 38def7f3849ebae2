//! Masks of iterated criteria: each is made by one thread of one rank, and every rank gets all of them.

use std::panic::resume_unwind;

use crate::backend::{Interrupt, reference};
use crate::comm::{Communicator, together};
use crate::network::{Network, initial_weights};
use crate::pruning::{BiasPruning, Iterated, Mask, Untrained, in_rounds, kept_parameters};
use crate::records::MaskRecord;
use crate::{Error, Result};

/// Who makes masks.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// Threads of each.
    pub threads: usize,
    /// Whether to give up.
    pub interrupt: Interrupt,
}

impl Workers<'_> {
    /// How many masks they make at once.
    pub fn all(&self) -> usize {
        self.world.size() * self.threads.max(1)
    }

    /// The masks of some seeds' networks at one sparsity, in the order of the seeds. All ranks must call it alike; the masks do not depend on how
    /// many they are.
    ///
    /// # Errors
    /// [`Error::Interrupted`] where a rank is to give up. [`Error::Configuration`] where the network's flow is not finite.
    pub fn masks(
        &self,
        criterion: &dyn Iterated,
        network: &Network,
        seeds: &[u64],
        sparsity: f64,
        biases: BiasPruning,
    ) -> Result<Vec<MaskRecord>> {
        let (world, ranks, interrupt) = (self.world, self.world.size(), self.interrupt);
        let make = |seed| made(criterion, network, seed, sparsity, biases, interrupt);
        let mine: Vec<u64> = seeds.iter().copied().skip(world.rank()).step_by(ranks).collect();
        let made: Vec<Result<Vec<u32>>> = std::thread::scope(|scope| {
            let start = |&seed: &u64| std::thread::Builder::new().spawn_scoped(scope, move || make(seed)).map_err(|_| seed);
            let begun: Vec<_> = mine.iter().map(start).collect();
            // A thread that could not be started is replaced by this one.
            let end = |thread: std::result::Result<std::thread::ScopedJoinHandle<'_, _>, u64>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(seed) => make(seed),
            };
            begun.into_iter().map(end).collect()
        });
        let is_interrupted = made.iter().any(|mask| matches!(mask, Err(Error::Interrupted)));
        if world.all_gather_words(&[is_interrupted.into()]).contains(&1) {
            return Err(Error::Interrupted);
        }
        let made = together(world, made.into_iter().collect::<Result<Vec<_>>>())?;
        // All masks of a sparsity keep equally many, and every rank sends as many masks as the one that has most.
        let kept = kept_parameters(network, sparsity, biases);
        let most = seeds.len().div_ceil(ranks);
        let mut words: Vec<u64> = made.iter().flatten().map(|&index| index.into()).collect();
        words.resize(most * kept, 0);
        let all = world.all_gather_words(&words);
        let received = |(number, &seed): (usize, &u64)| {
            let from = (number % ranks * most + number / ranks) * kept;
            MaskRecord { seed, sparsity, kept: all[from..][..kept].iter().map(|&word| word as u32).collect() }
        };
        Ok(seeds.iter().enumerate().map(received).collect())
    }
}

/// The parameters that the mask of a seed's network keeps.
fn made(
    criterion: &dyn Iterated,
    network: &Network,
    seed: u64,
    sparsity: f64,
    biases: BiasPruning,
    interrupt: Interrupt,
) -> Result<Vec<u32>> {
    let weights = initial_weights(network, seed);
    let mask = in_rounds(criterion, &Untrained { network, seed, weights: &weights }, sparsity, biases, |magnitudes| {
        if interrupt() {
            return Err(Error::Interrupted);
        }
        let (gradient, flow) = reference::flow(network, magnitudes);
        if !flow.is_finite() {
            let problem = "expected a network through which less flows than the largest number of 64 bits, found one through which more does, which \
                           the criterion cannot score; use fewer layers or another criterion";
            return Err(Error::Configuration { path: "pruning.criterion".into(), problems: vec![problem.into()] });
        }
        Ok(gradient)
    })?;
    Ok(match mask {
        Mask::Sparse { kept, .. } => kept,
        Mask::Dense(parameters) => (0..parameters as u32).collect(),
    })
}
