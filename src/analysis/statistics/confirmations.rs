//! The cells of a study whose best points were trained again with fresh seeds: their steps with errors, and how lucky K* was.

use std::collections::BTreeMap;

use super::confirmed::{Confirmed, Reached, mean_error};
use super::exponents::Exponents;
use super::fit::{Estimate, Fit};
use super::fits::{Fitted, beside_dense};
use super::least_squares::Law;
use super::means::{Mean, MeanFit, Middle, fit_means, laws};
use super::shaped::{Shape, Shaped};
use super::sharpness::Sharp;

use crate::analysis::studies::StudyResults;
use crate::records::{Cell, CellKey, Confirmation, Status};
use crate::settings::{Race, Study, ascending};
use crate::statistics::{crossed, in_play, seeds_in_play};

/// A cell's confirmed steps, their points and their scatter.
#[derive(Debug, Clone)]
pub struct ConfirmedCell {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// The points of the cell, by their trials of the search.
    pub points: Vec<u32>,
    /// Steps of the points' confirmations.
    pub confirmed: Confirmed,
    /// The steps at which the mean error over the seeds reaches the goal, where the trainings went on after it.
    pub mean_error: Option<Estimate>,
    /// K* over the geometric mean of the confirmed steps: how lucky it was.
    pub luck: Option<Estimate>,
}

/// The law fitted to the confirmed steps of a sparsity.
#[derive(Debug, Clone)]
pub struct ConfirmedFit {
    /// The fit to the geometric means, and its ratios to the dense network's.
    pub fitted: Fitted,
    /// The fit to the medians of the cells whose medians have a standard error, and its ratios; none of a sparsity with fewer than three.
    pub of_medians: Option<Fitted>,
    /// How often means with these standard errors would lie as far from the law, if it held: the goodness of the fit.
    pub goodness: f64,
    /// The deviation of log steps that the standard errors of all means leave over: points of some cells were tuned better than those of others.
    pub tuning: f64,
    /// The least and the greatest ratio of critical batch sizes that the fits give where one batch size is left out of all of them, each with that
    /// batch size in examples. None of the dense network, and where too few batch sizes are left.
    pub without_one: Option<[(f64, f64); 2]>,
    /// The fit of ((c1/B)^q + c2^q)^(1/q), with a sharpness q that all sparsities share; none of one sparsity or few means.
    pub sharp: Option<ShapedFit>,
    /// The fit of c1/B^a + c2, with an exponent a for each sparsity; none of few means.
    pub bent: Option<ShapedFit>,
}

/// A sparsity by a law whose shape is fitted too.
#[derive(Debug, Clone, Copy)]
pub struct ShapedFit {
    /// The number that is the law's shape; 1: the paper's law.
    pub shape: Estimate,
    /// The critical batch size, where linear scaling meets the floor.
    pub critical: Estimate,
    /// The critical batch size over the dense network's; none of the dense network, and without one.
    pub critical_ratio: Option<Estimate>,
    /// How often the means of all sparsities would lie as far from the law, if it held.
    pub goodness: f64,
}

impl ShapedFit {
    /// A law's numbers of the curve at a place, and the ratio of its critical batch size to that of the dense network's curve at another one.
    fn of<S: Shape>(law: &Shaped<S>, place: usize, dense: Option<usize>) -> ShapedFit {
        let over = |dense: usize| law.estimate(|shape| shape.critical(place) / shape.critical(dense));
        ShapedFit {
            shape: law.estimate(|shape| shape.number(place)),
            critical: law.estimate(|shape| shape.critical(place)),
            critical_ratio: dense.filter(|&dense| dense != place).map(over),
            goodness: law.goodness,
        }
    }
}

impl ConfirmedFit {
    /// The fit.
    pub fn fit(&self) -> Option<&Fit> {
        self.fitted.fit.as_ref().ok()
    }
}

/// The confirmed cells of a study, in its order.
pub fn confirmed_cells(study: &StudyResults) -> Vec<ConfirmedCell> {
    study.results.cells.iter().filter_map(|cell| of_cell(cell, study)).collect()
}

/// The confirmations by which a cell is measured: of the points that were not dropped as slower ones.
pub(super) struct InPlay<'c> {
    /// The points.
    points: Vec<u32>,
    /// The confirmations of each point by seed: of the seeds, from the first one on, that all of the points have. Where a round of confirmations was
    /// interrupted, those behind a gap are the quick ones.
    confirmations: Vec<Vec<&'c Confirmation>>,
    /// The steps at which a training was given up.
    limit: u32,
}

impl<'c> InPlay<'c> {
    pub(super) fn of(cell: &'c Cell, study: &StudyResults) -> InPlay<'c> {
        let (all, limit) = (cell.confirmed_points(), limit(cell, study));
        let of_point = |&point: &u32| cell.confirmations_of(point).map(|one| (one.training.number, one)).collect::<BTreeMap<_, _>>();
        let by_number: Vec<BTreeMap<u32, &Confirmation>> = all.iter().map(of_point).collect();
        let without_gap = |known: &BTreeMap<u32, _>| known.keys().zip(0..).take_while(|(number, place)| *number == place).count();
        let seeds: Vec<usize> = by_number.iter().map(without_gap).collect();
        let drops_early = |study: &Study| study.confirm.as_ref().is_some_and(|confirm| confirm.drop_slower && confirm.precision > 0.0);
        let places = if study.configuration.as_ref().is_ok_and(drops_early) {
            // A better point that came later may be known well enough by fewer seeds than a dropped one has had.
            let steps = |(known, &seeds): (&BTreeMap<u32, &Confirmation>, &usize)| {
                known.values().take(seeds).map(|one| one.steps_within(limit)).collect::<Vec<f64>>()
            };
            let steps: Vec<Vec<f64>> = by_number.iter().zip(&seeds).map(steps).collect();
            let most = seeds.iter().max().map_or(0, |&most| most as u32);
            in_play(&seeds_in_play(&steps, limit.into(), most).into_iter().map(|seeds| seeds as usize).collect::<Vec<_>>())
        } else {
            in_play(&seeds)
        };
        let shared = places.iter().map(|&place| seeds[place]).min().unwrap_or(0);
        let of_place = |&place: &usize| by_number[place].values().copied().take(shared).collect();
        InPlay { points: places.iter().map(|&place| all[place]).collect(), confirmations: places.iter().map(of_place).collect(), limit }
    }

    /// The trainings of each point, by seed, to the limit.
    pub(super) fn trainings(&self) -> Vec<Vec<Reached>> {
        let reached = |one: &&Confirmation| {
            let (above, steps) = one.reached().filter(|&(_, steps)| steps <= self.limit)?;
            Some((f64::from(above), f64::from(steps)))
        };
        self.confirmations.iter().map(|point| point.iter().map(reached).collect()).collect()
    }
}

/// The steps at which a cell's trainings were given up: the least, where some were given up at a limit that is higher now. Where none was, the limit
/// that the study's configuration sets, and no less than the steps of the longest training.
fn limit(cell: &Cell, study: &StudyResults) -> u32 {
    let runs = || cell.confirmations.iter().map(|confirmation| &confirmation.run);
    let given_up = runs().filter(|run| run.status == Status::Incomplete).map(|run| run.steps_run).min();
    let configured = || {
        let (confirm, first) = (study.configuration.as_ref().ok()?.confirm.as_ref()?, cell.confirmations.first()?);
        Race::Until(confirm.limit).last_step(cell.steps_to_result()?, first.training.evaluate_every.max(1))
    };
    given_up.or_else(|| runs().filter_map(|run| run.steps).chain(configured()).max()).unwrap_or(1)
}

/// The errors of each seed at its evaluations, every so many steps, by the point that the other half of the seeds chose. None where an evaluation
/// did not see the whole validation set, or a training ended at its goal.
fn errors(points: &[Vec<&Confirmation>], chosen: [usize; 2], examples: u32) -> Option<(Vec<Vec<f64>>, u32)> {
    let chosen = crossed(points, chosen);
    let every = chosen.first()?.training.evaluate_every.max(1);
    let last = chosen.iter().map(|one| one.run.steps_run).max()?;
    let of_seed = |one: &&Confirmation| {
        let at = |number: u32| match one.run.curve.get(number as usize) {
            Some(point) => (point.examples == examples).then_some(f64::from(point.errors)),
            // Without a finite loss every example is wrong.
            None => (one.run.status == Status::Infeasible || one.run.steps_run == last).then_some(f64::from(examples)),
        };
        (0..last / every).map(at).collect::<Option<Vec<f64>>>()
    };
    Some((chosen.iter().map(of_seed).collect::<Option<_>>()?, every))
}

fn of_cell(cell: &Cell, study: &StudyResults) -> Option<ConfirmedCell> {
    let (in_play, workload) = (InPlay::of(cell, study), &study.results.workload);
    let confirmed = Confirmed::new(&in_play.trainings(), in_play.limit.into())?;
    let Estimate { value, low, high } = confirmed.mean;
    let luck = cell.steps_to_result().map(f64::from).filter(|_| !value.is_nan());
    let luck = luck.map(|steps| Estimate { value: steps / value, low: steps / high, high: steps / low });
    // Where the goal is a whole number of errors, a product of floating point may lie just below it.
    let goal = (workload.goal_error * f64::from(workload.validation_examples)).max(f64::from(workload.goal_threshold));
    let errors = errors(&in_play.confirmations, confirmed.chosen, workload.validation_examples);
    let mean_error = errors.map(|(errors, every)| mean_error(&errors, every.into(), goal));
    Some(ConfirmedCell { key: cell.key, points: in_play.points, confirmed, mean_error, luck })
}

/// The means, or medians, of the cells of a sparsity that have one, by batch size.
pub fn means(cells: &[ConfirmedCell], sparsity: f64, middle: Middle) -> Vec<Mean<'_>> {
    let of_sparsity = cells.iter().filter(|cell| cell.key.sparsity == sparsity);
    let known = of_sparsity.filter_map(|cell| Mean::new(f64::from(cell.key.batch_size.max(1)), &cell.confirmed, middle));
    let mut means: Vec<Mean> = known.collect();
    means.sort_by(|a, b| a.batch_size.total_cmp(&b.batch_size));
    means
}

/// The fits by which a report answers, and whether these are fits of confirmed steps. Fits of confirmed steps are taken where there are any, unless
/// only the fits of K* include the dense network and another sparsity.
pub fn answering<'a>(fits: &'a [Fitted], confirmed: &'a [ConfirmedFit]) -> (Vec<&'a Fitted>, bool) {
    let by_confirmed: Vec<&Fitted> = confirmed.iter().map(|confirmed| &confirmed.fitted).collect();
    let by_least: Vec<&Fitted> = fits.iter().filter(|fitted| fitted.fit.is_ok()).collect();
    let has_dense = |fits: &[&Fitted]| fits.iter().any(|fitted| fitted.sparsity == 0.0) && fits.len() > 1;
    let is_confirmed = !by_confirmed.is_empty() && (has_dense(&by_confirmed) || !has_dense(&by_least));
    (if is_confirmed { by_confirmed } else { by_least }, is_confirmed)
}

/// The law fitted to the confirmed steps of each sparsity that has them at three batch sizes.
pub fn confirmed_fits(cells: &[ConfirmedCell]) -> Vec<ConfirmedFit> {
    let sparsities = ascending(cells.iter().map(|cell| cell.key.sparsity), f64::total_cmp);
    let fitted = |middle: Middle| {
        let curves: Vec<Vec<Mean>> = sparsities.iter().map(|&sparsity| means(cells, sparsity, middle)).collect();
        let (fits, tuning) = fit_means(&curves);
        let found = sparsities.iter().zip(fits).filter_map(|(&sparsity, fit)| {
            let MeanFit { fit, goodness, points } = fit.ok()?;
            Some((Fitted::new(sparsity, points, Ok(fit)), goodness))
        });
        let (mut fits, goodness): (Vec<Fitted>, Vec<f64>) = found.unzip();
        beside_dense(&mut fits);
        (fits, goodness, tuning)
    };
    let ((fits, goodness, tuning), (of_medians, ..)) = (fitted(Middle::Mean), fitted(Middle::Median));
    let of_fits: Vec<Vec<Mean>> = fits.iter().map(|fitted| means(cells, fitted.sparsity, Middle::Mean)).collect();
    let (sharp, bent) = (Shaped::<Sharp>::new(&of_fits), Shaped::<Exponents>::new(&of_fits));
    let dense = fits.iter().position(|fitted| fitted.sparsity == 0.0);
    let without_one = dense.map_or_else(Vec::new, |dense| without_one(&of_fits, dense));
    let with = |(place, (fitted, goodness)): (usize, (Fitted, f64))| {
        let (sharp, bent) =
            (sharp.as_ref().map(|law| ShapedFit::of(law, place, dense)), bent.as_ref().map(|law| ShapedFit::of(law, place, dense)));
        let of_medians = of_medians.iter().find(|medians| medians.sparsity == fitted.sparsity).cloned();
        // The exponent by the standard errors of the means.
        let fitted = Fitted { exponent: bent.map_or(fitted.exponent, |bent| Some(bent.shape)), ..fitted };
        ConfirmedFit { fitted, of_medians, goodness, tuning, without_one: without_one.get(place).copied().flatten(), sharp, bent }
    };
    fits.into_iter().zip(goodness).enumerate().map(with).collect()
}

/// For each curve, the least and the greatest ratio of its critical batch size to the one of the curve at the place `dense`, where one batch size is
/// left out of all curves, each with that batch size. None of the dense curve itself, and where a batch size leaves too few others.
fn without_one(curves: &[Vec<Mean>], dense: usize) -> Vec<Option<[(f64, f64); 2]>> {
    let sizes = ascending(curves.iter().flatten().map(|mean| mean.batch_size), f64::total_cmp);
    let critical = |size: f64| {
        let others = curves.iter().map(|means| means.iter().copied().filter(|mean| mean.batch_size != size).collect());
        let curves: Vec<Vec<Mean>> = others.collect();
        (size, laws(&curves).into_iter().map(|law| law.map(|Law { c1, c2 }| c1 / c2)).collect::<Vec<Option<f64>>>())
    };
    let criticals: Vec<(f64, Vec<Option<f64>>)> = sizes.into_iter().map(critical).collect();
    let of = |place: usize| {
        let ratio = |(size, critical): &(f64, Vec<Option<f64>>)| Some((*size, critical[place]? / critical[dense]?));
        let ratios = criticals.iter().map(ratio).collect::<Option<Vec<(f64, f64)>>>()?;
        let order = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
        Some([ratios.iter().copied().min_by(order)?, ratios.iter().copied().max_by(order)?]).filter(|_| place != dense)
    };
    (0..curves.len()).map(of).collect()
}
