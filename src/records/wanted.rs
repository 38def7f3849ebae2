//! Trials and confirmations that a study asks of a cell.

use std::collections::BTreeMap;

use super::{Cell, CellKey, Confirmation, Seeds, Status, Training, Trial, cells};
use crate::settings::{Confirm, Race, Study};
use crate::statistics;

/// The fewest evaluations of a training until it has taken as many steps as the cell's best trial, unless the configuration says otherwise.
const EVALUATIONS: u32 = 50;

/// The confirmations that a cell is to have.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Steps between two evaluations of a training.
    pub evaluate_every: u32,
    /// The step at which a training ends that has not reached the goal.
    pub last_step: u32,
    /// Whether a training that has reached the goal goes on until `last_step`.
    pub goes_on: bool,
    /// The trainings, by point from the best one on, then number.
    pub trainings: Vec<Training>,
}

impl Wanted {
    /// Confirmations that a study asks of a cell whose trials are all measured, one of the study's `cells`: where the cell's mean is to reach a
    /// precision, or slower points are dropped, those of the seeds that its confirmations call for next. None where the study confirms nothing, or no
    /// trial reached the goal.
    pub fn of(cell: &Cell, cells: &[Cell], study: &Study) -> Option<Wanted> {
        Wanted::beside(cell, cells, study, &[])
    }

    /// The confirmations that [`Wanted::of`] gives, evaluated as often as those of the cell, or else as those of an interrupted round, which are
    /// `known` besides.
    pub fn beside(cell: &Cell, cells: &[Cell], study: &Study, known: &[Confirmation]) -> Option<Wanted> {
        let (confirm, best) = (study.confirm.as_ref()?, cell.steps_to_result()?);
        let evaluate_every = match confirm.evaluate_every {
            0 => finest(&cell.confirmations)
                .or_else(|| finest(known))
                .unwrap_or_else(|| (best / EVALUATIONS).max(1).min(study.workload.evaluate_every)),
            every => every,
        };
        let mut points = best_points(cell, confirm);
        if confirm.neighbours {
            let mut others: Vec<u32> = neighbours(cell, cells).flat_map(|neighbour| best_points(neighbour, confirm)).collect();
            // Whatever else is measured or grows later, a confirmed point stays one.
            others.extend(cell.confirmed_points());
            others.retain(|point| !points.contains(point) && cell.trials.iter().any(|trial| trial.index == *point));
            others.sort_unstable();
            others.dedup();
            points.extend(others);
        }
        let training = |point: u32, number: u32| {
            let seeds = Seeds::fresh(number, point, confirm, study.data.order);
            Training { point, number, seeds, evaluate_every }
        };
        let of_each = |seeds: &[u32]| Wanted {
            evaluate_every,
            last_step: Race::Until(confirm.limit).last_step(best, evaluate_every).unwrap_or(u32::MAX),
            goes_on: confirm.mean_error,
            trainings: points
                .iter()
                .zip(seeds)
                .flat_map(|(&point, &seeds)| (0..seeds).map(move |number| training(point, number)))
                .collect(),
        };
        let of_all = |seeds: u32| of_each(&vec![seeds; points.len()]);
        if !confirm.drop_slower {
            let half_width = |seeds: u32| of_all(seeds).half_width(&cell.confirmations);
            return Some(of_all(seeds_of_each(confirm, half_width)));
        }
        let seeds_had = |point: &u32| cell.confirmations_of(*point).map(|one| one.training.number + 1).max().unwrap_or(0);
        let had: Vec<u32> = points.iter().map(|point| seeds_had(point).min(confirm.seeds)).collect();
        let had = of_each(&had);
        let first_steps = had.first_steps(&points, &cell.confirmations);
        let in_play = |most: u32| of_each(&statistics::seeds_in_play(&first_steps, had.last_step.into(), most));
        let mut wanted = in_play(seeds_of_each(confirm, |most| in_play(most).half_width(&cell.confirmations)));
        // Seeds that a point had before points were dropped, or before another point came, stay; a failure at a lower limit is trained on.
        wanted.trainings.extend(had.so_far(&cell.confirmations).iter().map(|one| one.training));
        let place = |training: &Training| (points.iter().position(|point| *point == training.point), training.number);
        wanted.trainings.sort_by_cached_key(place);
        wanted.trainings.dedup();
        Some(wanted)
    }

    /// Half the width of the interval of the mean log steps, by these trainings; none where not all of them are known.
    fn half_width(&self, known: &[Confirmation]) -> Option<f64> {
        let known = self.among(known);
        if known.len() < self.trainings.len() {
            return None;
        }
        let steps = |one: &Confirmation| one.steps_within(self.last_step);
        let points: Vec<Vec<f64>> =
            known.chunk_by(|a, b| a.training.point == b.training.point).map(|point| point.iter().map(steps).collect()).collect();
        Some(statistics::half_width(&points, self.last_step.into()))
    }

    /// The steps of each point with its first seeds, as far as all of these are `known`, infinite ones of a training that failed.
    fn first_steps(&self, points: &[u32], known: &[Confirmation]) -> Vec<Vec<f64>> {
        let known = self.among(known);
        let of_point = |&point: &u32| {
            let all = known.iter().filter(|one| one.training.point == point).zip(0..);
            all.take_while(|(one, number)| one.training.number == *number).map(|(one, _)| one.steps_within(self.last_step)).collect()
        };
        points.iter().map(of_point).collect()
    }

    /// The points that are confirmed.
    pub fn points(&self) -> impl Iterator<Item = u32> {
        self.trainings.iter().filter(|training| training.number == 0).map(|training| training.point)
    }

    /// The confirmations of `known` that are wanted, in the order of the trainings, each cut at the limit, which may have been higher before.
    pub fn among(&self, known: &[Confirmation]) -> Vec<Confirmation> {
        self.of_each(known, |known| known.iter().find_map(|one| self.cut(one)))
    }

    /// Whether a cell has all of them.
    pub fn are_in(&self, cell: &Cell) -> bool {
        self.among(&cell.confirmations).len() == self.trainings.len()
    }

    /// The confirmations of `known` that are wanted, and in place of those that a lower limit ended before the goal, so that they are to be trained
    /// on, what is known of them.
    fn so_far(&self, known: &[Confirmation]) -> Vec<Confirmation> {
        let longest = |known: &[&Confirmation]| known.iter().max_by_key(|one| one.run.steps_run).map(|&one| one.clone());
        self.of_each(known, |known| known.iter().find_map(|one| self.cut(one)).or_else(|| longest(known)))
    }

    /// For each training, in their order, the record that `of` makes of the records of `known` that are of this training.
    fn of_each(&self, known: &[Confirmation], of: impl Fn(&[&Confirmation]) -> Option<Confirmation>) -> Vec<Confirmation> {
        let mut numbered: BTreeMap<(u32, u32), Vec<&Confirmation>> = BTreeMap::new();
        for one in known {
            numbered.entry((one.training.point, one.training.number)).or_default().push(one);
        }
        let of_training = |training: &Training| {
            let known = numbered.get(&(training.point, training.number))?;
            of(&known.iter().copied().filter(|one| one.training == *training).collect::<Vec<_>>())
        };
        self.trainings.iter().filter_map(of_training).collect()
    }

    /// A confirmation cut at `last_step`; none where its record ends before `last_step` although the training did not end by itself.
    fn cut(&self, known: &Confirmation) -> Option<Confirmation> {
        let Confirmation { training, mut run } = known.clone();
        let end = self.last_step;
        let ended_itself = match run.status {
            Status::Complete => !self.goes_on && run.steps_run <= end,
            // A training that broke in the step after the end had not broken by then.
            Status::Infeasible => run.steps_run < end,
            Status::Incomplete | Status::Censored => false,
        };
        if !ended_itself {
            if run.steps_run < end {
                return None;
            }
            run.seconds *= f64::from(end) / f64::from(run.steps_run.max(1));
            run.steps = run.steps.filter(|&steps| steps <= end);
            run.status = if run.steps.is_some() { Status::Complete } else { Status::Incomplete };
            run.steps_run = end;
            run.curve.retain(|point| point.step <= end);
        }
        Some(Confirmation { training, run })
    }
}

/// Seeds of each point: all, or as many as the precision asks for. `half_width` is half the width of the interval that so many seeds give, none of
/// seeds that are not all trained yet.
fn seeds_of_each(confirm: &Confirm, half_width: impl Fn(u32) -> Option<f64>) -> u32 {
    if confirm.precision == 0.0 { confirm.seeds } else { statistics::seeds(confirm.precision, confirm.seeds, half_width) }
}

/// The points of a cell's trials that reached the goal in the fewest steps, from the best one on: as many as are confirmed, or all that did.
fn best_points(cell: &Cell, confirm: &Confirm) -> Vec<u32> {
    let mut complete: Vec<&Trial> = cell.trials.iter().filter(|trial| trial.steps.is_some()).collect();
    complete.sort_by_key(|trial| (trial.steps, trial.index));
    complete.iter().take(confirm.points as usize).map(|trial| trial.index).collect()
}

/// The cells of `cells` next to a cell: at its sparsity the cells of the next smaller and the next larger batch size, at its batch size the cells
/// of the next smaller and the next larger sparsity.
fn neighbours<'c>(cell: &Cell, cells: &'c [Cell]) -> impl Iterator<Item = &'c Cell> {
    let CellKey { batch_size, sparsity } = cell.key;
    let of_sparsity = || cells.iter().filter(move |other| other.key.sparsity == sparsity);
    let of_size = || cells.iter().filter(move |other| other.key.batch_size == batch_size);
    let by_size = |a: &&Cell, b: &&Cell| a.key.batch_size.cmp(&b.key.batch_size);
    let by_sparsity = |a: &&Cell, b: &&Cell| a.key.sparsity.total_cmp(&b.key.sparsity);
    [
        of_sparsity().filter(|other| other.key.batch_size < batch_size).max_by(by_size),
        of_sparsity().filter(|other| other.key.batch_size > batch_size).min_by(by_size),
        of_size().filter(|other| other.key.sparsity < sparsity).max_by(by_sparsity),
        of_size().filter(|other| other.key.sparsity > sparsity).min_by(by_sparsity),
    ]
    .into_iter()
    .flatten()
}

/// Whether a cell, one of a study's `cells`, has all the confirmations that the study asks of it.
pub fn is_confirmed(cell: &Cell, cells: &[Cell], study: &Study) -> bool {
    Wanted::of(cell, cells, study).is_none_or(|wanted| wanted.are_in(cell))
}

/// Leaves a study's cells the confirmations that the study asks of them. A training that has failed is kept until it is trained to a limit that is
/// higher now.
pub fn keep_wanted(cells: &mut [Cell], study: &Study) {
    let wanted = |cell: &Cell| Some(Wanted::of(cell, cells, study)?.so_far(&cell.confirmations));
    let kept: Vec<Vec<Confirmation>> = cells.iter().map(|cell| wanted(cell).unwrap_or_default()).collect();
    cells.iter_mut().zip(kept).for_each(|(cell, kept)| cell.confirmations = kept);
}

/// Gives a study's cells the rounds of confirmations that are whole among `known`, beyond those that they have. Trainings of a round that was
/// interrupted stay `known` alone: those that ended before are the quick ones of the round.
pub fn add_whole_rounds(cells: &mut [Cell], study: &Study, known: &[(CellKey, Vec<Confirmation>)]) {
    for place in 0..cells.len() {
        if is_confirmed(&cells[place], cells, study) {
            continue;
        }
        let known = confirmations_of(known, cells[place].key);
        while let Some(wanted) = Wanted::beside(&cells[place], cells, study, known).filter(|wanted| !wanted.are_in(&cells[place])) {
            let found = wanted.among(known);
            if found.len() < wanted.trainings.len() {
                break;
            }
            cells[place].confirmations = found;
        }
    }
}

/// The confirmations of a cell among those of some cells.
pub fn confirmations_of(confirmations: &[(CellKey, Vec<Confirmation>)], key: CellKey) -> &[Confirmation] {
    confirmations.iter().find(|(known, _)| *known == key).map_or(&[], |(_, known)| known)
}

/// The fewest steps between two evaluations of confirmations; further ones of their cell are evaluated as often. None where there are none.
fn finest(confirmations: &[Confirmation]) -> Option<u32> {
    confirmations.iter().map(|one| one.training.evaluate_every).min()
}

/// Whether a cell is among `cells`, with `trials` trials or more.
pub fn is_searched(cells: &[Cell], key: CellKey, trials: u32) -> bool {
    cells.iter().any(|cell| cell.key == key && cell.trials.len() >= trials as usize)
}

/// Whether a cell is among `cells`, with all trials and confirmations of the study.
pub fn is_finished(cells: &[Cell], key: CellKey, study: &Study) -> bool {
    is_searched(cells, key, study.grid.trials) && cells.iter().any(|cell| cell.key == key && is_confirmed(cell, cells, study))
}

/// Whether every cell of a study is among `finished`, with all its trials and confirmations.
pub fn all_finished(finished: &[Cell], study: &Study) -> bool {
    cells(&study.grid).into_iter().all(|key| is_finished(finished, key, study))
}
