//! How much memory a study takes, computed before anything is allocated.

use std::sync::Arc;

use crate::backend::cpu::{Physical, Wave};
use crate::config::{Metaparameter, Study, first_of};
use crate::data::Facts;
use crate::network::Network;
use crate::pruning::{Scoring, kept_parameters};
use crate::records::cells;
use crate::training::Groups;

/// Memory that a study takes on each rank, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Bytes while it reads its data and trains.
    pub bytes: u64,
    /// Bytes on rank 0 while it saves a checkpoint of all trials.
    pub saving: u64,
}

/// The processors that a study runs on, and what runs there at once.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// All ranks.
    pub ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Trials that all ranks together may train at once.
    pub lanes: usize,
    /// Bytes that the program has before it does anything.
    pub program: u64,
}

impl Memory {
    /// What `study` of such data takes on `processors`.
    pub fn on(processors: &Processors, study: &Study, facts: &Facts, network: &Arc<Network>) -> Memory {
        let Processors { ranks, threads, lanes, program } = *processors;
        let (parameters, numbers) = (network.parameters(), study.workload.optimizer.kept_numbers());
        let averaged = study.search.settings.get(Metaparameter::AverageDecay).is_some();
        let trials = study.grid.trials as usize;
        let lanes = lanes.clamp(1, trials.max(1));
        let validation = facts.validation(study.data.validation_fraction);
        let data = facts.bytes(facts.training + facts.test);
        let mut sparse = study.grid.sparsities.iter().copied().filter(|&sparsity| sparsity > 0.0);
        // Every rank keeps every trial's scores, or its masks.
        let scores = match Scoring::of(&study.pruning) {
            Scoring::Once(_) => sparse.next().map_or(0, |_| parameters),
            Scoring::Rounds(_) => sparse.map(|sparsity| kept_parameters(network, sparsity, study.pruning.biases)).sum(),
        };
        let scores = 4 * (trials * scores) as u64;
        let state = 4 * (parameters * (1 + numbers + usize::from(averaged)) + validation) as u64;

        let physical = Physical::new(network);
        let (mut training, mut saving) = (0, 0);
        for key in cells(&study.grid) {
            let batch = key.batch_size as usize;
            let size = Groups::ranks_a_batch(ranks, batch, study.execution.data_parallel as usize);
            let mine = lanes.div_ceil(ranks / size);
            let kept = (parameters as f64 * (1.0 - key.sparsity)).round() as usize;
            // Measured trials have their masks and the weights before a step and after it once more.
            let measured =
                study.smoothness.map_or(0, |settings| first_of(settings.trials, mine as u64)) * 4 * (2 * parameters + kept) as u64;
            let bytes = Wave { batch, kept, lanes: mine, ranks: size, threads, validation, numbers, averaged }.bytes(&physical) + measured;
            // What a rank sends of its trials' states, and what rank 0 has received, whole and cut into one for each rank.
            let copies = mine + 2 * lanes;
            training = training.max(bytes);
            saving = saving.max(bytes + copies as u64 * state);
        }
        // The validation examples are copied out of the training file before it is shortened; each place of it has a number and a flag.
        let reading = program + data + facts.bytes(validation) + 5 * facts.training as u64;
        let held = program + data + scores;
        Memory { bytes: reading.max(held + training), saving: reading.max(held + saving) }
    }
}
