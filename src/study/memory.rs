//! How much memory a study takes, computed before anything is allocated.

use std::sync::Arc;

use crate::backend::Sharing;
use crate::backend::cpu::{Physical, Wave};
use crate::comm::MemoryLimit;
use crate::data::Facts;
use crate::network::Network;
use crate::optimizer::Metaparameter;
use crate::pruning::{Scoring, kept_parameters};
use crate::readable::si;
use crate::records::cells;
use crate::settings::{Study, first_of};

/// Part of the free memory for which trials are counted: what they take may be some percent more than this module says, and others take memory too.
const SHARE: f64 = 0.75;

/// Memory that a study takes on each rank, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Bytes while it reads its data and trains.
    pub bytes: u64,
    /// Bytes on rank 0 while it saves a checkpoint of all trials.
    pub saving: u64,
}

/// The processors that a study runs on.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// All ranks.
    pub ranks: usize,
    /// Threads of each.
    pub threads: usize,
    /// Whether the device trains in the host's memory, as the CPU does.
    pub on_host: bool,
    /// The batch sizes from which on the device's ranks share a batch.
    pub sharing: Sharing,
}

impl Memory {
    /// How many trials of `study` all ranks together train at once, and the host's memory that the study then takes: as many trials as the
    /// configuration says, or as `limit` has room for, at least one.
    pub fn fitting(processors: &Processors, limit: &MemoryLimit, study: &Study, facts: &Facts, network: &Arc<Network>) -> (usize, Memory) {
        let trials = (study.grid.trials as usize).max(1);
        let on = |lanes| Memory::on(processors, limit.program, lanes, study, facts, network);
        let fits = |lanes| {
            let Memory { bytes, saving } = on(lanes);
            limit.holds(SHARE, bytes, saving)
        };
        // One more than there is room for, and one for which there is room.
        let (mut most, mut lanes) = (trials + 1, 1);
        match study.execution.lanes as usize {
            0 if fits(trials) => lanes = trials,
            0 => {
                while most - lanes > 1 {
                    let middle = lanes.midpoint(most);
                    *(if fits(middle) { &mut lanes } else { &mut most }) = middle;
                }
            }
            set => lanes = set.min(trials),
        }
        (lanes, on(lanes))
    }

    /// Where `limit` has no room for so much, what to do.
    pub fn problem(&self, limit: &MemoryLimit) -> Option<String> {
        let words = || {
            format!(
                "expected {} of memory on each rank and {} on rank 0 while it saves a checkpoint, found {limit}: the study may be killed; set \
                 execution.lanes lower, start fewer ranks on a host, or raise the limit",
                si(self.bytes as f64, "B"),
                si(self.saving as f64, "B")
            )
        };
        (!limit.holds(1.0, self.bytes, self.saving)).then(words)
    }

    /// Memory that `study` of such data takes on `processors`, of which the program has `program` bytes before it does anything.
    pub fn on(processors: &Processors, program: u64, lanes: usize, study: &Study, facts: &Facts, network: &Arc<Network>) -> Memory {
        let Processors { ranks, threads, on_host, sharing } = *processors;
        let (parameters, numbers) = (network.parameters(), study.workload.optimizer.kept_numbers());
        let averaged = study.search.settings.get(Metaparameter::AverageDecay).is_some();
        let trials = study.grid.trials as usize;
        let seeds = study.confirm.as_ref().map_or(0, |confirm| confirm.seeds as usize);
        let lanes = lanes.clamp(1, trials.max(1));
        let validation = facts.validation(study.data.validation_fraction);
        let data = facts.bytes(facts.examples());
        let mut sparse = study.grid.sparsities.iter().copied().filter(|&sparsity| sparsity > 0.0);
        // Every rank keeps the scores, or the masks, of every trial and fresh seed.
        let scores = match Scoring::of(&study.pruning) {
            Scoring::Once(_) => sparse.next().map_or(0, |_| parameters),
            Scoring::Rounds(_) => sparse.map(|sparsity| kept_parameters(network, sparsity, study.pruning.biases)).sum(),
        };
        let scores = 4 * ((trials + seeds) * scores) as u64;
        let state = 4 * (parameters * (1 + numbers + usize::from(averaged)) + validation) as u64;

        let physical = Physical::network_of(network);
        let (mut training, mut saving) = (0, 0);
        for key in cells(&study.grid) {
            let batch = key.batch_size as usize;
            let size = sharing.ranks_a_batch(ranks, batch, study.execution.data_parallel as usize);
            let mine = lanes.div_ceil(ranks / size);
            let kept = (parameters as f64 * (1.0 - key.sparsity)).round() as usize;
            // Measured trials have their masks and the weights before a step and after it once more.
            let measured =
                study.smoothness.map_or(0, |settings| first_of(settings.trials, mine as u64)) * 4 * (2 * parameters + kept) as u64;
            let convolutions = study.execution.convolutions;
            let wave = Wave { batch, kept, lanes: mine, ranks: size, threads, validation, numbers, averaged, convolutions };
            let bytes = if on_host { wave.bytes(&physical) } else { 0 } + measured;
            // States that a rank sends of its trials, and states that rank 0 has received, whole and cut into one for each rank.
            let copies = mine + 2 * lanes;
            training = training.max(bytes);
            saving = saving.max(bytes + copies as u64 * state);
        }
        // The validation examples are copied out of the training file before it is shortened; each place of it has a number and a flag.
        let held_out = facts.bytes(facts.held_out(study.data.validation_fraction));
        let reading = program + data + held_out + 5 * facts.training as u64;
        let held = program + data + scores;
        Memory { bytes: reading.max(held + training), saving: reading.max(held + saving) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::SHARING;
    use crate::data::ImageShape;
    use crate::settings;

    /// Trials at once and memory of 200 trials on images of so many values in a process that may take `free` bytes.
    fn fitting(network: &str, image: [usize; 3], free: u64, lanes: u32) -> (usize, Memory, Study, Facts, Arc<Network>) {
        let text = format!(
            "[workload]\ndataset = \"cifar-10\"\nnetwork = \"{network}\"\noptimizer = \"momentum\"\ngoal_error = 0.1\nmax_steps = 100\n\
             evaluate_every = 10\n[grid]\nbatch_sizes = [16, 64]\nsparsities = [0, 0.9]\ntrials = 200\n[search]\nlearning_rate = 0.01\n\
             momentum = 0.9\n[execution]\nlanes = {lanes}\n"
        );
        let study = settings::parse("test", &text, &[]).unwrap().study;
        let [height, width, channels] = image;
        let facts = Facts {
            shape: ImageShape { height, width, channels },
            value_bytes: 1,
            classes: 10,
            training: 60_000,
            own_validation: None,
            test: 10_000,
        };
        let network = Arc::new(Network::of(&study.workload.network, image, 10).unwrap());
        let processors = Processors { ranks: 1, threads: 2, on_host: true, sharing: SHARING };
        let (lanes, memory) = Memory::fitting(&processors, &MemoryLimit::of_process(free), &study, &facts, &network);
        (lanes, memory, study, facts, network)
    }

    #[test]
    fn lanes_fit_with_the_copies_that_a_checkpoint_takes() {
        for (network, image, free) in [("lenet-300-100", [28, 28, 1], 400_000_000), ("vgg-like", [32, 32, 3], 25_000_000_000)] {
            let (lanes, memory, study, facts, network) = fitting(network, image, free, 0);
            let more =
                Memory::on(&Processors { ranks: 1, threads: 2, on_host: true, sharing: SHARING }, 0, lanes + 1, &study, &facts, &network);
            let room = (0.75 * free as f64) as u64;
            assert!(memory.bytes < memory.saving && memory.saving <= room && room < more.saving, "{lanes}: {memory:?} {more:?}");
            assert_eq!(memory.problem(&MemoryLimit::of_process(free)), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        // The data alone take more.
        let (lanes, memory, ..) = fitting("lenet-300-100", [28, 28, 1], 10_000_000, 0);
        assert_eq!(lanes, 1);
        let problem = memory.problem(&MemoryLimit::of_process(10_000_000)).unwrap();
        assert!(problem.contains("found 10.0 MB free of 10.0 MB by a limit for each process: the study may be killed"), "{problem}");
        let (lanes, memory, ..) = fitting("lenet-300-100", [28, 28, 1], 400_000_000, 150);
        assert_eq!(lanes, 150);
        assert!(memory.problem(&MemoryLimit::of_process(400_000_000)).is_some());
        assert_eq!(fitting("lenet-300-100", [28, 28, 1], u64::MAX, 0).0, 200);
    }
}
