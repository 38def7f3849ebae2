//! Measuring a study: cell after cell. Trials are journaled as they end, and results published after each cell, or each hundredth of many.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::begin::{RunFiles, begin_from, no_cells, open};
use super::check::check;
use super::confirm::{Confirmations, confirm};
use super::driver::{Driver, Forecasting};
use super::files::{Beginning, Restored};
use super::measured::spent;
use super::memory::{Memory, Processors};
use super::place::Place;
use crate::backend::{Backend, Device, Sharing};
use crate::comm::{agree, together};
use crate::data::{Dataset, Facts};
use crate::journal::{Checkpoint, Partial, Record};
use crate::network::Network;
use crate::progress::{Event, Observer};
use crate::readable::{shell_path, some};
use crate::records::{
    CellKey, Confirmation, Ending, Seeds, Wanted, add_whole_rounds, all_finished, cells, confirmations_of, is_confirmed, is_finished,
    is_searched, keep_wanted,
};
use crate::results::{Results, distinct};
use crate::settings::{self, Configuration, Grid, Study};
use crate::training::{CellWork, Groups, Masks, Probe, Run, Workers, measure};
use crate::version::VERSION_AND_COMMIT;
use crate::{Result, exit};

/// How a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// All that was asked for is done. [`Beginning::Confirmed`] leaves cells unmeasured whose trials are still to come.
    Finished(Box<Results>),
    /// A signal stopped it. Journal and checkpoint hold what was done, and the same command continues it.
    Stopped,
}

/// Measures a study on all ranks' devices, or what is left of it, keeping its journal, checkpoint and results at `output`. Every rank must call
/// it alike; all end alike.
pub fn run(
    configuration: &Configuration,
    dataset: &Dataset,
    place: &Place,
    device: &impl Device,
    output: &Path,
    beginning: Beginning,
    observer: &mut dyn Observer,
) -> Result<RunEnd> {
    let mut files = RunFiles { output, beginning, files: None };
    let outcome = go_on(configuration, dataset, place, device, &mut files, observer);
    if let Some(files) = &mut files.files {
        let code = match &outcome {
            Ok(RunEnd::Finished(_)) => exit::DONE,
            Ok(RunEnd::Stopped) => exit::STOPPED,
            Err(error) => error.exit_code(),
        };
        files.end(Ending::of_code(code));
    }
    outcome
}

/// Opens the files and measures.
fn go_on<D: Device>(
    configuration: &Configuration,
    dataset: &Dataset,
    place: &Place,
    device: &D,
    files: &mut RunFiles,
    observer: &mut dyn Observer,
) -> Result<RunEnd> {
    let (study, world, surroundings) = (&configuration.study, place.world, place.surroundings);
    world.limit_waits(study.execution.deadline_seconds);
    let network = check(configuration, &dataset.facts())?;
    agree(world, "program", VERSION_AND_COMMIT)?;
    agree(world, "configuration", &format!("{} {:?} {:?}", configuration.digest, study.grid, study.confirm))?;
    agree(world, "data", &dataset.digest)?;

    let threshold = study.workload.goal_threshold(dataset.validation.len() as u64) as u32;
    let backend = together(world, device.backend(&network, dataset, world))?;
    let Restored { contents: journal, left, whole_rounds } = open(configuration, dataset, &network, place, files, observer)?;
    let whole = match journal.header.configuration == configuration.text {
        true => study.clone(),
        false => settings::recorded(&configuration.name, &journal.header.configuration, &[])?.study,
    };
    let trials = whole.grid.trials;
    let seeds = |index: u32| Seeds::of_trial(index, study.data.order);
    let drawn = whole.trials().zip(study.search.draw(trials));
    let runs: Vec<Run> = drawn.map(|(index, metaparameters)| Run { metaparameters, seeds: seeds(index) }).collect();
    let workers = Workers { world, threads: place.threads, interrupt: surroundings.stop };
    let known: Vec<(CellKey, Vec<Confirmation>)> = journal.cells().map(|cell| (cell.key, cell.confirmations.clone())).collect();
    let masks = Masks::new(&network, &study.pruning, workers, journal.scores, journal.masks);
    let mut results = no_cells(configuration, dataset, place, backend.describe(), threshold, network.parameters());
    let environment = &mut results.environment;
    results.configuration = journal.header.configuration;
    environment.started = journal.header.started;
    environment.data_digest = journal.header.data_digest;
    environment.starts = journal.starts;
    distinct(&mut environment.program_version, &journal.header.program_version);
    distinct(&mut environment.commit, &journal.header.commit);
    results.cells = journal.finished;
    results.cells.iter_mut().for_each(|cell| cell.confirmations = confirmations_of(&whole_rounds, cell.key).to_vec());
    keep_wanted(&mut results.cells, &whole);
    add_whole_rounds(&mut results.cells, &whole, &known);
    let (key, began) = (CellKey { batch_size: 0, sparsity: 0.0 }, (surroundings.now)());
    let driver = Driver {
        study,
        whole: &whole,
        world,
        surroundings,
        files: &mut files.files,
        observer,
        confirming: None,
        unpublished: 0,
        journaled: Vec::new(),
        key,
        saved: began,
        asked: began,
        cost: Duration::ZERO,
        forecast: Forecasting::default(),
    };

    let sharing = device.sharing(&network);
    let of_all = Study { grid: Grid { trials, ..study.grid.clone() }, confirm: whole.confirm.clone(), ..study.clone() };
    let (lanes, problem) = lanes(&of_all, &backend, &dataset.facts(), &network, (place, sharing));
    let mut scorer = together(world, device.scorer(backend))?;
    scorer.listen(Some(surroundings.stop));
    let searches = !matches!(files.beginning, Beginning::Confirmed(_));
    let asked = Asked { study, whole: &whole, dataset, place, device, network: &network, sharing, threshold, lanes, runs, searches };
    let keys = cells(&study.grid);
    Measurement { asked: &asked, keys, scorer, masks, known, whole_rounds, partial: journal.partial, left, results, driver }.run(
        configuration,
        problem,
        files.output,
    )
}

/// A run's study, and all that its cells are measured with.
struct Asked<'a, D> {
    /// `study` is what this run asks for; `whole` joins `study` with the cells, trials and confirmations that earlier runs asked for.
    study: &'a Study,
    whole: &'a Study,
    dataset: &'a Dataset,
    place: &'a Place<'a>,
    device: &'a D,
    network: &'a Arc<Network>,
    sharing: Sharing,
    threshold: u32,
    /// Trainings at once.
    lanes: usize,
    /// Trials of each cell.
    runs: Vec<Run>,
    /// Whether trials are trained too, or confirmations alone.
    searches: bool,
}

/// A run over the cells of a study.
struct Measurement<'a, D, B> {
    asked: &'a Asked<'a, D>,
    /// Cells of the run.
    keys: Vec<CellKey>,
    /// Scores the connections of networks that are pruned.
    scorer: B,
    masks: Masks<'a>,
    /// Confirmations that earlier runs trained; and those of them that make whole rounds, as far as the result file had them.
    known: Vec<(CellKey, Vec<Confirmation>)>,
    whole_rounds: Vec<(CellKey, Vec<Confirmation>)>,
    /// Cells of which earlier runs measured some trials.
    partial: Vec<Partial>,
    /// Where an earlier run left a cell.
    left: Option<Checkpoint>,
    results: Results,
    driver: Driver<'a>,
}

impl<D: Device, B: Backend> Measurement<'_, D, B> {
    /// Measures the cells, and confirms them. `problem` is a sentence on lanes that need more memory than there is.
    fn run(mut self, configuration: &Configuration, problem: Option<String>, output: &Path) -> Result<RunEnd> {
        let Asked { whole, searches, .. } = *self.asked;
        self.announce(configuration, problem, output);
        self.results.complete = all_finished(&self.results.cells, whole);
        self.driver.publish(&self.results)?;
        // The cell that was left first: there is one checkpoint, and another cell's would take its place.
        let left_first = self.left.as_ref().map(|left| left.key);
        let mut order: Vec<(usize, CellKey)> = self.keys.iter().copied().enumerate().collect();
        order.sort_by_key(|(_, key)| Some(*key) != left_first);
        // A cell is confirmed once its trials are measured; where its neighbours' points are confirmed too, once all cells' are.
        let rounds = if whole.confirm.as_ref().is_some_and(|confirm| confirm.neighbours) { &[false, true][..] } else { &[true] };
        for (confirms, (index, key)) in rounds.iter().flat_map(|&confirms| order.iter().map(move |&cell| (confirms, cell))) {
            let is_measured = is_searched(&self.results.cells, key, whole.grid.trials);
            if is_finished(&self.results.cells, key, whole) || !searches && !is_measured || !confirms && is_measured {
                continue;
            }
            if !self.cell(index, key, is_measured, confirms)? {
                self.driver.ends(&self.results)?;
                return Ok(RunEnd::Stopped);
            }
        }
        self.driver.ends(&self.results)?;
        Ok(RunEnd::Finished(Box::new(self.results)))
    }

    /// Tells the observer what the run is about to do.
    fn announce(&mut self, configuration: &Configuration, problem: Option<String>, output: &Path) {
        let Self { asked, results, driver, keys, .. } = self;
        let (trials, place) = (asked.whole.grid.trials, asked.place);
        driver.observer.event(&Event::Study {
            name: &configuration.name,
            device: &results.environment.device,
            ranks: place.world.size(),
            cells: keys.len(),
            done: keys.iter().filter(|&&key| is_searched(&results.cells, key, trials)).count(),
            trials,
            threshold: asked.threshold,
            validation_examples: asked.dataset.validation.len(),
        });
        let unreached = |key: &CellKey| results.cells.iter().any(|cell| cell.key == *key && cell.steps_to_result().is_none());
        let unsearched = |key: &CellKey| !is_searched(&results.cells, *key, trials);
        // Why a command that confirms alone leaves some cells out.
        let left_out = |words: String, is_one: &dyn Fn(&CellKey) -> bool| {
            let found: Vec<String> = keys.iter().filter(|&key| is_one(key)).map(CellKey::to_string).collect();
            (!asked.searches && !found.is_empty()).then(|| format!("{words}: {}", found.join("; ")))
        };
        let nothing = left_out("no trial reached the goal, so that there is no point to confirm".to_owned(), &unreached);
        let command = format!("dps-train {}", shell_path(output));
        let lacking =
            left_out(format!("trials are still to come, which {command} measures, so that there is nothing to confirm"), &unsearched);
        problem.iter().chain(&nothing).chain(&lacking).for_each(|line| driver.observer.event(&Event::Note(line)));
        driver.detail(|| format!("{}, digest {}:\n{}", configuration.name, configuration.digest, results.configuration.trim_end()));
        driver.detail(|| format!("data: SHA-256 {}, MPI: {}", asked.dataset.digest, place.mpi_library));
        driver.detail(|| format!("results: {}; up to {} at once", output.display(), some(asked.lanes, "trial")));
    }

    /// Trains the trials of a cell unless it is measured, and its confirmations. False: a signal has stopped it.
    fn cell(&mut self, index: usize, key: CellKey, is_measured: bool, confirms: bool) -> Result<bool> {
        let Asked { study, dataset, place, device, network, sharing, threshold, lanes, ref runs, .. } = *self.asked;
        let (world, surroundings) = (place.world, place.surroundings);
        let size = sharing.ranks_a_batch(world.size(), key.batch_size as usize, study.execution.data_parallel as usize);
        let groups = Groups::new(world, size);
        let mut backend = together(world, device.backend(network, dataset, groups.local()))?;
        let work = CellWork {
            workload: &study.workload,
            key,
            trials: runs,
            first: study.search.first_trial as usize,
            threshold,
            race: study.execution.race,
            full_evaluation: study.execution.full_evaluation,
            goes_on: false,
            tested: true,
            lanes,
            extended: false,
            interrupt: surroundings.stop,
            now: surroundings.now,
            probe: study.smoothness.as_ref().map(|settings| Probe::new(settings, dataset.training.len())),
        };
        if !is_measured && !self.search(index, &work, size, &groups, &mut backend)? {
            return Ok(false);
        }
        if confirms { self.confirm(&work, &groups, &mut backend) } else { Ok(true) }
    }

    /// Trains the trials of a cell, each batch by `size` ranks. False: a signal has stopped it.
    fn search(&mut self, index: usize, work: &CellWork, size: usize, groups: &Groups, backend: &mut D::Backend<'_>) -> Result<bool> {
        let Asked { whole, dataset, ref runs, .. } = *self.asked;
        let Self { keys, scorer, masks, results, driver, .. } = self;
        let (key, trials) = (work.key, whole.grid.trials);
        let seeds: Vec<u64> = runs.iter().map(|run| run.seeds.weights).collect();
        if !driver.masks(masks, scorer, &seeds, key.sparsity, dataset.training.len())? {
            return Ok(false);
        }
        let begun = begin_from(key, results, &self.partial, self.left.as_ref());
        driver.journaled = begun.journaled;
        driver.begins(key, begun.state.seconds, &results.cells, keys);
        driver.observer.event(&Event::CellStarted { key, index, max_steps: work.workload.budget(), ranks_a_batch: size });
        driver.detail(|| format!("each batch is trained by {}", some(size, "rank")));
        if begun.state.step > 0 || !begun.state.ended.is_empty() {
            let (step, ended) = (begun.state.step, begun.state.ended.len());
            driver.observer.event(&Event::Resumed { key, step, ended, trials });
        }
        if begun.is_new_extension {
            driver.keep(|files| files.record(Record::Extension { key }))?;
        }
        let work = CellWork { extended: begun.extended, ..*work };
        let Some(mut cell) = measure(&work, backend, groups, masks, begun.state, driver)? else { return Ok(false) };
        // A cell that gets more trials keeps its confirmations, of which some may still be wanted.
        cell.confirmations = confirmations_of(&self.whole_rounds, key).to_vec();
        results.cells.retain(|known| known.key != key);
        results.cells.push(cell);
        keep_wanted(&mut results.cells, whole);
        add_whole_rounds(&mut results.cells, whole, &self.known);
        driver.finished(&results.cells, keys)?;
        driver.grown(results)?;
        Ok(true)
    }

    /// Trains the confirmations of a cell whose trials are measured. False: a signal has stopped it.
    fn confirm(&mut self, work: &CellWork, groups: &Groups, backend: &mut D::Backend<'_>) -> Result<bool> {
        let Asked { whole, dataset, .. } = *self.asked;
        let Self { keys, scorer, masks, results, driver, .. } = self;
        let key = work.key;
        let mut left = self.left.as_ref().filter(|left| left.key == key && left.confirming.is_some());
        // Where the mean is to reach a precision, what is found says whether more seeds are trained.
        while let Some(place) = results.cells.iter().position(|cell| cell.key == key && !is_confirmed(cell, &results.cells, whole)) {
            let known = confirmations_of(&self.known, key);
            let Some(wanted) = Wanted::beside(&results.cells[place], &results.cells, whole, known) else { break };
            let seeds: BTreeSet<u64> = wanted.trainings.iter().map(|training| training.seeds.weights).collect();
            let seeds: Vec<u64> = seeds.into_iter().collect();
            if !driver.masks(masks, scorer, &seeds, key.sparsity, dataset.training.len())? {
                return Ok(false);
            }
            let left = left.take();
            let cell = &results.cells[place];
            let known = [&cell.confirmations[..], known].concat();
            let before = spent(cell, left.map_or(0.0, |left| left.state.seconds));
            driver.begins(key, before, &results.cells, keys);
            let confirmation = Confirmations { work, cell, known: wanted.among(&known), wanted: &wanted, left };
            let Some(confirmations) = confirm(&confirmation, backend, groups, masks, driver)? else { return Ok(false) };
            // A checkpoint may lie beyond a limit that has fallen since, as the cell's steps-to-result fell.
            let found = wanted.among(&confirmations);
            let is_new = found.len() == wanted.trainings.len();
            results.cells[place].confirmations = if is_new { found } else { confirmations };
            driver.confirmed(&results.cells[place], &results.cells, keys, &wanted);
            driver.grown(results)?;
            // The limit may lie beyond the steps that 32 bits can count: trainings that never reach the limit would be asked for again without end.
            if !is_new {
                break;
            }
        }
        Ok(true)
    }
}

/// Lanes at once, in all groups together: what the configuration says, or as many as the memory of hosts and devices has room for on the rank that
/// has least; and a sentence where that is more than this rank has.
fn lanes(
    study: &Study,
    backend: &impl Backend,
    facts: &Facts,
    network: &Arc<Network>,
    (place, sharing): (&Place, Sharing),
) -> (usize, Option<String>) {
    let of_device = backend.lanes_that_fit(place.world);
    let processors = Processors { ranks: place.world.size(), threads: place.threads, on_host: of_device.is_none(), sharing };
    let (lanes, memory) = Memory::fitting(&processors, &place.memory, study, facts, network);
    let here =
        if study.execution.lanes > 0 { lanes as u64 } else { of_device.map_or(lanes as u64, |device| device.clamp(1, lanes as u64)) };
    let least = place.world.all_gather_words(&[here]).into_iter().min().map_or(1, |least| least as usize);
    (least, memory.problem(&place.memory))
}
