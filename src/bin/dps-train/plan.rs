//! `dps-train CONFIG --plan`: what a study would cost, without training.

use dps::arguments::StudyArguments;
use dps::backend::Chosen;
#[cfg(feature = "cuda")]
use dps::backend::Device;
use dps::backend::cpu::{SHARING, peak_flop};
use dps::comm::{self, Communicator, MemoryLimit};
use dps::study;
use dps::study::{CostBound, Memory, Processors, Site};

use crate::study::{Prepared, threads};

/// The network's layers, what the study would cost at most, and what it probably takes, on the ranks of `world`.
pub fn plan(arguments: &StudyArguments, prepared: &Prepared, world: &dyn Communicator) -> String {
    let bound = bound(prepared, world);
    let Prepared { configuration, facts, network, .. } = prepared;
    let study = &configuration.study;
    let expected = study::expected(&bound, configuration, &arguments.output()).map_or(String::new(), |words| format!("{words}\n"));
    let own = facts.own_validation.map_or(String::new(), |examples| {
        format!("Validation: {examples} examples, a set of the data's own; data.validation_fraction is not used.\n")
    });
    format!("{}\n{bound}{own}{expected}", study::layer_table(study, network))
}

/// Cost of a study at most, on the ranks of `world`.
pub fn bound(prepared: &Prepared, world: &dyn Communicator) -> CostBound {
    let Prepared { configuration, facts, network, chosen, .. } = prepared;
    let study = &configuration.study;
    let (ranks, threads) = (world.size(), threads(study, comm::threads(world)));
    let limit = MemoryLimit::of(world, threads);
    let validation = facts.validation(study.data.validation_fraction);
    let (device, units, sharing, rate, on_host) = match &**chosen {
        Chosen::Cpu(unit) => {
            let units = ranks * threads;
            let noun = if units == 1 { "CPU thread" } else { "CPU threads" };
            let device = format!("{noun} with {}, at the measured multiply-add peak of one", unit.name());
            (device, units, SHARING, peak_flop(*unit), true)
        }
        #[cfg(feature = "cuda")]
        Chosen::Cuda(cuda) => {
            let device = format!("{}, at the 32-bit peak of its clock", cuda.name());
            (device, ranks, cuda.sharing(network), cuda.peak_flop(), false)
        }
    };
    let processors = Processors { ranks, threads, on_host, sharing };
    let (lanes, memory) = Memory::fitting(&processors, &limit, study, facts, network);
    let site = Site {
        training_examples: (facts.training - facts.held_out(study.data.validation_fraction)) as u64,
        validation_examples: validation as u64,
        device,
        units: units as u32,
        ranks,
        sharing,
        lanes: lanes as u32,
        flop_per_second: rate * units as f64,
        memory,
        limit,
    };
    CostBound::new(study, network, site)
}
