//! Whether what is found on disk can be a state of a study. What its training never records, as of a damaged or made-up file, is refused before
//! anything goes on from it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::slice;

use crate::journal::{Checkpoint, Contents};
use crate::network::Network;
use crate::optimizer::{Metaparameter, Metaparameters};
use crate::records::{CellKey, Confirmation, CurvePoint, MaskRecord, Measurement, Seeds, Status, Training, Trial, cells};
use crate::settings::{Confirm, Execution, Race, Study, Workload, first_of};
use crate::training::{CellState, LaneRecord};

/// Nothing, or what was expected and found, in words that follow the name of a file.
type Found = Result<(), String>;

/// Part by which a metaparameter may differ from the one that was drawn here: another system's logarithms may round otherwise.
const ROUNDING: f64 = 1e-9;

/// Limits of a study's records: the check of a journal or checkpoint refuses records beyond them.
pub(super) struct Possible<'a> {
    study: Cow<'a, Study>,
    network: &'a Network,
    /// Examples of the validation and of the test set.
    validation: u32,
    test: u32,
    /// Most validation errors of a complete trial.
    threshold: u32,
    /// Metaparameters of each trial, and the number of the first trial.
    drawn: Vec<Metaparameters>,
    first: u32,
    /// Whether an incomplete trial has spent exactly `max_steps`: confirmations end at a limit that may have been another one before.
    spends_all: bool,
    /// Whether a trial that has reached the goal goes on to its end.
    goes_on: bool,
}

impl<'a> Possible<'a> {
    /// Limits for a study with all of its cells and trials, on so many validation and test examples.
    pub(super) fn new(study: &'a Study, network: &'a Network, validation: usize, test: usize) -> Possible<'a> {
        let threshold = study.workload.goal_threshold(validation as u64) as u32;
        let (drawn, first) = (study.search.draw(study.grid.trials), study.search.first_trial);
        let study = Cow::Borrowed(study);
        Possible {
            study,
            network,
            validation: validation as u32,
            test: test as u32,
            threshold,
            drawn,
            first,
            spends_all: true,
            goes_on: false,
        }
    }

    /// The records of trainings that confirm points, each as the trial of its number among `trainings`.
    fn confirming(&self, trainings: &[Training]) -> Result<Possible<'a>, String> {
        let confirm = self.study.confirm.as_ref().ok_or("expected no confirmations, as the study asks for none, found some")?;
        let every = trainings.first().map_or(1, |training| training.evaluate_every);
        for Training { point, number, seeds, evaluate_every } in trainings {
            self.number((*point).into())?;
            let fits = *evaluate_every > 0
                && *evaluate_every == every
                && *number < confirm.seeds
                && *seeds == Seeds::fresh(*number, *point, confirm, self.study.data.order);
            expect(fits, || format!("expected confirmations of the study's points and seeds, found number {number} of trial {point}"))?;
        }
        let workload = Workload { evaluate_every: every, max_steps: u32::MAX, ..self.study.workload.clone() };
        let goes_on = confirm.mean_error;
        let full_evaluation = self.study.execution.full_evaluation || goes_on;
        let execution = Execution { race: Race::Off, full_evaluation, ..self.study.execution.clone() };
        let study = Cow::Owned(Study { workload, execution, smoothness: None, ..self.study.clone().into_owned() });
        let drawn = trainings.iter().filter_map(|training| self.drawn(training.point)).copied().collect();
        Ok(Possible { study, drawn, first: 0, spends_all: false, goes_on, test: 0, ..*self })
    }

    /// Whether the study can go on from a checkpoint.
    pub(super) fn checkpoint(&self, checkpoint: &Checkpoint) -> Found {
        let Checkpoint { confirming, state, .. } = checkpoint;
        match confirming {
            Some(trainings) => self.confirming(trainings)?.state(checkpoint.key, state),
            None => self.state(checkpoint.key, state),
        }
    }

    /// Whether these can be confirmations of a cell.
    pub(super) fn confirmations(&self, confirmations: &[Confirmation]) -> Found {
        for Confirmation { training, run } in confirmations {
            let Training { point, number, .. } = training;
            expect(run.index == *point, || format!("expected a confirmation of trial {point}, found trial {}", run.index))?;
            let one = self.confirming(slice::from_ref(training))?;
            one.trial(&Trial { index: 0, ..run.clone() })
                .map_err(|problem| format!("confirmation {number} of trial {point}: {problem}"))?;
        }
        Ok(())
    }

    /// Whether a journal can be of the study.
    pub(super) fn journal(&self, contents: &Contents) -> Found {
        let parameters = self.network.parameters();
        for (seed, scores) in &contents.scores {
            let found = scores.len();
            expect(found == parameters, || {
                format!("expected {parameters} scores of the connections of seed {seed}, one a parameter, found {found}")
            })?;
            self.seed(*seed)?;
        }
        for MaskRecord { seed, sparsity, kept } in &contents.masks {
            let fits = kept.is_sorted_by(|a, b| a < b) && kept.last().is_none_or(|&last| (last as usize) < parameters);
            expect(fits, || {
                format!(
                    "expected kept parameters of trial {seed} at sparsity {sparsity} in ascending order and below {parameters}, found others"
                )
            })?;
            self.seed(*seed)?;
        }
        let bits = |key: &CellKey| (key.batch_size, (key.sparsity + 0.0).to_bits());
        let known: HashSet<_> = cells(&self.study.grid).iter().map(bits).collect();
        let in_grid = |key: &CellKey| expect(known.contains(&bits(key)), || format!("expected cells of the study's grid, found {key}"));
        for cell in contents.cells() {
            in_grid(&cell.key)?;
            self.cell(&cell.trials, cell.test_errors, cell.seconds).map_err(|problem| format!("{}: {problem}", cell.key))?;
            self.confirmations(&cell.confirmations).map_err(|problem| format!("{}: {problem}", cell.key))?;
        }
        Ok(())
    }

    /// Whether a cell can go on from a state.
    fn state(&self, key: CellKey, state: &CellState) -> Found {
        let CellState { step, lanes, ended, test_errors, seconds } = state;
        let CellKey { batch_size, sparsity } = key;
        expect(batch_size > 0 && (0.0..1.0).contains(&sparsity), || format!("expected a cell, found {key}"))?;
        self.within_budget(*step)?;
        self.cell(ended, *test_errors, *seconds)?;
        let best = ended.iter().filter_map(|trial| trial.steps).min();
        let end = best.and_then(|best| self.study.execution.race.last_step(best, self.study.workload.evaluate_every));
        expect(lanes.is_empty() || end.is_none_or(|end| *step <= end), || {
            format!("expected trials that end with the race, found some after {step} steps")
        })?;
        let mut known: HashSet<u32> = ended.iter().map(|trial| trial.index).collect();
        for lane in lanes {
            let index = lane.trial.index;
            expect(known.insert(index), || format!("expected each trial once, found trial {index} again"))?;
            self.number(index.into())?;
            self.lane(lane, *step).map_err(|problem| format!("trial {index}: {problem}"))?;
        }
        Ok(())
    }

    fn lane(&self, lane: &LaneRecord, step: u32) -> Found {
        let (parameters, numbers) = (self.network.parameters(), self.study.workload.optimizer.kept_numbers());
        let averaged = self.study.search.settings.get(Metaparameter::AverageDecay).is_some();
        let of = |has: bool| if has { parameters } else { 0 };
        for (what, values, expected) in [
            ("weights", &lane.state.weights, parameters),
            ("numbers of the optimizer", &lane.state.velocity, of(numbers > 0)),
            ("squares of the optimizer", &lane.state.squares, of(numbers > 1)),
            ("averaged weights", &lane.state.average, of(averaged)),
        ] {
            expect(values.len() == expected, || format!("expected {expected} {what}, found {}", values.len()))?;
        }
        let Trial { status, steps, steps_run, curve, .. } = &lane.trial;
        let margins = if self.study.execution.full_evaluation || curve.is_empty() { 0 } else { self.validation as usize };
        expect(lane.margins.len() == margins, || format!("expected {margins} margins, found {}", lane.margins.len()))?;
        expect(!lane.margins.iter().any(|margin| margin.is_nan()), || "expected margins, found one that is no number".into())?;
        let loss = lane.state.loss;
        // Before its first step a lane has no loss.
        expect(lane.state.broken.map_or(step == 0 || loss.is_finite(), |broken| broken < step), || {
            format!("expected a loss that is finite, or broke at a step before {step}, found {loss}, {:?}", lane.state.broken)
        })?;
        let reached = self.reached(curve);
        expect(self.goes_on || reached.is_none(), || "expected a trial that trains, found one that reached the goal".into())?;
        let trains = if reached.is_some() { Status::Complete } else { Status::Incomplete };
        let fits = (*steps, *status, *steps_run) == (reached, trains, curve.last().map_or(0, |point| point.step));
        expect(fits, || "expected a trial that trains and ends where its evaluations do, found another".into())?;
        self.is_drawn(&lane.trial)?;
        self.course(&lane.trial, step)
    }

    /// Whether these can be the trials of a cell that have ended.
    fn cell(&self, trials: &[Trial], test_errors: Option<u32>, seconds: f64) -> Found {
        let mut known = HashSet::new();
        for trial in trials {
            expect(known.insert(trial.index), || format!("expected each trial once, found trial {} again", trial.index))?;
            self.number(trial.index.into())?;
            self.trial(trial).map_err(|problem| format!("trial {}: {problem}", trial.index))?;
        }
        let tested = test_errors.is_none_or(|errors| errors <= self.test && trials.iter().any(|trial| trial.steps.is_some()));
        expect(tested, || {
            format!(
                "expected at most {} test errors of a trial that reached the goal, found {}",
                self.test,
                test_errors.unwrap_or_default()
            )
        })?;
        duration(seconds)
    }

    /// Whether this can be the record of a trial that has ended.
    fn trial(&self, trial: &Trial) -> Found {
        let Trial { status, steps, steps_run, curve, .. } = trial;
        self.is_drawn(trial)?;
        self.within_budget(*steps_run)?;
        let reached = self.reached(curve);
        let words = |steps: Option<u32>| steps.map_or("no step".into(), |steps| format!("step {steps}"));
        expect(*steps == reached, || {
            format!("{}: expected the goal at {}, as its evaluations have it, found {}", status.name(), words(reached), words(*steps))
        })?;
        expect(steps.is_some() == (*status == Status::Complete), || {
            format!("{}: expected complete trials alone to reach the goal, found the goal at {}", status.name(), words(*steps))
        })?;
        expect(steps.is_none_or(|steps| steps == *steps_run || self.goes_on && steps < *steps_run), || {
            format!("{}: expected the goal at the last step, {steps_run}, found it at {}", status.name(), words(*steps))
        })?;
        expect(*status != Status::Incomplete || !self.spends_all || *steps_run == self.study.workload.budget(), || {
            format!("incomplete: expected {} steps, found {steps_run}", self.study.workload.budget())
        })?;
        self.course(trial, *steps_run)
    }

    /// Whether the record of a trial up to the step `last` can be that of a training. All fields are named, so that a new one asks for a rule here.
    fn course(&self, trial: &Trial, last: u32) -> Found {
        let Trial {
            index,
            metaparameters: _,
            status: _,
            steps: _,
            steps_run: _,
            parameters_kept,
            mask_hash: _,
            dead_layers,
            curve,
            measurements,
            seconds,
        } = trial;
        self.curve(curve, last)?;
        self.measurements(*index, measurements, last)?;
        let (kept, dead) = (*parameters_kept as usize, *dead_layers as usize);
        expect(kept <= self.network.parameters() && dead <= self.network.layers.len(), || {
            format!(
                "expected at most {} parameters kept and {} dead layers, found {kept} and {dead}",
                self.network.parameters(),
                self.network.layers.len()
            )
        })?;
        duration(*seconds)
    }

    fn within_budget(&self, steps: u32) -> Found {
        let most = self.study.workload.budget();
        expect(steps <= most, || format!("expected at most {most} steps, found {steps}"))
    }

    /// Whether a trial has the metaparameters that are drawn for it.
    fn is_drawn(&self, trial: &Trial) -> Found {
        let drawn = self.drawn(trial.index);
        let is_drawn = |name: Metaparameter| match (drawn.and_then(|drawn| drawn.get(name)), trial.metaparameters.get(name)) {
            (Some(drawn), Some(found)) => (drawn - found).abs() <= ROUNDING * drawn.abs(),
            (drawn, found) => drawn.is_none() && found.is_none(),
        };
        expect(Metaparameter::ALL.iter().all(|&name| is_drawn(name)), || {
            "expected the metaparameters that are drawn for it, found others".into()
        })
    }

    /// The step of the first evaluation that reached the goal, which is the last one of its trial unless that goes on.
    fn reached(&self, curve: &[CurvePoint]) -> Option<u32> {
        curve.iter().find(|point| point.errors <= self.threshold).map(|point| point.step)
    }

    /// Whether these are the evaluations of a trial after so many steps: every `evaluate_every` steps, on examples of the validation set, all of them
    /// where it may have reached the goal.
    fn curve(&self, curve: &[CurvePoint], steps: u32) -> Found {
        let every = self.study.workload.evaluate_every;
        let count = steps / every;
        // A trial that has reached its goal and breaks later has no more evaluations.
        let broke = self.goes_on && curve.len() < count as usize && self.reached(curve).is_some();
        expect(curve.len() == count as usize || broke, || format!("expected {count} evaluations in {steps} steps, found {}", curve.len()))?;
        for (point, number) in curve.iter().zip(1..) {
            let CurvePoint { step, errors, examples, loss } = *point;
            expect(u64::from(step) == number * u64::from(every), || {
                format!("expected evaluation {number} after {} steps, found {step}", number * u64::from(every))
            })?;
            let whole = examples == self.validation;
            let fits = errors <= examples
                && (whole || examples < self.validation && errors > self.threshold && !self.study.execution.full_evaluation);
            expect(fits && loss.is_finite(), || {
                format!(
                    "expected errors among the {} validation examples, all of them seen unless they are more than {}, and a loss, found {errors} of \
                     {examples} and {loss}",
                    self.validation, self.threshold
                )
            })?;
        }
        Ok(())
    }

    fn measurements(&self, trial: u32, measurements: &[Measurement], steps: u32) -> Found {
        let measured = self.study.smoothness.is_some_and(|settings| u64::from(trial) < first_of(settings.trials, u64::MAX));
        let ordered = measurements.is_sorted_by(|a, b| a.step < b.step) && measurements.last().is_none_or(|last| last.step <= steps);
        expect(measurements.is_empty() || measured && ordered, || {
            format!("expected measurements of a trial that is measured, in order of steps up to {steps}, found others")
        })
    }

    /// Whether the study has such a trial.
    fn number(&self, trial: u64) -> Found {
        let end = u64::from(self.first) + self.drawn.len() as u64;
        expect((self.first.into()..end).contains(&trial), || {
            format!("expected trials {} to {}, found trial {trial}", self.first, end.saturating_sub(1))
        })
    }

    /// The metaparameters that are drawn for a trial; none where the study has no such trial.
    fn drawn(&self, trial: u32) -> Option<&Metaparameters> {
        self.drawn.get(trial.checked_sub(self.first)? as usize)
    }

    /// Whether a trial or a confirmation draws its weights by this seed.
    fn seed(&self, seed: u64) -> Found {
        let is_fresh = |confirm: &Confirm| seed.checked_sub(Seeds::FIRST_FRESH).is_some_and(|number| number < confirm.seeds.into());
        if self.study.confirm.as_ref().is_some_and(is_fresh) { Ok(()) } else { self.number(seed) }
    }
}

fn expect(holds: bool, problem: impl FnOnce() -> String) -> Found {
    if holds { Ok(()) } else { Err(problem()) }
}

fn duration(seconds: f64) -> Found {
    expect(seconds.is_finite() && seconds >= 0.0, || format!("expected seconds, found {seconds}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::LaneState;
    use crate::journal::{Header, Partial};
    use crate::network::NetworkName;
    use crate::records::Cell;
    use crate::search::Search;
    use crate::settings;

    const KEY: CellKey = CellKey { batch_size: 4, sparsity: 0.5 };

    /// A study of five trials of forty steps, evaluated every four on ten examples, of which two may be wrong.
    fn study() -> Study {
        let text = "[workload]\ndataset = \"mnist\"\nnetwork = \"lenet-300-100\"\noptimizer = \"momentum\"\ngoal_error = 0.2\nmax_steps = 40\n\
                    evaluate_every = 4\n[grid]\nbatch_sizes = [4, 8]\nsparsities = [0, 0.5]\ntrials = 5\n[search]\n\
                    learning_rate = { min = 1e-3, max = 1, scale = \"log\" }\nmomentum = 0.9\n[execution]\nrace = 2\n";
        settings::parse("test", text, &[]).unwrap().study
    }

    fn network() -> Network {
        Network::new(NetworkName::Lenet300x100)
    }

    /// The first `count` evaluations of a trial that has seven errors on seven examples each time, and at the last one `last` on all.
    fn curve(count: u32, last: Option<u32>) -> Vec<CurvePoint> {
        let mut curve: Vec<CurvePoint> =
            (1..=count).map(|number| CurvePoint { step: 4 * number, loss: 0.5, errors: 7, examples: 7 }).collect();
        if let (Some(point), Some(errors)) = (curve.last_mut(), last) {
            (point.errors, point.examples) = (errors, 10);
        }
        curve
    }

    fn trial(possible: &Possible, index: u32, status: Status, steps_run: u32, last: Option<u32>) -> Trial {
        let steps = (status == Status::Complete).then_some(steps_run);
        let curve = curve(steps_run / 4, last);
        Trial { status, steps, steps_run, curve, ..Trial::new(index, *possible.drawn(index).unwrap()) }
    }

    /// A cell after 22 steps, in which one trial has reached the goal and one has broken, and two train.
    fn valid(possible: &Possible) -> CellState {
        let values = vec![0.25; possible.network.parameters()];
        let lane = |index: u32| LaneRecord {
            trial: trial(possible, index, Status::Incomplete, 20, Some(3)),
            state: LaneState {
                weights: values.clone(),
                velocity: values.clone(),
                squares: Vec::new(),
                average: Vec::new(),
                loss: 0.5,
                broken: (index == 3).then_some(21),
            },
            margins: vec![-0.5; 10],
        };
        let ended = vec![trial(possible, 0, Status::Complete, 12, Some(2)), trial(possible, 4, Status::Infeasible, 9, None)];
        CellState { step: 22, lanes: vec![lane(1), lane(3)], ended, test_errors: Some(3), seconds: 7.0 }
    }

    /// Changes that no training makes; `value` is one that a field may get, other than its own.
    const CHANGES: [fn(&mut CellState, u32); 36] = [
        |state, value| state.step = 24 + value % (u32::MAX - 24),
        |state, value| state.step = value % 20,
        |state, _| state.lanes[1].trial.index = 1,
        |state, _| state.lanes[0].trial.index = 4,
        |state, value| state.lanes[0].trial.index = 5 + value % 1000,
        |state, _| state.lanes[0].trial.curve.reverse(),
        |state, value| state.lanes[0].trial.curve.truncate(value as usize % 5),
        |state, value| state.lanes[0].trial.curve[value as usize % 5].step += 1,
        |state, value| state.lanes[0].trial.curve[value as usize % 5].errors = 11 + value % 1000,
        |state, value| state.lanes[0].trial.curve[value as usize % 4].examples = 11 + value % 1000,
        |state, _| state.lanes[0].trial.curve[4].errors = 2,
        |state, value| state.lanes[0].trial.curve[value as usize % 5].loss = f32::NAN,
        |state, value| state.lanes[0].margins[value as usize % 10] = f32::NAN,
        |state, value| state.lanes[0].margins.truncate(value as usize % 10),
        |state, value| state.lanes[0].state.weights.truncate(value as usize % 1000),
        |state, _| state.lanes[0].state.velocity.clear(),
        |state, value| state.lanes[0].state.velocity.push(value as f32),
        |state, value| state.lanes[0].state.squares.push(value as f32),
        |state, value| state.lanes[0].state.average.push(value as f32),
        |state, _| state.lanes[0].state.loss = f32::INFINITY,
        |state, value| state.lanes[0].state.broken = Some(22 + value % 1000),
        |state, _| state.lanes[0].trial.seconds = -1.0,
        |state, value| {
            let measurement = Measurement { step: value % 20, loss: 1.0, gradient_norm: 1.0, squared_norms: 1.0, lipschitz: None };
            state.lanes[0].trial.measurements.push(measurement);
        },
        |state, value| state.lanes[0].trial.steps = Some(value),
        |state, value| state.lanes[0].trial.steps_run = 21 + value % 1000,
        |state, _| state.lanes[0].trial.status = Status::Complete,
        |state, _| state.lanes[0].trial.metaparameters.set(Metaparameter::LearningRate, Some(7.0)),
        |state, _| state.ended[1].index = 0,
        |state, value| state.ended[0].index = 5 + value % 1000,
        |state, value| state.ended[0].steps = Some(12 + 1 + value % 1000),
        |state, value| state.ended[value as usize % 2].status = Status::Incomplete,
        |state, value| state.ended[1].steps_run = 41 + value % 1000,
        |state, _| state.ended[0].metaparameters.set(Metaparameter::LearningRate, Some(7.0)),
        |state, _| state.ended[0].parameters_kept = u32::MAX,
        |state, value| state.test_errors = Some(6 + value % 1000),
        |state, _| state.seconds = f64::NAN,
    ];

    #[test]
    fn what_training_leaves_is_possible() {
        let (study, network) = (study(), network());
        let possible = Possible::new(&study, &network, 10, 5);
        assert_eq!(possible.state(KEY, &valid(&possible)), Ok(()));
        assert_eq!(possible.state(KEY, &CellState::default()), Ok(()));
        let mut before = valid(&possible);
        (before.step, before.ended, before.test_errors) = (0, Vec::new(), None);
        for lane in &mut before.lanes {
            (lane.margins, lane.state.loss, lane.state.broken) = (Vec::new(), f32::NAN, None);
            (lane.trial.curve, lane.trial.steps_run) = (Vec::new(), 0);
        }
        assert_eq!(possible.state(KEY, &before), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn what_no_training_leaves_is_refused(change in 0..CHANGES.len(), value: u32) {
            let (study, network) = (study(), network());
            let possible = Possible::new(&study, &network, 10, 5);
            let mut state = valid(&possible);
            CHANGES[change](&mut state, value);
            let problem = possible.state(KEY, &state).expect_err("it is possible");
            prop_assert!(problem.contains("expected") && !problem.contains('\n'), "{}", problem);
        }
    }

    #[test]
    fn trials_of_other_numbers_are_refused() {
        let (study, network) = (study(), network());
        let later = Study { search: Search { first_trial: 3, ..study.search.clone() }, ..study.clone() };
        let (usual, later) = (Possible::new(&study, &network, 10, 5), Possible::new(&later, &network, 10, 5));
        let check =
            |possible: &Possible, of: &Possible, number: u32| possible.cell(&[trial(of, number, Status::Infeasible, 9, None)], None, 1.0);
        for number in [3, 4] {
            assert_eq!((check(&usual, &usual, number), check(&later, &later, number)), (Ok(()), Ok(())));
        }
        assert!(check(&usual, &later, 5).unwrap_err().contains("expected trials 0 to 4, found trial 5"));
        assert!(check(&later, &usual, 2).unwrap_err().contains("expected trials 3 to 7, found trial 2"));
    }

    #[test]
    fn journals_of_what_no_training_records_are_refused() {
        let (study, network) = (study(), network());
        let possible = Possible::new(&study, &network, 10, 5);
        let header = Header::default();
        let contents = |key: CellKey, trials: Vec<Trial>, scores: usize, tested: u32| {
            let cell = Cell { key, trials, test_errors: Some(tested), seconds: 1.0, confirmations: Vec::new() };
            let partial = Partial { cell, extended: true };
            let scores = [(2, vec![1.0; scores])].into();
            let (finished, masks, starts) = (Vec::new(), Vec::new(), Vec::new());
            Contents { header: header.clone(), finished, partial: vec![partial], scores, masks, starts, ended: None, dropped_bytes: 0 }
        };
        let all = network.parameters();
        let complete = || vec![trial(&possible, 0, Status::Complete, 12, Some(2))];
        assert_eq!(possible.journal(&contents(KEY, complete(), all, 5)), Ok(()));
        let censored = trial(&possible, 1, Status::Censored, 40, None);
        for (contents, words) in [
            (contents(CellKey { batch_size: 5, ..KEY }, complete(), all, 5), "cells of the study's grid"),
            (contents(KEY, complete(), all - 1, 5), "one a parameter"),
            (contents(KEY, complete(), all, 6), "at most 5 test errors"),
            (contents(KEY, vec![censored], all, 0), "of a trial that reached the goal"),
            (contents(KEY, vec![trial(&possible, 0, Status::Complete, 12, None)], all, 0), "expected the goal at no step"),
            (contents(KEY, vec![trial(&possible, 0, Status::Incomplete, 36, None)], all, 0), "expected 40 steps, found 36"),
        ] {
            let problem = possible.journal(&contents).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
