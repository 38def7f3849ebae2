//! A history: a study that is started, disturbed and started again, until it is left alone to its end. What it may have lost or changed is looked for
//! after each run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dps::backend::cpu::{Cpu, VectorUnit};
use dps::comm::{Communicator, MemoryLimit};
use dps::journal::{Contents, Journal, Loaded, checkpoint_path, journal_path, load, lock_path};
use dps::progress::{Event, Observer};
use dps::records::CellKey;
use dps::settings::Configuration;
use dps::storage::Storage;
use dps::study::{Beginning, Place, RunEnd, run};
use dps::{Error, exit};

use super::disk::Disk;
use super::faults::{Fault, Kind, Kinds};
use super::planted::{Careless, Mistake, Mistaken};
use super::problem::{Problem, Settings, problems};
use super::promises::Promises;
use super::random::Random;
use super::ranks::{Ranks, SURROUNDINGS};
use super::scheduler::{Ended, Scheduler};
use super::world::Disturbed;

/// Result of a history.
#[derive(Default)]
pub struct History {
    pub seed: u64,
    /// Problem that should not have been.
    pub problem: Option<String>,
    /// Each run's settings and faults, and how its ranks ended.
    pub account: Vec<String>,
    pub struck: BTreeMap<Kind, u64>,
    pub runs: u64,
    pub calls: u64,
    /// Ranks that ended themselves at their deadline, and studies begun anew since a disk had lied.
    pub gave_up: u64,
    pub begun_anew: u64,
    /// A checksum of all calls.
    pub digest: u64,
}

/// Ranks of a run at most.
const MOST_RANKS: usize = 4;
/// Disturbed runs of a history at most, and faults of one.
const MOST_RUNS: usize = 4;
const MOST_FAULTS: usize = 3;

/// How a rank ended.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Finished,
    Stopped,
    Failed(u8, String),
}

/// State that the ranks of a history share.
struct Shared {
    problem: Arc<Problem>,
    output: PathBuf,
    storage: Arc<dyn Storage>,
    mistake: Option<Mistake>,
    /// Cells that a person was told to be finished, with their number of trials.
    told: Mutex<Vec<(CellKey, usize)>>,
    /// Ends of ranks, with their worlds.
    ends: Mutex<Vec<(usize, usize, End)>>,
}

struct Told<'a>(&'a Shared);

impl Observer for Told<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::CellFinished { cell, .. } = event {
            lock(&self.0.told).push((cell.key, cell.trials.len()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The deadline of some runs, in seconds.
const SHORT_DEADLINE: u32 = 700;

/// The history of a seed; with a mistake in it, where one is planted.
pub fn history(seed: u64, kinds: Kinds, mistake: Option<Mistake>) -> History {
    let (mut random, mut apart) = (Random::new(seed), Random::apart(seed));
    let folder = tempfile::tempdir().unwrap();
    let problem = problems()[random.below(problems().len())].clone();
    let output = folder.path().join("study.h5");
    let disk = Arc::new(Disk::new(folder.path().to_owned()));
    let promises = Arc::new(Promises::new(careless(disk.clone(), mistake, &output), journal_path(&output)));
    let shared = Arc::new(Shared { problem, output, storage: promises.clone(), mistake, told: Mutex::default(), ends: Mutex::default() });
    let mut history = History { seed, digest: seed, ..History::default() };
    let disturbed = 1 + random.below(MOST_RUNS);
    // Whether files may be damaged by a disk that lied, and whether the next run moves them aside.
    let (mut is_doubtful, mut fresh) = (false, false);
    for number in 0.. {
        let is_last = number >= disturbed;
        let ranks = 1 + random.below(MOST_RANKS);
        let mut settings =
            if is_last { Settings { lanes: random.pick(&[0, 1, 2]), ..Settings::WHOLE } } else { Settings::draw(&mut random, ranks, true) };
        let faults = if is_last { 0 } else { 1 + random.below(MOST_FAULTS) };
        let mut faults: Vec<Fault> = (0..faults).map(|_| Fault::draw(&mut random, ranks)).collect();
        if kinds == Kinds::All && !is_last {
            settings.deadline_seconds = apart.once_in(2).then_some(SHORT_DEADLINE);
            faults.extend(Fault::draw_later(&mut apart, ranks));
        }
        if fresh {
            history.begun_anew += 1;
            promises.forget();
            lock(&shared.told).clear();
        }
        let anew = if fresh { ", anew" } else { "" };
        let described = format!("run {number} of {} on {ranks} ranks{anew}: {settings:?}, {faults:?}", shared.problem.name);
        lock(&shared.ends).clear();
        let Ended { problem, struck, worlds, calls, gave_up, digest } = play(&shared, random.seed(), ranks, &settings, fresh, faults);
        history.runs += 1;
        history.account.push(format!("{described}: {:?}", lock(&shared.ends)));
        history.calls += calls;
        history.gave_up += gave_up;
        history.digest = history.digest.rotate_left(7) ^ digest;
        struck.into_iter().for_each(|(kind, count)| *history.struck.entry(kind).or_default() += count);
        if worlds.iter().any(|world| world.killed) && random.once_in(2) {
            // Lock of a process that had no time to clear up.
            fs::write(lock_path(&shared.output), "host simulated\n").unwrap();
        }
        // A run that read everything, and finished, found no damage.
        is_doubtful &= !lock(&shared.ends).iter().any(|(_, _, end)| *end == End::Finished);
        if worlds.iter().any(|world| world.power_lost) && disk.lose_power(&mut random) && mistake != Some(Mistake::LiesBelieved) {
            is_doubtful = true;
            forgive(&shared, &promises);
        }
        // A study that is begun anew has nothing to refuse.
        let is_refused = is_doubtful && !fresh && is_refused(&lock(&shared.ends));
        let wrong = problem
            .or_else(|| ends_are_wrong(&lock(&shared.ends), &worlds, is_last, is_refused))
            .or_else(|| promises.broken())
            .or_else(|| shared.problem.wrong_on_the_way(&shared.output, is_doubtful))
            .or_else(|| untold(&shared))
            .or_else(|| damaged_checkpoint(&shared.problem.configuration(&settings), &shared).filter(|_| !is_doubtful))
            .or_else(|| if is_last && !is_refused { shared.problem.wrong_at_the_end(&shared.output) } else { None });
        if wrong.is_some() || is_last && !is_refused {
            history.problem = wrong;
            break;
        }
        fresh = is_refused;
    }
    history
}

/// Bytes that a disk has lost after it had said they were synced are no promise any more, and what a person was told of them is void.
fn forgive(shared: &Shared, promises: &Promises) {
    let path = journal_path(&shared.output);
    let journal = Journal::read(&path, &dps::storage::Disk).ok().flatten();
    let bytes = fs::metadata(&path).map_or(0, |found| found.len());
    promises.forgive(journal.as_ref().map_or(0, |journal| bytes - journal.dropped_bytes));
    lock(&shared.told).retain(|&(key, trials)| trials_of(journal.as_ref(), key) >= trials);
}

/// Whether a run ended since it could not use the study's files.
fn is_refused(ends: &[(usize, usize, End)]) -> bool {
    ends.iter().any(|(world, _, end)| *world == 0 && matches!(end, End::Failed(exit::RESULTS | exit::JOURNAL, _)))
}

fn careless(disk: Arc<dyn Storage>, mistake: Option<Mistake>, output: &Path) -> Arc<dyn Storage> {
    match mistake {
        Some(mistake) => Arc::new(Careless { inner: disk, mistake, output: output.to_owned(), appends: Default::default() }),
        None => disk,
    }
}

/// Runs the study on so many ranks under these faults.
fn play(shared: &Arc<Shared>, seed: u64, ranks: usize, settings: &Settings, fresh: bool, faults: Vec<Fault>) -> Ended {
    let scheduler = Scheduler::new(seed);
    let loaded = Arc::new(shared.problem.configuration(settings));
    let theirs = (shared.clone(), loaded.clone());
    scheduler.set_second_job(Arc::new(move |scheduler| start(scheduler, &theirs.0, &theirs.1, 1, false, Vec::new())));
    start(&scheduler, shared, &loaded, ranks, fresh, faults);
    scheduler.run()
}

fn start(scheduler: &Arc<Scheduler>, shared: &Arc<Shared>, loaded: &Arc<Configuration>, ranks: usize, fresh: bool, faults: Vec<Fault>) {
    let (shared, loaded) = (shared.clone(), loaded.clone());
    let deadline = Duration::from_secs(loaded.study.execution.deadline_seconds.into());
    scheduler.start_world(ranks, deadline, faults, move |world, rank, group| {
        let all = Ranks::of_world(group, rank, ranks);
        let all: Box<dyn Communicator> = match shared.mistake {
            Some(mistake) => Box::new(Mistaken { inner: all, mistake }),
            None => Box::new(all),
        };
        let end = measure(&shared, &loaded, &*all, fresh);
        lock(&shared.ends).push((world, rank, end));
    });
}

/// Runs a study as dps-train does once it has its configuration and its data.
fn measure(shared: &Shared, loaded: &Configuration, world: &dyn Communicator, fresh: bool) -> End {
    let place = Place {
        world,
        mpi_library: "simulated".into(),
        command_line: String::new(),
        threads: 1,
        memory: MemoryLimit::NONE,
        storage: shared.storage.clone(),
        surroundings: SURROUNDINGS,
    };
    let device = Cpu { unit: VectorUnit::best(), threads: 1, convolutions: loaded.study.execution.convolutions };
    let beginning = if fresh { Beginning::Fresh } else { Beginning::Journal };
    match run(loaded, &shared.problem.dataset, &place, &device, &shared.output, beginning, &mut Told(shared)) {
        Ok(RunEnd::Finished(_)) => End::Finished,
        Ok(RunEnd::Stopped) => End::Stopped,
        Err(error @ (Error::Elsewhere { .. } | Error::Communication { .. } | Error::Journal { .. } | Error::Results { .. })) => {
            End::Failed(error.exit_code(), error.to_string())
        }
        Err(error) => {
            world.abort(error.exit_code().into());
            End::Failed(error.exit_code(), error.to_string())
        }
    }
}

/// Why ranks should not have ended as they did, if they should not. `may_refuse` says that the study's files may be damaged.
fn ends_are_wrong(ends: &[(usize, usize, End)], worlds: &[Disturbed], is_last: bool, may_refuse: bool) -> Option<String> {
    for (number, world) in worlds.iter().enumerate() {
        let mut ends = ends.iter().filter(|(of, ..)| *of == number).map(|(_, _, end)| end);
        let Some(first) = ends.next() else { continue };
        let code = |end: &End| match end {
            End::Finished => 0,
            End::Stopped => 75,
            End::Failed(code, _) => *code,
        };
        if let Some(other) = ends.find(|end| code(end) != code(first)) {
            return Some(format!("one rank ended as {first:?}, another as {other:?}"));
        }
        let is_explained = match first {
            End::Finished => true,
            End::Stopped => world.signalled || world.killed,
            End::Failed(code, said) => {
                let is_elsewhere = worlds.len() > 1 && said.contains("another job works on this study");
                is_elsewhere || (world.disk || may_refuse) && matches!(*code, exit::RESULTS | exit::JOURNAL)
            }
        };
        if !is_explained {
            return Some(format!("a run ended as {first:?} without a reason: {world:?}"));
        }
        if is_last && !may_refuse && *first != End::Finished {
            return Some(format!("the last run, which nothing disturbed, ended as {first:?}"));
        }
    }
    None
}

/// A cell that a person was told to be finished, and that the journal does not have.
fn untold(shared: &Shared) -> Option<String> {
    let journal = Journal::read(&journal_path(&shared.output), &dps::storage::Disk).ok().flatten();
    let has = |key: CellKey| trials_of(journal.as_ref(), key);
    let lost = lock(&shared.told).iter().copied().find(|&(key, trials)| has(key) < trials)?;
    Some(format!("{}, which was told to be finished, has {} of its {} trials", lost.0, has(lost.0), lost.1))
}

/// Trials of a cell that a journal has. Cells that get more trials are unfinished once more; those that have ended are there.
fn trials_of(journal: Option<&Contents>, key: CellKey) -> usize {
    let finished = journal.iter().flat_map(|journal| &journal.finished).filter(|cell| cell.key == key).map(|cell| cell.trials.len());
    let partial = journal
        .iter()
        .flat_map(|journal| &journal.partial)
        .map(|partial| &partial.cell)
        .filter(|cell| cell.key == key)
        .map(|cell| cell.trials.len());
    finished.chain(partial).max().unwrap_or(0)
}

/// A checkpoint is there whole or not at all.
fn damaged_checkpoint(loaded: &Configuration, shared: &Shared) -> Option<String> {
    let data = &shared.problem.dataset.digest;
    match load(&checkpoint_path(&shared.output), &loaded.digest, data, &dps::storage::Disk) {
        Ok(Loaded::Damaged(sentence)) => Some(sentence),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}
