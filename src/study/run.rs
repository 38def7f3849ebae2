//! Measuring a study: cell after cell. Trials are journaled as they end, and results published as soon as a cell is finished.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::files::{Files, Restored, now};
use super::place::Place;
use super::start::this_start;
use super::surroundings::Surroundings;
use crate::backend::{Backend, Device};
use crate::comm::{Communicator, agree, host_name, processor_model, together};
use crate::config::{self, Configuration, DataOrder, Study};
use crate::data::{Dataset, Facts};
use crate::error::short;
use crate::forecast::{Forecast, Measured};
use crate::journal::Partial;
use crate::network::Network;
use crate::progress::{Event, Observer};
use crate::pruning::kept_parameters;
use crate::readable::some;
use crate::records::{Cell, CellKey, Ending, Trial, all_finished, best, cells, is_finished};
use crate::results::{Environment, LONGEST_COMMAND, Results, WorkloadSummary};
use crate::training::{CellState, CellWork, Conductor, Decision, Groups, Masks, Moment, Probe, Workers, measure};
use crate::version::{COMMIT, COMPILER, SOURCE_TREE, VERSION, VERSION_AND_COMMIT};
use crate::{Error, Result, exit};

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// Every cell is measured.
    Finished(Box<Results>),
    /// A signal stopped it. Journal and checkpoint hold what was done, and the same command continues it.
    Stopped,
}

/// The network of a study of such data, once it is checked that its layers fit the images and that its masks keep anything.
///
/// # Errors
/// [`Error::Configuration`], naming the layer that does not fit, or the sparsities that keep nothing.
pub fn check(loaded: &Configuration, facts: &Facts) -> Result<Network> {
    let study = &loaded.study;
    let refuse = |problems| Error::Configuration { path: loaded.source.clone(), problems };
    let network = Network::of(&study.workload, facts.shape.into(), facts.classes);
    let network = network.map_err(|problem| refuse(vec![format!("workload.network: {problem}")]))?;
    let keeps = |sparsity: f64| kept_parameters(&network, sparsity, study.pruning.biases);
    let parameters = network.parameters();
    let problem = |sparsity: &f64| {
        format!(
            "grid.sparsities: expected a sparsity at which a parameter of {parameters} is kept, found {sparsity}, which keeps none; lower it"
        )
    };
    let problems: Vec<String> = study.grid.sparsities.iter().filter(|&&sparsity| keeps(sparsity) == 0).map(problem).collect();
    if problems.is_empty() { Ok(network) } else { Err(refuse(problems)) }
}

/// Measures a study on all ranks' devices, or what is left of it, keeping its journal, checkpoint and results at `output`. Every rank must call
/// it alike; all end alike.
pub fn run(
    loaded: &Configuration,
    dataset: &Dataset,
    place: &Place,
    device: &impl Device,
    output: &Path,
    fresh: bool,
    observer: &mut dyn Observer,
) -> Result<RunEnd> {
    let mut kept = Kept { output, fresh, files: None };
    let outcome = go_on(loaded, dataset, place, device, &mut kept, observer);
    if let Some(files) = &mut kept.files {
        let code = match &outcome {
            Ok(RunEnd::Finished(_)) => exit::DONE,
            Ok(RunEnd::Stopped) => exit::STOPPED,
            Err(error) => error.exit_code(),
        };
        files.end(Ending::of_code(code));
    }
    outcome
}

/// Where a run keeps what it measures.
struct Kept<'a> {
    output: &'a Path,
    /// Whether an earlier study's files are moved aside.
    fresh: bool,
    /// On rank 0, once they are open.
    files: Option<Files>,
}

/// Opens the files and measures.
fn go_on(
    loaded: &Configuration,
    dataset: &Dataset,
    place: &Place,
    device: &impl Device,
    kept: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<RunEnd> {
    let (study, world, surroundings) = (&loaded.study, place.world, place.surroundings);
    let network = Arc::new(check(loaded, &dataset.facts())?);
    agree(world, "program", VERSION_AND_COMMIT)?;
    agree(world, "configuration", &format!("{} {:?}", loaded.digest, study.grid))?;
    agree(world, "data", &dataset.digest)?;

    let threshold = study.workload.goal_threshold(dataset.validation.len() as u64) as u32;
    let mut scorer = together(world, device.backend(&network, dataset, world))?;
    let restored = open(loaded, dataset, &network, place, kept, observer)?;
    let (output, files) = (kept.output, &mut kept.files);
    let whole = config::parse(&loaded.name, &restored.configuration, &[])?.study.grid;
    let trials = study.search.draw(whole.trials);
    scorer.listen(Some(surroundings.stop));
    let workers = Workers { world, threads: place.threads, interrupt: surroundings.stop };
    let mut masks = Masks::new(&network, &study.pruning, workers, restored.scores, restored.masks);
    let mut results = begin(loaded, dataset, place, scorer.describe(), threshold, network.parameters());
    results.configuration = restored.configuration;
    results.environment.started = restored.started;
    results.environment.starts = restored.starts;
    results.cells = restored.finished;
    let (key, began) = (CellKey { batch_size: 0, sparsity: 0.0 }, (surroundings.now)());
    let mut driver =
        Driver { study, world, surroundings, files, observer, trials: whole.trials, key, saved: began, asked: began, cost: Duration::ZERO };

    let lanes = lanes(study, &scorer, world);
    let keys = cells(&study.grid);
    driver.observer.event(&Event::Study {
        name: &loaded.name,
        device: &results.environment.device,
        ranks: world.size(),
        cells: keys.len(),
        done: keys.iter().filter(|&&key| is_finished(&results.cells, key, whole.trials)).count(),
        trials: whole.trials,
        threshold,
        validation_examples: dataset.validation.len(),
    });
    driver.detail(|| format!("{}, digest {}:\n{}", loaded.name, loaded.digest, results.configuration.trim_end()));
    driver.detail(|| format!("data: SHA-256 {}, MPI: {}", dataset.digest, place.mpi_library));
    driver.detail(|| format!("results: {}; up to {} at once", output.display(), some(lanes, "trial")));
    results.complete = all_finished(&results.cells, &whole);
    driver.publish(&results)?;
    for (index, &key) in keys.iter().enumerate() {
        if is_finished(&results.cells, key, whole.trials) {
            continue;
        }
        let size = Groups::ranks_a_batch(world.size(), key.batch_size as usize, study.execution.data_parallel as usize);
        let groups = Groups::new(world, size);
        let mut backend = together(world, device.backend(&network, dataset, groups.local()))?;
        if key.sparsity > 0.0 && !driver.masks(&mut masks, &mut scorer, key.sparsity, dataset.training.len())? {
            return Ok(RunEnd::Stopped);
        }
        let begun = begin_from(key, &results, &restored.partial, restored.left.as_ref());
        driver.observer.event(&Event::CellStarted { key, index, max_steps: study.workload.max_steps, ranks_a_batch: size });
        driver.detail(|| format!("each batch is trained by {}", some(size, "rank")));
        let work = CellWork {
            workload: &study.workload,
            key,
            trials: &trials,
            threshold,
            race: study.execution.race,
            full_evaluation: study.execution.full_evaluation,
            shared_order: study.data.order == DataOrder::Shared,
            lanes,
            extended: begun.extended,
            interrupt: surroundings.stop,
            now: surroundings.now,
            probe: study.smoothness.as_ref().map(|settings| Probe::new(settings, dataset.training.len())),
        };
        driver.key = key;
        if begun.state.step > 0 || !begun.state.ended.is_empty() {
            let (step, ended) = (begun.state.step, begun.state.ended.len());
            driver.observer.event(&Event::Resumed { key, step, ended, trials: whole.trials });
        }
        if begun.is_new_extension {
            driver.keep(|files| files.extended(key))?;
        }
        let Some(cell) = measure(&work, &mut backend, &groups, &masks, begun.state, &mut driver)? else {
            driver.keep(Files::wait)?;
            return Ok(RunEnd::Stopped);
        };
        results.cells.retain(|known| known.key != key);
        results.cells.push(cell);
        driver.finished(&results.cells, &keys)?;
        results.complete = all_finished(&results.cells, &whole);
        results.environment.finished = now();
        driver.publish(&results)?;
    }
    Ok(RunEnd::Finished(Box::new(results)))
}

/// Lanes at once: what the configuration says, or as many as memory has room for on the rank that has least, in all groups together.
fn lanes(study: &Study, backend: &impl Backend, world: &dyn Communicator) -> usize {
    if study.execution.lanes > 0 {
        return study.execution.lanes as usize;
    }
    let least = world.all_gather_words(&[backend.room(world).clamp(1, u32::MAX.into())]).into_iter().min();
    least.map_or(1, |least| least as usize)
}

/// Opens rank 0's files; what they say, on every rank.
fn open(
    loaded: &Configuration,
    dataset: &Dataset,
    network: &Network,
    place: &Place,
    kept: &mut Kept,
    observer: &mut dyn Observer,
) -> Result<Restored> {
    let (world, start) = (place.world, this_start(place));
    let opened = if world.rank() == 0 {
        let mut tell = |line: &str| observer.event(&Event::Note { line });
        let opened = Files::open(loaded, dataset, network, kept.output, place, kept.fresh, &mut tell);
        opened.and_then(|(mut files, mut restored)| {
            restored.starts = files.start(start, restored.starts)?;
            Ok(Some((files, restored)))
        })
    } else {
        Ok(None)
    };
    let bytes = match together(world, opened)? {
        Some((files, restored)) => {
            kept.files = Some(files);
            postcard::to_stdvec(&restored).unwrap_or_default()
        }
        None => Vec::new(),
    };
    postcard::from_bytes(&world.broadcast(bytes)).map_err(|cause| Error::Communication {
        rank: world.rank(),
        problem: format!("expected what rank 0 read from the journal, found something else ({cause}); run the same program on all ranks"),
    })
}

/// Where a cell goes on.
struct Begun {
    state: CellState,
    /// Whether it was finished with fewer trials, and whether this run is the first to know that it gets more.
    extended: bool,
    is_new_extension: bool,
}

/// Where a cell goes on: at its checkpoint, without the trials whose end is journaled. The best of those trains again where the checkpoint lacks its
/// test errors, which are measured on its weights. A cell that was finished with fewer trials begins with all of them and its test errors.
fn begin_from(key: CellKey, results: &Results, partial: &[Partial], left: Option<&(CellKey, CellState)>) -> Begun {
    if let Some(cell) = results.cells.iter().find(|cell| cell.key == key) {
        let Cell { trials, test_errors, seconds, .. } = cell.clone();
        let state = CellState { ended: trials, test_errors, seconds, ..CellState::default() };
        return Begun { state, extended: true, is_new_extension: true };
    }
    let mut state = left.filter(|(cell, _)| *cell == key).map(|(_, state)| state.clone()).unwrap_or_default();
    let partial = partial.iter().find(|partial| partial.key == key);
    let extended = partial.and_then(|partial| partial.extended);
    let journaled: &[Trial] = partial.map_or(&[], |partial| &partial.trials);
    let number = |trial: Option<&Trial>| trial.map(|trial| trial.index);
    let best_of_all = number(best(journaled.iter().chain(&state.ended)));
    if best_of_all != number(best(&state.ended)) {
        // The checkpoint's are of a trial that is no longer the best.
        state.test_errors = None;
    }
    if let (Some((test_errors, seconds)), None) = (extended, state.test_errors) {
        state.test_errors = test_errors;
        state.seconds = state.seconds.max(seconds);
    }
    for trial in journaled {
        let again = state.test_errors.is_none() && best_of_all == Some(trial.index);
        if !again && state.ended.iter().all(|ended| ended.index != trial.index) {
            state.ended.push(trial.clone());
            state.lanes.retain(|lane| lane.trial != trial.index);
        }
    }
    if state.lanes.is_empty() {
        // The trials that the checkpoint was of have ended since, and others begin.
        state.step = 0;
    }
    Begun { state, extended: extended.is_some(), is_new_extension: false }
}

/// Accompanies the cells: tells the observer and writes the journal on rank 0, and agrees with all ranks on when to checkpoint and stop.
struct Driver<'a> {
    study: &'a Study,
    world: &'a dyn Communicator,
    surroundings: Surroundings,
    /// On rank 0.
    files: &'a mut Option<Files>,
    observer: &'a mut dyn Observer,
    key: CellKey,
    /// Trials a cell.
    trials: u32,
    /// When the last checkpoint was taken.
    saved: Instant,
    /// When the one that is being taken was asked for, and for how long the last one stopped the training.
    asked: Instant,
    cost: Duration,
}

/// Longest time, in seconds, between two looks for a signal. A step or an evaluation that takes longer looks between its parts.
const LISTEN_EVERY: f64 = 0.25;

/// Part of the time that checkpoints may stop the training.
const CHECKPOINT_SHARE: u32 = 50;

impl Driver<'_> {
    /// Lets rank 0 do something with its files. Where it fails, all ranks fail.
    fn keep(&mut self, act: impl FnOnce(&mut Files) -> Result<()>) -> Result<()> {
        let result = self.files.as_mut().map_or(Ok(()), act);
        together(self.world, result)
    }

    /// Scores the connections of every trial's network that no earlier run has scored for that sparsity. False: a signal wants the study to stop.
    fn masks(&mut self, masks: &mut Masks, scorer: &mut impl Backend, sparsity: f64, training_examples: usize) -> Result<bool> {
        let trials = self.trials;
        for seeds in masks.missing(trials, sparsity).chunks(masks.at_once()) {
            let fresh = match masks.score(scorer, seeds, sparsity, training_examples) {
                Err(Error::Interrupted) => return Ok(false),
                fresh => fresh?,
            };
            let (Some(&seed), false) = (seeds.last(), fresh.is_empty()) else { continue };
            self.keep(|files| files.scored(&fresh))?;
            self.observer.event(&Event::Scored { seed, trials });
            if self.stop() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells the observer a detail.
    fn detail(&mut self, line: impl FnOnce() -> String) {
        self.observer.event(&Event::Detail { line: &line() });
    }

    /// Journals the last of the measured cells, and tells when the rest of the study's is probably done.
    fn finished(&mut self, measured: &[Cell], keys: &[CellKey]) -> Result<()> {
        let Some(cell) = measured.last() else { return Ok(()) };
        self.keep(|files| files.finished(cell))?;
        let left: Vec<CellKey> = keys.iter().copied().filter(|key| !is_finished(measured, *key, self.trials)).collect();
        let measured: Vec<Measured> = measured.iter().map(Measured::of).collect();
        let left = Forecast::new(&measured, &left, self.trials as usize, 0.0, None);
        self.observer.event(&Event::CellFinished { cell, left });
        Ok(())
    }

    fn publish(&mut self, results: &Results) -> Result<()> {
        self.keep(|files| files.publish(results))
    }

    fn since(&self, moment: Instant) -> Duration {
        (self.surroundings.now)().saturating_duration_since(moment)
    }
}

impl Conductor for Driver<'_> {
    fn ended(&mut self, trial: &Trial) -> Result<()> {
        let key = self.key;
        self.keep(|files| files.ended(key, trial))
    }

    fn moment(&mut self, moment: &Moment) -> Result<Decision> {
        self.observer.event(&Event::Moment { key: self.key, moment });
        // Rank 0's clock decides for all ranks. A signal may reach any rank.
        let every = Duration::from_secs(self.study.execution.checkpoint_seconds.into());
        let since = self.since(self.saved);
        let idle = self.files.as_ref().is_some_and(|files| files.is_idle(since));
        let due = idle && ((self.surroundings.urgent)() || !every.is_zero() && since >= every.max(self.cost * CHECKPOINT_SHARE));
        let steps = (LISTEN_EVERY / moment.step_seconds.max(1e-9)).clamp(1.0, 1e9) as u64;
        let interruptible = moment.step_seconds.max(moment.evaluation_seconds) > LISTEN_EVERY;
        let words = self.world.all_gather_words(&[(self.surroundings.stop)().into(), due.into(), steps, interruptible.into()]);
        let stop = words.chunks_exact(4).any(|theirs| theirs[0] == 1);
        self.asked = (self.surroundings.now)();
        Ok(Decision { checkpoint: words[1] == 1, stop, steps: words[2] as u32, interruptible: words[3] == 1 })
    }

    fn stop(&mut self) -> bool {
        self.world.all_gather_words(&[(self.surroundings.stop)().into()]).contains(&1)
    }

    fn checkpoint(&mut self, mut state: CellState) -> Result<()> {
        // Lanes may take most of the memory, so each copy of them is dropped as soon as the next one is made.
        let lanes = postcard::to_stdvec(&std::mem::take(&mut state.lanes)).unwrap_or_default();
        let all = self.world.gather(&lanes);
        drop(lanes);
        let (key, step, stop) = (self.key, state.step, self.surroundings.stop);
        self.keep(|files| {
            state.lanes = all.into_iter().filter_map(|bytes| postcard::from_bytes::<Vec<_>>(&bytes).ok()).flatten().collect();
            state.lanes.sort_by_key(|lane| lane.trial);
            files.checkpoint(key, state, stop())
        })?;
        self.saved = (self.surroundings.now)();
        self.cost = self.saved - self.asked;
        let cost = self.cost.as_secs_f64() * 1e3;
        self.detail(|| format!("checkpoint of step {step}: the training stood still for {cost:.1} ms"));
        Ok(())
    }
}

/// The results of a study with no cell measured yet.
fn begin(loaded: &Configuration, dataset: &Dataset, place: &Place, device: String, threshold: u32, parameters: usize) -> Results {
    let workload = &loaded.study.workload;
    Results {
        configuration: loaded.text.clone(),
        environment: Environment {
            program_version: VERSION.into(),
            commit: COMMIT.into(),
            source_tree: SOURCE_TREE.into(),
            compiler: COMPILER.into(),
            command_line: short(&place.command_line, LONGEST_COMMAND),
            processor: processor_model(),
            mpi_library: place.mpi_library.clone(),
            ranks: place.world.size() as u32,
            threads: place.threads as u32,
            host: host_name(),
            device,
            data_digest: dataset.digest.clone(),
            started: String::new(),
            finished: now(),
            starts: Vec::new(),
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
