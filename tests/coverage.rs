//! How often the report's 95 % intervals hold what they are of: in simulations of which the truth is known. This test plays a few hundred;
//! `make coverage` plays two thousand and writes their table into docs/results.md.

mod support;

use std::fs;
use std::path::Path;

use dps::analysis::exponent::exponent;
use dps::analysis::fit::{COVERED, Estimate, slope};
use dps::analysis::{Definition, critical, fits, gather};
use rayon::prelude::*;
use support::synthetic::{Synthetic, normal, uniform};

/// Simulations of a study that the test plays; `DPS_COVERAGE` asks for another number.
const SIMULATIONS: u64 = 200;

/// c1 and c2 of the simulated dense network, and how many times those of it the sparse one has.
const DENSE: (f64, f64) = (20_000.0, 150.0);
const SPARSE: (f64, f64) = (1.7, 2.0);

/// An interval that fits through three points lack.
const EXPONENT: &str = "exponent a of c1/B^a + c2";

/// A batch size at which K of the fit is asked for.
const BATCH_SIZE: u32 = 64;

/// Trials of a cell where the scatter is that of a search.
const TRIALS: u64 = 16;

/// Names of three situations.
const FEWEST: &str = "3 batch sizes, 16 to 1,024";
const UNEQUAL: &str = "6 batch sizes, sparse scatters three times as far";
const BEST_OF_TRIALS: &str = "6 batch sizes, best of 16 trials";

/// Studies that are simulated alike.
struct Situation {
    name: &'static str,
    batch_sizes: Vec<u32>,
    /// The deviation of log K* from the law: a function of a counter.
    scatter: fn(u64) -> f64,
    /// How many times as far K* of the sparse network scatters as that of the dense one.
    sparse_scatter: f64,
}

fn situations() -> [Situation; 6] {
    let powers = |from: u32, to: u32, by: usize| (from..=to).step_by(by).map(|power| 1 << power).collect();
    [
        Situation { name: "13 batch sizes, 2 to 8,192", ..alike(powers(1, 13, 1), |counter| 0.1 * normal(counter)) },
        Situation { name: "6 batch sizes, 16 to 512", ..alike(powers(4, 9, 1), |counter| 0.1 * normal(counter)) },
        Situation { name: "4 batch sizes, 16 to 1,024", ..alike(powers(4, 10, 2), |counter| 0.2 * normal(counter)) },
        Situation { name: FEWEST, ..alike(powers(4, 10, 3), |counter| 0.1 * normal(counter)) },
        Situation { name: UNEQUAL, sparse_scatter: 3.0, ..alike(powers(4, 9, 1), |counter| 0.05 * normal(counter)) },
        Situation { name: BEST_OF_TRIALS, ..alike(powers(4, 9, 1), best_of_trials) },
    ]
}

/// A situation in which both networks scatter alike.
fn alike(batch_sizes: Vec<u32>, scatter: fn(u64) -> f64) -> Situation {
    Situation { name: "", batch_sizes, scatter, sparse_scatter: 1.0 }
}

/// By how much the best of a cell's trials lies above the best point of its search space, as a logarithm: steps grow with the squared distance from
/// it.
fn best_of_trials(counter: u64) -> f64 {
    let of = |trial: u64, dimension: u64| uniform((counter * TRIALS + trial) * 2 + dimension);
    let distance = |trial: u64| (of(trial, 0) - 0.4).powi(2) + (of(trial, 1) - 0.6).powi(2);
    (1.0 + 8.0 * (0..TRIALS).map(distance).fold(f64::INFINITY, f64::min)).ln()
}

/// An interval with what it should hold.
type Known = (&'static str, Estimate, f64);

/// The intervals of one simulated study; three batch sizes have no exponent. `excess` is the mean of the scatter, which raises c1 and c2 alike.
fn simulated(situation: &Situation, seed: u64, excess: f64) -> Vec<Known> {
    let sizes = &situation.batch_sizes;
    let mut results = Synthetic { batch_sizes: sizes.clone(), trials: 1, ..Synthetic::small() }.results();
    for (number, cell) in results.cells.iter_mut().enumerate() {
        let is_dense = cell.key.sparsity == 0.0;
        let (c1, c2) = if is_dense { DENSE } else { (DENSE.0 * SPARSE.0, DENSE.1 * SPARSE.1) };
        let law = c1 / f64::from(cell.key.batch_size) + c2;
        let scatter = (situation.scatter)(seed * 100 + number as u64) * if is_dense { 1.0 } else { situation.sparse_scatter };
        let steps = (law * scatter.exp()).round() as u32;
        (cell.trials[0].steps, cell.trials[0].steps_run) = (Some(steps), steps);
    }
    let study = gather(vec![("simulated.h5".to_owned(), results)]).remove(0);
    let fits = fits(&study);
    let [dense, sparse] = [0, 1].map(|number| fits[number].fit.as_ref().unwrap());
    let defined = critical(&study, &fits, &[]);
    let by = |definition| defined.iter().find(|one| (one.sparsity, one.definition) == (0.0, definition)).unwrap().estimate;
    let (c1, c2) = (DENSE.0 * excess.exp(), DENSE.1 * excess.exp());
    let [smallest, largest, size] = [sizes[0], sizes[sizes.len() - 1], BATCH_SIZE].map(f64::from);
    let steps = |size: f64| c1 / size + c2;
    let exponent = exponent(&study.grid().measured(0.0)).map(|estimate| (EXPONENT, estimate, 1.0));
    let known = [
        ("c1", dense.c1, c1),
        ("c2", dense.c2, c2),
        ("critical batch size: fit, trade-off", by(Definition::Fit), c1 / c2),
        ("critical batch size: measured ends", by(Definition::Measured), smallest * steps(smallest) / steps(largest)),
        ("critical batch size: 20 % overhead", by(Definition::Overhead), 0.2 * c1 / c2 + 1.2 * smallest),
        ("K of the fit at batch size 64", dense.steps(size), steps(size)),
        ("c1 over dense", fits[1].c1_ratio.unwrap(), SPARSE.0),
        ("c2 over dense", fits[1].c2_ratio.unwrap(), SPARSE.1),
        ("critical batch size over dense", sparse.critical_over(dense), SPARSE.0 / SPARSE.1),
        (
            "K of the fit over dense, at batch size 64",
            sparse.steps_over(dense, size),
            (SPARSE.0 * c1 / size + SPARSE.1 * c2) / (c1 / size + c2),
        ),
    ];
    known.into_iter().chain(exponent).collect()
}

/// The least and the largest share that is said of an interval in a situation.
fn said(name: &str, situation: &str) -> (f64, f64) {
    match name {
        // The mean of few numbers that scatter more to one side, of which the page says why.
        "K of the fit at batch size 64" if situation == BEST_OF_TRIALS => (0.90, COVERED.1),
        // A deviation of one degree of freedom, which the page says too.
        ratio if situation == FEWEST && ratio.contains("over dense") => (COVERED.0, 0.999),
        _ => COVERED,
    }
}

/// Names and the shares of the simulations in which the intervals held the truth. No interval excludes nothing: the ratio of two critical batch sizes
/// that no floor bounds.
fn shares(simulations: Vec<Vec<Known>>) -> Vec<(&'static str, f64)> {
    let count = simulations.len() as f64;
    let holds = |(_, estimate, truth): &Known| estimate.holds(*truth) || estimate.low.is_nan();
    let share = |place: usize| simulations.iter().filter(|known| holds(&known[place])).count() as f64 / count;
    simulations[0].iter().enumerate().map(|(place, known)| (known.0, share(place))).collect()
}

/// Of intervals of Student's t: exponents of power laws, means over trials, and products of two such means.
fn of_student(simulations: u64) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    for count in [3, 5, 12] {
        let exponent = |seed: u64| {
            let point = |power: u64| {
                let x = 2.0 * 2f64.powi(power as i32);
                (x, 3.0 * x.powf(0.7) * (0.2 * normal(seed * 100 + power)).exp())
            };
            vec![("exponent", slope(&(0..count).map(point).collect::<Vec<_>>()).unwrap(), 0.7)]
        };
        found.push((format!("exponent of a power law through {count} points"), shares((0..simulations).map(exponent).collect())[0].1));
    }
    let law = |seed: u64| {
        let steps = |power: u32| (1e6 / 2f64.powi(power as i32).powf(0.83) + 300.0) * (0.02 * normal(seed * 100 + u64::from(power))).exp();
        let points: Vec<(u32, u32)> = (2..=12).step_by(2).map(|power| (1 << power, steps(power).round() as u32)).collect();
        vec![("exponent", exponent(&points).unwrap(), 0.83)]
    };
    found.push((
        "exponent a = 0.83 of c1/B^a + c2 through 6 points, scatter of 2 %".to_owned(),
        shares((0..simulations).map(law).collect())[0].1,
    ));
    let mean = |seed: u64, count: u64| Estimate::geometric((0..count).map(|trial| 2.0 * (0.3 * normal(seed * 100 + trial)).exp()));
    for count in [3, 10] {
        let means = (0..simulations).map(|seed| vec![("mean", mean(seed, count), 2.0)]);
        found.push((format!("geometric mean of {count} trials"), shares(means.collect())[0].1));
    }
    let products = (0..simulations).map(|seed| vec![("product", mean(seed, 10).times(mean(seed + simulations, 10)), 4.0)]);
    found.push(("product of two geometric means of 10 trials".to_owned(), shares(products.collect())[0].1));
    found
}

/// The page's table: a row an interval, a column a situation.
fn table(columns: &[(String, Vec<(String, f64)>)]) -> String {
    let mut text = format!("| interval | {} |\n", columns.iter().map(|column| column.0.as_str()).collect::<Vec<_>>().join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(columns.len()));
    for (name, _) in &columns[0].1 {
        let share = |column: &(String, Vec<(String, f64)>)| {
            column.1.iter().find(|row| row.0 == *name).map_or("–".to_owned(), |row| format!("{:.1} %", 100.0 * row.1))
        };
        text += &format!("| {name} | {} |\n", columns.iter().map(share).collect::<Vec<_>>().join(" | "));
    }
    text
}

#[test]
fn intervals_hold_the_truth_as_often_as_the_page_says() {
    let asked = std::env::var("DPS_COVERAGE").ok().map(|number| number.parse::<u64>().expect("DPS_COVERAGE is a number of simulations"));
    let simulations = asked.unwrap_or(SIMULATIONS);
    let columns = situations().map(|situation| {
        let excess = (0..100_000).map(situation.scatter).sum::<f64>() / 100_000.0;
        let all = (0..simulations).into_par_iter().map(|seed| simulated(&situation, seed + 1_000, excess)).collect();
        (situation.name.to_owned(), shares(all).into_iter().map(|(name, share)| (name.to_owned(), share)).collect::<Vec<_>>())
    });
    let student = of_student(2_000);
    let made = format!("\n{}\n{}\n", table(&columns), table(&[("share".to_owned(), student.clone())]));
    println!("{made}");
    // So few simulations may give a share three of its standard deviations away, but not all of them where the share is 97 % at most.
    let margin = 3.0 * (0.95_f64 * 0.05 / simulations as f64).sqrt();
    for (situation, rows) in &columns {
        for (name, share) in rows {
            let (least, most) = said(name, situation);
            let is_all = *share == 1.0 && most == COVERED.1;
            assert!((least - margin..=most + margin).contains(share) && !is_all, "{name}, {situation}: held in {share}");
        }
    }
    for (name, share) in &student {
        assert!((COVERED.0..=COVERED.1).contains(share), "{name}: held in {share}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results.md");
    let page = fs::read_to_string(&path).unwrap();
    let begin = page.find("<!-- coverage: ").and_then(|at| Some(at + page[at..].find("-->\n")? + 4)).unwrap();
    let end = page.find("<!-- end of coverage -->").unwrap();
    if asked.is_some() && std::env::var_os("DPS_WRITE_PAGES").is_some() {
        fs::write(&path, format!("{}{made}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    // The page's own shares, of more simulations, lie within what is said, and are of the same intervals.
    let fields = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.split('|').map(|field| field.trim().to_owned()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let (there, here) = (fields(&page[begin..end]), fields(&made));
    let first = |rows: &[Vec<String>]| rows.iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    assert_eq!(first(&there), first(&here), "run: make coverage");
    let heading = &there[0];
    for row in there.iter().filter(|row| row[2].ends_with(" %")) {
        for (situation, field) in heading.iter().zip(row).skip(2).filter(|(_, field)| field.ends_with('%')) {
            let share: f64 = field.strip_suffix(" %").and_then(|share| share.parse().ok()).unwrap();
            let (least, most) = said(&row[1], situation);
            assert!((100.0 * least..=100.0 * most).contains(&share), "{row:?}");
        }
    }
}
