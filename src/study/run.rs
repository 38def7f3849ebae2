//! Measuring a study: cell after cell, each published as soon as it is finished.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::backend::Backend;
use crate::backend::cpu::{CpuBackend, Level};
use crate::comm::{Communicator, agree, host_name};
use crate::config::{Loaded, goal_threshold};
use crate::data::Dataset;
use crate::network::Network;
use crate::progress::{Event, Observer};
use crate::results::{self, Environment, Results, WorkloadSummary};
use crate::study::CellKey;
use crate::training::{CellWork, Decision, Groups, Masks, measure};
use crate::version::{COMMIT, VERSION, VERSION_AND_COMMIT};
use crate::{Error, Result};

/// Where a study runs.
pub struct Place<'a> {
    /// All ranks.
    pub world: &'a dyn Communicator,
    /// What MPI calls itself, or "none".
    pub mpi_library: String,
    /// Threads of this rank.
    pub threads: usize,
    /// The vector unit.
    pub level: Level,
}

/// Measures a study on all ranks and publishes it at `output` after every cell. Every rank must call it alike; all return the same results.
pub fn run(loaded: &Loaded, dataset: &Dataset, place: &Place, output: &Path, observer: &mut dyn Observer) -> Result<Results> {
    let (study, world) = (&loaded.study, place.world);
    agree(world, "program", VERSION_AND_COMMIT)?;
    agree(world, "configuration", &loaded.digest)?;
    agree(world, "data", &dataset.digest)?;

    let network = Arc::new(Network::new(study.workload.network));
    let threshold = goal_threshold(study.workload.goal_error, dataset.validation.len() as u64) as u32;
    let trials = study.search.draw(study.grid.trials);
    let mut masks = Masks::new(&network, &study.pruning);
    let mut scorer = CpuBackend::new(network.clone(), dataset, place.level, place.threads, world);
    let mut results = begin(loaded, dataset, place, scorer.describe(), threshold, network.parameters());
    let keys = cells(study);
    observer.event(&Event::Study {
        name: &loaded.name,
        device: &results.environment.device,
        ranks: world.size(),
        cells: keys.len(),
        trials: study.grid.trials,
        threshold,
        validation_examples: dataset.validation.len(),
    });
    for (index, &key) in keys.iter().enumerate() {
        let size = Groups::ranks_a_batch(world.size(), key.batch_size as usize, study.execution.data_parallel as usize);
        let groups = Groups::new(world, size);
        let mut backend = CpuBackend::new(network.clone(), dataset, place.level, place.threads, groups.local());
        observer.event(&Event::CellStarted { key, index, max_steps: study.workload.max_steps, ranks_a_batch: size });
        let work = CellWork {
            workload: &study.workload,
            key,
            trials: &trials,
            threshold,
            race: study.execution.race,
            full_evaluation: study.execution.full_evaluation,
        };
        let clock = Instant::now();
        if key.sparsity > 0.0 {
            masks.score(&mut scorer, trials.len() as u64, dataset.training.len())?;
        }
        let mut cell = measure(&work, &mut backend, &groups, &masks, &mut |moment| {
            observer.event(&Event::Evaluated { key, moment, seconds: clock.elapsed().as_secs_f64() });
            Decision::Continue
        })?;
        cell.seconds = clock.elapsed().as_secs_f64();
        let steps: u64 = cell.trials.iter().map(|trial| u64::from(trial.steps_run)).sum();
        for trial in &mut cell.trials {
            trial.seconds = cell.seconds * f64::from(trial.steps_run) / steps.max(1) as f64;
        }
        observer.event(&Event::CellFinished { cell: &cell });
        results.cells.push(cell);
        results.complete = results.cells.len() == keys.len();
        results.environment.finished = now();
        if world.rank() == 0 {
            results::write(output, &results)?;
        }
    }
    Ok(results)
}

/// The cells of a study, in the order in which they are measured.
pub fn cells(study: &crate::config::Study) -> Vec<CellKey> {
    let grid = &study.grid;
    let row = |&batch_size: &u32| grid.sparsities.iter().map(move |&sparsity| CellKey { batch_size, sparsity });
    grid.batch_sizes.iter().flat_map(row).collect()
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The results of a study with no cell measured yet.
fn begin(loaded: &Loaded, dataset: &Dataset, place: &Place, device: String, threshold: u32, parameters: usize) -> Results {
    let workload = &loaded.study.workload;
    let started = now();
    Results {
        configuration: loaded.text.clone(),
        environment: Environment {
            program_version: VERSION.into(),
            commit: COMMIT.into(),
            mpi_library: place.mpi_library.clone(),
            ranks: place.world.size() as u32,
            threads: place.threads as u32,
            host: host_name(),
            device,
            data_digest: dataset.digest.clone(),
            finished: started.clone(),
            started,
        },
        workload: WorkloadSummary {
            dataset: workload.dataset.to_string(),
            network: workload.network.to_string(),
            optimizer: workload.optimizer.to_string(),
            schedule: workload.schedule.to_string(),
            goal_error: workload.goal_error,
            goal_threshold: threshold,
            validation_examples: dataset.validation.len() as u32,
            test_examples: dataset.test.len() as u32,
            max_steps: workload.max_steps,
            evaluate_every: workload.evaluate_every,
            parameters: parameters as u32,
        },
        cells: Vec::new(),
        complete: false,
    }
}

/// The CPU, or the reason why not. The GPU is asked for by name or taken if there is one.
///
/// # Errors
/// [`Error::Device`] for `cuda`: this version trains on the CPU alone.
pub fn choose_device(name: crate::config::DeviceName) -> Result<(Level, String)> {
    use crate::config::DeviceName;
    let level = Level::best();
    match name {
        DeviceName::Cuda => Err(Error::Device {
            device: "cuda".into(),
            problem: format!(
                "expected a GPU back end, found none in this version of dps ({}); use --device cpu",
                if gpu_library() { "an NVIDIA driver is installed" } else { "nor an NVIDIA driver on this machine" }
            ),
        }),
        DeviceName::Cpu => Ok((level, String::new())),
        DeviceName::Auto => Ok((level, format!("device auto: CPU with {}", level.name()))),
    }
}

#[cfg(feature = "cuda")]
fn gpu_library() -> bool {
    // cudarc panics when it needs a library that is not there; this asks first.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

#[cfg(not(feature = "cuda"))]
fn gpu_library() -> bool {
    false
}
