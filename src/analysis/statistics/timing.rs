//! How long the best trial of each cell takes, and which batch size is the quickest or the cheapest.

use std::collections::BTreeMap;

use super::estimate::Estimate;
use crate::analysis::studies::StudyResults;
use crate::readable::{count, significant, some};
use crate::records::{Cell, CellKey};
use crate::results::Environment;
use crate::settings::ascending;
use crate::statistics::student;

/// The time of a cell's steps.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// K*.
    pub steps: u32,
    /// Ranks that measured it.
    pub ranks: u32,
    /// Threads a rank.
    pub threads: u32,
    /// The device that trained the cell.
    pub device: String,
    /// Seconds a step: geometric mean over the cell's trials of their seconds over their steps. The interval holds the scatter of the cell's
    /// trials and that of cells about a + b·B seconds at batch size B.
    pub step_seconds: Estimate,
    /// Seconds to the goal: K* steps. The interval also holds what is not known of K* between two evaluations.
    pub seconds: Estimate,
    /// Seconds to the goal times ranks and threads a rank.
    pub core_seconds: Estimate,
}

/// Every cell that reached the goal, by sparsity, batch size and ranks; several times where files of it are of several numbers of ranks. A file does
/// not say which of its starts measured a cell, so those of a study that went on with other ranks or threads are left out.
pub fn times(study: &StudyResults) -> Vec<Timed> {
    let timed = |(cell, environment): (&Cell, &Environment)| {
        let steps = cell.steps_to_result()?;
        let per_step = cell.trials.iter().filter(|trial| trial.steps_run > 0 && trial.seconds > 0.0);
        let step_seconds = Estimate::geometric(per_step.map(|trial| trial.seconds / f64::from(trial.steps_run)));
        let before = f64::from(steps.saturating_sub(study.results.workload.evaluate_every));
        let seconds = Estimate { low: before * step_seconds.low, ..step_seconds.scaled(f64::from(steps)) };
        step_seconds.value.is_finite().then(|| Timed {
            key: cell.key,
            steps,
            ranks: environment.ranks,
            threads: environment.threads,
            device: environment.device.clone(),
            step_seconds,
            seconds,
            core_seconds: seconds.scaled(cores(environment.ranks, environment.threads)),
        })
    };
    let mut all: Vec<Timed> = study.measurements().filter(|(_, environment)| is_of_one_place(environment)).filter_map(timed).collect();
    if let Some(scatter) = scatter(&all) {
        for timed in &mut all {
            timed.step_seconds = timed.step_seconds.times(scatter);
            timed.seconds = timed.seconds.times(scatter);
            timed.core_seconds = timed.core_seconds.times(scatter);
        }
    }
    all.sort_by(|a, b| a.key.by_sparsity(&b.key).then((a.ranks, a.threads).cmp(&(b.ranks, b.threads))));
    all
}

/// Whether a file is of one device, and all of its starts with known ranks had the ranks and threads that the file names. A file merged of parts from
/// several devices names each device, and may lack the starts of some parts.
pub(super) fn is_of_one_place(environment: &Environment) -> bool {
    let own = (environment.ranks, environment.threads);
    !environment.device.contains("; ")
        && environment.starts.iter().filter(|start| start.ranks > 0).all(|start| (start.ranks, start.threads) == own)
}

/// Processors that so many ranks of so many threads keep busy; numbers that are not known count as 1.
pub(super) fn cores(ranks: u32, threads: u32) -> f64 {
    f64::from(ranks.max(1)) * f64::from(threads.max(1))
}

/// The factor, 1 with an interval, by which a cell's seconds a step differ from a + b·B: other programs, and a machine's clock, slow whole cells. The
/// cells of one sparsity on as many ranks and threads of one device have one line, by least squares of relative differences. None where no line has
/// more than two cells.
fn scatter(all: &[Timed]) -> Option<Estimate> {
    let mut lines = BTreeMap::new();
    for timed in all {
        let line = (timed.key.sparsity.to_bits(), timed.ranks, timed.threads, timed.device.as_str());
        let cells: &mut Vec<(f64, f64)> = lines.entry(line).or_default();
        cells.push((f64::from(timed.key.batch_size), timed.step_seconds.value));
    }
    let (mut squares, mut freedom) = (0.0, 0);
    for cells in lines.values().filter(|cells| cells.len() > 2) {
        // Minimises Σ (a/y + b·x/y − 1)².
        let sum = |of: fn(f64, f64) -> f64| cells.iter().map(|&(x, y)| of(1.0 / y, x / y)).sum::<f64>();
        let [uu, uv, vv, u, v] = [sum(|u, _| u * u), sum(|u, v| u * v), sum(|_, v| v * v), sum(|u, _| u), sum(|_, v| v)];
        let determinant = uu * vv - uv * uv;
        let (a, b) = ((u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant);
        squares += cells.iter().map(|&(x, y)| ((a + b * x) / y - 1.0).powi(2)).sum::<f64>();
        freedom += cells.len() - 2;
    }
    let margin = student(freedom) * (squares / freedom as f64).sqrt();
    (freedom > 0 && margin.is_finite()).then(|| Estimate { value: 1.0, low: (-margin).exp(), high: margin.exp() })
}

/// Sentences on each sparsity: the batch size with the shortest time to the goal and the cheapest one. One is said to be so where its interval lies
/// below those of all others; else those that cannot be told from the best are named.
pub fn sentences(times: &[Timed]) -> Vec<String> {
    let sparsities = ascending(times.iter().map(|timed| timed.key.sparsity), f64::total_cmp);
    let of = |sparsity: f64| times.iter().filter(move |timed| timed.key.sparsity == sparsity).collect::<Vec<_>>();
    let several = sparsities.into_iter().map(|sparsity| (sparsity, of(sparsity))).filter(|(_, cells)| cells.len() > 1);
    several
        .flat_map(|(sparsity, cells)| {
            [
                sentence(sparsity, &cells, "the shortest time to the goal", "seconds", |timed| timed.seconds),
                sentence(sparsity, &cells, "the fewest core-seconds to the goal", "core-seconds", |timed| timed.core_seconds),
            ]
        })
        .flatten()
        .collect()
}

/// None where no cell has an interval.
fn sentence(sparsity: f64, cells: &[&Timed], what: &str, unit: &str, of: fn(&Timed) -> Estimate) -> Option<String> {
    let best = cells.iter().filter(|timed| of(timed).high.is_finite()).min_by(|a, b| of(a).value.total_cmp(&of(b).value))?;
    let Estimate { value, low, high } = of(best);
    let place = |timed: &Timed| format!("batch size {} on {}", count(timed.key.batch_size), some(timed.ranks as usize, "rank"));
    let number = format!("{} {unit} [{} … {}]", significant(value), significant(low), significant(high));
    // A cell without an interval may be as quick as the best one.
    let others = cells.iter().filter(|timed| !std::ptr::eq(**timed, *best));
    let alike: Vec<String> = others.filter(|timed| of(timed).low.is_nan() || of(timed).low <= high).map(|timed| place(timed)).collect();
    Some(if alike.is_empty() {
        format!("Sparsity {sparsity}: {what} of the measured cells is that of {}, {number}.", place(best))
    } else {
        format!(
            "Sparsity {sparsity}: {what} is not decided: {} takes {number}, and {} cannot be told from it.",
            place(best),
            alike.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(batch_size: u32, step_seconds: f64) -> Timed {
        let step_seconds = Estimate { value: step_seconds, low: 0.99 * step_seconds, high: 1.01 * step_seconds };
        let key = CellKey { batch_size, sparsity: 0.0 };
        let seconds = step_seconds.scaled(100.0);
        Timed { key, steps: 100, ranks: 1, threads: 1, device: "CPU".to_owned(), step_seconds, seconds, core_seconds: seconds }
    }

    #[test]
    fn cells_that_lie_on_a_line_have_no_scatter_and_others_have() {
        let line: Vec<Timed> = [16, 32, 64, 128].map(|size| timed(size, 0.002 + 1e-4 * f64::from(size))).to_vec();
        let scatter_of_line = scatter(&line).unwrap();
        assert!((scatter_of_line.high - 1.0).abs() < 1e-9, "{scatter_of_line:?}");
        // Another program ran beside the second cell and the last.
        let busy: Vec<Timed> =
            [(16, 0.0088), (32, 0.0128), (64, 0.0047), (128, 0.0207)].map(|(size, seconds)| timed(size, seconds)).to_vec();
        assert!(scatter(&busy).unwrap().high > 3.0);
        assert!(scatter(&line[..2]).is_none(), "two cells are always on a line");
    }

    /// A merged file has the largest numbers of ranks and threads, and may have no starts of its parts.
    #[test]
    fn cells_of_several_devices_have_no_time() {
        let of = |device: &str| is_of_one_place(&Environment { device: device.to_owned(), ranks: 1, threads: 2, ..Environment::default() });
        assert_eq!([of("CPU, 2 threads a rank"), of("CPU, 1 thread a rank; CPU, 2 threads a rank")], [true, false]);
    }
}
