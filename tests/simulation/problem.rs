//! Studies so small that a history of one takes milliseconds, and the records that each must end with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use dps::backend::cpu::{Cpu, VectorUnit};
use dps::comm::{MemoryLimit, Single};
use dps::data::{DataSplit, Dataset, Examples, ImageShape};
use dps::journal::{Journal, journal_path};
use dps::records::{Cell, Confirmation, MaskRecord, Status};
use dps::settings::{self, Configuration};
use dps::storage::Disk;
use dps::study::{Beginning, Place, RunEnd, Surroundings, run};
use dps::{progress, results};

use super::random::Random;

/// A study of four cells.
pub struct Problem {
    pub name: &'static str,
    sections: &'static str,
    pub dataset: Dataset,
    /// Finished cells by their number of trials, and then by batch size and sparsity.
    expected: BTreeMap<(u32, u32, u64), Cell>,
    /// Confirmations that a cell may have on the way, by batch size and sparsity: as bytes, those of every number of trials.
    confirmations: BTreeSet<(u32, u64, Vec<u8>)>,
    /// Scores and masks of connections that the journal keeps, once the whole grid is measured.
    scored: Vec<u8>,
}

/// Settings of a study that a run may change without changing its records.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub trials: u32,
    /// Whether the grid has its second batch size.
    pub is_whole: bool,
    pub lanes: u32,
    pub data_parallel: u32,
    pub checkpoint_seconds: u32,
    /// Deadline in seconds, where it is not the usual one.
    pub deadline_seconds: Option<u32>,
}

/// Trials of the whole grid, and of one that later grows.
const TRIALS: [u32; 2] = [3, 2];

impl Settings {
    pub const WHOLE: Settings =
        Settings { trials: TRIALS[0], is_whole: true, lanes: 0, data_parallel: 0, checkpoint_seconds: 1, deadline_seconds: None };

    /// Settings of a run on so many ranks; `may_grow` says whether the grid may be smaller than it will be.
    pub fn draw(random: &mut Random, ranks: usize, may_grow: bool) -> Settings {
        let is_small = may_grow && random.once_in(3);
        Settings {
            trials: if is_small { random.pick(&TRIALS) } else { TRIALS[0] },
            is_whole: !is_small || random.once_in(2),
            lanes: random.pick(&[0, 1, 2]),
            data_parallel: random.pick(&[0, 1, ranks as u32]),
            checkpoint_seconds: random.pick(&[0, 1, 2]),
            deadline_seconds: None,
        }
    }
}

/// SNIP in a race, with a measured loss surface, and the best point confirmed to the limit for its mean error; SynFlow, each trial to its end, and
/// the best point confirmed by as many seeds as its mean needs; a longer race with adam and averaged weights, and two points confirmed, each with
/// its trial's mask.
const PROBLEMS: [(&str, &str); 3] = [
    (
        "snip",
        "optimizer = \"momentum\"\nmax_steps = 8\n\n[pruning]\nexamples = 20\n\n[search]\nlearning_rate = { min = 1e-2, max = 1e2, scale = \"log\" }\n\
         momentum = { min = 0.5, max = 0.95, scale = \"reverse-log\" }\n\n[smoothness]\nevery = 4\nstart = true\ntrials = 2\npoints = 1\n\
         examples = 20\n\n[confirm]\nseeds = 2\nlimit = 2\nmean_error = true\n\n[execution]\nrace = true\n",
    ),
    (
        "synflow",
        "optimizer = \"sgd\"\nmax_steps = 8\n\n[pruning]\ncriterion = \"synflow\"\n\n[search]\nlearning_rate = { min = 1e-2, max = 1e2, scale = \"log\" }\n\n\
         [confirm]\npoints = 1\nseeds = 10\nprecision = 1\n\n[execution]\nrace = false\n",
    ),
    (
        "adam",
        "optimizer = \"adam\"\nmax_steps = 16\n\n[pruning]\ncriterion = \"grasp\"\nexamples = 10\n\n[search]\n\
         learning_rate = { min = 1e-2, max = 1e2, scale = \"log\" }\naverage_decay = 0.5\n\n[confirm]\npoints = 2\nseeds = 1\nvary = [\"order\"]\n\n[execution]\nrace = 1.5\nfull_evaluation = true\n",
    ),
];

/// All studies, made at the first call.
pub fn problems() -> &'static [Arc<Problem>] {
    static MADE: OnceLock<Vec<Arc<Problem>>> = OnceLock::new();
    MADE.get_or_init(|| {
        let made: Vec<_> = PROBLEMS.into_iter().map(|(name, sections)| Arc::new(Problem::measured(name, sections))).collect();
        // A precision begins with 8 seeds, and both what it adds and where it ends early are to be simulated.
        let trainings: Vec<usize> = made[1].expected.values().map(|cell| cell.confirmations.len()).collect();
        assert!(trainings.iter().any(|count| *count > 8), "no cell of {} has seeds added: {trainings:?}", made[1].name);
        assert!(trainings.contains(&8), "no cell of {} ends with its first seeds: {trainings:?}", made[1].name);
        made
    })
}

impl Problem {
    fn measured(name: &'static str, sections: &'static str) -> Problem {
        let mut problem =
            Problem { name, sections, dataset: dataset(), expected: BTreeMap::new(), confirmations: BTreeSet::new(), scored: Vec::new() };
        let mut found = Vec::new();
        for trials in TRIALS {
            let folder = tempfile::tempdir().unwrap();
            let output = folder.path().join("study.h5");
            let place = Place {
                world: &Single,
                mpi_library: "none".into(),
                command_line: String::new(),
                threads: 1,
                memory: MemoryLimit::NONE,
                storage: Arc::new(super::disk::Disk::new(folder.path().to_owned())),
                surroundings: Surroundings::PROCESS,
            };
            let loaded = problem.configuration(&Settings { trials, ..Settings::WHOLE });
            let device = Cpu { unit: VectorUnit::best(), threads: 1, convolutions: loaded.study.execution.convolutions };
            let outcome = run(&loaded, &problem.dataset, &place, &device, &output, Beginning::Journal, &mut *progress::silent());
            assert!(matches!(outcome, Ok(RunEnd::Finished(_))), "{name}: {:?}", outcome.err());
            let cells = results::read(&output).unwrap().cells;
            assert_eq!(cells.len(), 4);
            found.extend(cells.iter().flat_map(|cell| cell.trials.iter().map(|trial| trial.status)));
            problem.confirmations.extend(cells.iter().cloned().map(timeless).flat_map(confirmed));
            problem.expected.extend(cells.into_iter().map(|cell| (place_of(&cell), timeless(cell))));
            if trials == TRIALS[0] {
                problem.scored = scored(&output);
            }
        }
        // A study in which all trials fare alike would hide what happens to the others.
        assert!(found.contains(&Status::Complete) && found.iter().any(|status| *status != Status::Complete), "{name}: {found:?}");
        problem
    }

    pub fn configuration(&self, settings: &Settings) -> Configuration {
        let Settings { trials, is_whole, lanes, data_parallel, checkpoint_seconds, deadline_seconds } = settings;
        let deadline = deadline_seconds.map_or(String::new(), |seconds| format!("deadline_seconds = {seconds}\n"));
        let batch_sizes = if *is_whole { "2, 32" } else { "2" };
        let text = format!(
            "[grid]\nbatch_sizes = [{batch_sizes}]\nsparsities = [0, 0.5]\ntrials = {trials}\n\n[workload]\ndataset = \"mnist\"\n\
             network = [{{ layer = \"flatten\" }}, {{ layer = \"dense\", outputs = 4 }}, {{ layer = \"relu\" }}, {{ layer = \"dense\", outputs = 3 }}]\n\
             goal_error = 0.3\nevaluate_every = 2\n{}lanes = {lanes}\ndata_parallel = {data_parallel}\n\
             checkpoint_seconds = {checkpoint_seconds}\ndevice = \"cpu\"\n{deadline}",
            self.sections
        );
        settings::parse(self.name, &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Why the files of a study are not what they may be at any time, if they are not. Files that may be damaged may be refused.
    pub fn wrong_on_the_way(&self, output: &Path, may_be_damaged: bool) -> Option<String> {
        let journal = match Journal::read(&journal_path(output), &Disk) {
            Ok(journal) => journal,
            Err(_) if may_be_damaged => None,
            Err(error) => return Some(error.to_string()),
        };
        let journaled = journal.map(|journal| journal.finished).unwrap_or_default();
        let published = match output.exists().then(|| results::read(output)) {
            Some(Ok(results)) => results.cells,
            Some(Err(error)) if !may_be_damaged => return Some(error.to_string()),
            _ => Vec::new(),
        };
        journaled.into_iter().chain(published).find_map(|cell| self.difference(timeless(cell)))
    }

    /// Where a cell's records differ from those of an undisturbed study, byte for byte, if they do.
    fn difference(&self, found: Cell) -> Option<String> {
        let Some(expected) = self.expected.get(&place_of(&found)) else { return Some(format!("no such cell: {found:?}")) };
        if let Some((.., one)) = confirmed(found.clone()).into_iter().find(|one| !self.confirmations.contains(one)) {
            let one: Result<Confirmation, _> = postcard::from_bytes(&one);
            return Some(format!("a confirmation of {} differs from an undisturbed study's: {one:?}", found.key));
        }
        if bytes(&bare(&found)) == bytes(&bare(expected)) {
            return None;
        }
        let trials = found.trials.iter().zip(&expected.trials);
        let trials: String = trials.filter(|(one, two)| bytes(one) != bytes(two)).map(|(one, two)| format!("\n{one:?}\n{two:?}")).collect();
        let errors = (found.test_errors, expected.test_errors);
        Some(format!("records of {} differ from an undisturbed study's: test errors (found, expected) {errors:?}{trials}", found.key))
    }

    /// Why the files of a study are not those of one that is finished, if they are not.
    pub fn wrong_at_the_end(&self, output: &Path) -> Option<String> {
        let (Ok(Some(journal)), Ok(results)) = (Journal::read(&journal_path(output), &Disk), results::read(output)) else {
            return Some("the journal or the result file is missing".into());
        };
        let whole = |cells: &[Cell]| cells.len() == 4 && cells.iter().all(|cell| cell.trials.len() == TRIALS[0] as usize);
        if !whole(&journal.finished) || !journal.partial.is_empty() || journal.dropped_bytes > 0 {
            return Some(format!("the journal has {} finished cells and {} others", journal.finished.len(), journal.partial.len()));
        }
        if !whole(&results.cells) || !results.complete {
            return Some(format!("the result file has {} cells, complete: {}", results.cells.len(), results.complete));
        }
        let expected = |cell: &Cell| self.expected.get(&place_of(cell)).map(|expected| bytes(&expected.confirmations));
        if let Some(cell) =
            results.cells.iter().map(|cell| timeless(cell.clone())).find(|cell| expected(cell) != Some(bytes(&cell.confirmations)))
        {
            return Some(format!("{} has other confirmations than an undisturbed study's: {:?}", cell.key, cell.confirmations));
        }
        (scored(output) != self.scored).then(|| "the journal's scores or masks are not those of an undisturbed study".into())
    }
}

/// Scores and masks of the journal, in one order.
fn scored(output: &Path) -> Vec<u8> {
    let journal = Journal::read(&journal_path(output), &Disk).unwrap().unwrap();
    let mut masks: Vec<MaskRecord> = journal.masks;
    masks.sort_by(|a, b| a.seed.cmp(&b.seed).then(a.sparsity.total_cmp(&b.sparsity)));
    let scores: Vec<(u64, Vec<u32>)> =
        journal.scores.into_iter().map(|(seed, scores)| (seed, scores.into_iter().map(f32::to_bits).collect())).collect();
    bytes(&(masks, scores))
}

fn place_of(cell: &Cell) -> (u32, u32, u64) {
    (cell.trials.len() as u32, cell.key.batch_size, cell.key.sparsity.to_bits())
}

/// A cell without its confirmations.
fn bare(cell: &Cell) -> Cell {
    Cell { confirmations: Vec::new(), ..cell.clone() }
}

/// Each confirmation of a cell, with the cell's batch size and sparsity.
fn confirmed(cell: Cell) -> Vec<(u32, u64, Vec<u8>)> {
    cell.confirmations.iter().map(|one| (cell.key.batch_size, cell.key.sparsity.to_bits(), bytes(one))).collect()
}

/// A cell's records without its times.
fn timeless(mut cell: Cell) -> Cell {
    cell.seconds = 0.0;
    cell.trials.iter_mut().for_each(|trial| trial.seconds = 0.0);
    cell.confirmations.iter_mut().for_each(|one| one.run.seconds = 0.0);
    cell
}

fn bytes(records: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_stdvec(records).unwrap()
}

/// 50 examples of 3 × 3 pixels in three classes, each with a brighter row, of which 10 are for validation, and 8 for testing.
fn dataset() -> Dataset {
    let shape = ImageShape { height: 3, width: 3, channels: 1 };
    let mut random = Random::new(3);
    let mut examples = |count: usize| {
        let labels: Vec<u16> = (0..count).map(|_| random.below(3) as u16).collect();
        let pixel = |random: &mut Random, label: u16, place: usize| {
            (random.below(130) + if place / 3 == usize::from(label) { 125 } else { 0 }) as u8
        };
        let images: Vec<u8> =
            labels.iter().flat_map(|&label| (0..9).map(|place| pixel(&mut random, label, place)).collect::<Vec<u8>>()).collect();
        Examples { images: images.into(), labels, shape }
    };
    let (training, test) = (examples(50), examples(8));
    let split = DataSplit { validation_fraction: 0.2, ..DataSplit::default() };
    Dataset::new("rows", 3, training, test, &split).unwrap()
}
