//! How often the rules of the paper's claims decide, and decide wrongly, in simulated studies of which the truth is known. This test plays 30 of each
//! kind; `make coverage` plays 300 and writes their tables into docs/results.md.

use std::fs;
use std::path::Path;

use super::coverage::{COARSE, DENSE, SHARED, Situation, alike, confirmed_study, situations, study};
use crate::support::synthetic::{Synthetic, normal, uniform};
use dps::analysis::{Claim, StudyResults, Verdict, claims, fits, gather, holm};
use dps::optimizer::{Metaparameter, Metaparameters};
use dps::records::Status;
use dps::settings::Race;
use rayon::prelude::*;

/// Studies of each kind that the test plays; `DPS_COVERAGE` asks for half as many as it says.
const SIMULATIONS: u64 = 30;

/// The comments of docs/results.md between which the tables stand.
const BEGIN: &str = "<!-- rules: written by `make coverage` -->\n";
const END: &str = "<!-- end of rules -->";

/// Rules that decide by the law of steps.
const OF_LAW: [Claim; 9] = [
    Claim::Linear,
    Claim::Diminishing,
    Claim::Maximal,
    Claim::MoreSteps,
    Claim::Times,
    Claim::TwoToFour,
    Claim::RatioFalls,
    Claim::CriticalBatchSize,
    Claim::FourTimes,
];

/// Rules that decide by the trials of the search.
const OF_SEARCH: [Claim; 4] = [Claim::GoodRegion, Claim::RegionGrows, Claim::LearningRate, Claim::Inside];

/// Studies of one kind: the two networks' c1 and c2, the batch size's power in the law, and whether the rules of the search space hold.
struct Kind {
    name: &'static str,
    laws: [(f64, f64); 2],
    power: f64,
    tuned: Option<bool>,
    study: Box<dyn Fn(u64) -> StudyResults + Sync>,
}

/// Batch sizes 2 to 1,024.
fn ten() -> Vec<u32> {
    (1..=10).map(|power| 1 << power).collect()
}

/// The laws of a dense network, and of a sparse one with so many times its c1 and c2.
fn times(c1: f64, c2: f64) -> [(f64, f64); 2] {
    [DENSE, (DENSE.0 * c1, DENSE.1 * c2)]
}

/// Studies of K* alone.
fn of_least(name: &'static str, situation: Situation, laws: [(f64, f64); 2], power: f64) -> Kind {
    Kind { name, laws, power, tuned: None, study: Box::new(move |seed| study(&situation, seed, laws, power)) }
}

/// Studies with confirmations.
fn confirmed(name: &'static str, laws: [(f64, f64); 2]) -> Kind {
    Kind { name, laws, power: 1.0, tuned: None, study: Box::new(move |seed| confirmed_study(seed, &ten(), laws, 0.0, 1.0)) }
}

fn kinds_of_law() -> Vec<Kind> {
    let scattering = || alike(ten(), |counter| 0.12 * normal(counter));
    let named = |name: &str| situations().into_iter().find(|one| one.name == name).unwrap();
    vec![
        of_least("sparse = dense", scattering(), times(1.0, 1.0), 1.0),
        of_least("sparse = dense, correlated by 0.7", named(SHARED), times(1.0, 1.0), 1.0),
        of_least("c1 × 3, c2 × 3", scattering(), times(3.0, 3.0), 1.0),
        of_least("c1 × 4, c2 × 1", scattering(), times(4.0, 1.0), 1.0),
        of_least("power law B^−0.8, sparse × 3", scattering(), [(DENSE.0, 0.0), (DENSE.0 * 3.0, 0.0)], 0.8),
        of_least("c1 × 3, c2 × 3, rounded up to 64 steps", named(COARSE), times(3.0, 3.0), 1.0),
        confirmed("sparse = dense, confirmed", times(1.0, 1.0)),
        confirmed("c1 × 3, c2 × 3, confirmed", times(3.0, 3.0)),
        confirmed("c1 × 4, c2 × 1, confirmed", times(4.0, 1.0)),
    ]
}

fn kinds_of_search() -> Vec<Kind> {
    let kind = |name: &'static str, tuned: bool| Kind {
        name,
        laws: times(3.0, 3.0),
        power: 1.0,
        tuned: tuned.then_some(true),
        study: Box::new(move |seed| searched(seed, tuned)),
    };
    vec![kind("every point is as good", false), kind("some points are better", true)]
}

/// A simulated study whose cells have 30 trials of the same points, raced to 3 K*. Either steps scatter by 50 % and have nothing to do with the
/// point; or they grow with its squared distance from a best one, whose learning rate rises with the batch size, and three times as quickly for the
/// sparse network and the more slowly the larger the batch size is.
fn searched(seed: u64, tuned: bool) -> StudyResults {
    let mut results = Synthetic { batch_sizes: ten(), trials: 30, race: Race::Until(3.0), ..Synthetic::small() }.results();
    let (laws, every) = (times(3.0, 3.0), results.workload.evaluate_every);
    for (place, cell) in results.cells.iter_mut().enumerate() {
        let size = f64::from(cell.key.batch_size);
        let is_sparse = cell.key.sparsity > 0.0;
        let (c1, c2) = laws[usize::from(is_sparse)];
        for trial in &mut cell.trials {
            let [rate, momentum] = [0, 1].map(|dimension| uniform((seed * 100 + u64::from(trial.index)) * 2 + dimension));
            let luck = normal((seed * 100 + place as u64) * 100 + u64::from(trial.index) + 20_000_000_000);
            let log_times = if tuned {
                let distance = (rate - 0.3 - 0.04 * size.log2()).powi(2) + (momentum - 0.6).powi(2);
                (1.0 + if is_sparse { 120.0 } else { 40.0 } * size.powf(-0.2) * distance).ln() + 0.1 * luck
            } else {
                0.5 * luck
            };
            let steps = ((c1 / size + c2) * log_times.exp() / f64::from(every)).ceil() as u32 * every;
            trial.metaparameters = Metaparameters::from([(Metaparameter::LearningRate, 10f64.powf(4.0 * rate - 4.0))]);
            trial.metaparameters.set(Metaparameter::Momentum, Some(1.0 - 10f64.powf(3.0 * momentum - 4.0)));
            (trial.status, trial.steps, trial.steps_run) = (Status::Complete, Some(steps), steps);
        }
        let best = cell.steps_to_result().unwrap();
        let end = Race::Until(3.0).last_step(best, every).unwrap();
        for trial in cell.trials.iter_mut().filter(|trial| trial.steps_run > end) {
            (trial.status, trial.steps, trial.steps_run) = (Status::Censored, None, end);
        }
    }
    gather(vec![("simulated.h5".to_owned(), results)]).remove(0)
}

impl Kind {
    /// Whether a claim is true; none at the border of the claim, where either verdict is wrong.
    fn truth(&self, claim: Claim) -> Option<bool> {
        let [(dense_c1, dense_c2), (c1, c2)] = self.laws;
        let has_floor = dense_c2 > 0.0;
        let (of_c1, of_c2) = (c1 / dense_c1, if has_floor { c2 / dense_c2 } else { c1 / dense_c1 });
        let ratio = |size: f64| (c1 / size.powf(self.power) + c2) / (dense_c1 / size.powf(self.power) + dense_c2);
        let at_ends = [2.0, 1024.0].map(ratio);
        let within = |values: &[f64], least: f64, most: f64| {
            let is_at_border = |value: &f64| (value / least - 1.0).abs() < 1e-9 || (value / most - 1.0).abs() < 1e-9;
            let is_inside = |value: &f64| (least..=most).contains(value);
            if values.iter().any(is_at_border) { None } else { Some(values.iter().all(is_inside)) }
        };
        match claim {
            // The power of 0.8 is the least that is called linear.
            Claim::Linear => (self.power == 1.0).then_some(true),
            Claim::Diminishing => Some(has_floor),
            // 19 times the critical batch size lies beyond the largest one.
            Claim::Maximal => Some(false),
            Claim::MoreSteps => within(&at_ends, 1.0, f64::INFINITY),
            Claim::Times => within(&at_ends, 1.5, 4.5),
            Claim::TwoToFour => within(&at_ends, 2.0, 4.0),
            Claim::RatioFalls | Claim::CriticalBatchSize => within(&[of_c1 / of_c2], 1.0, f64::INFINITY),
            Claim::FourTimes => within(&[of_c1 / of_c2], 2.0, 8.0),
            _ => self.tuned,
        }
    }
}

/// A row of a table: words, and for each kind of study shares in percent.
type Row = (String, Vec<Vec<f64>>);

/// For each rule the shares of studies in which it says that its claim holds, and that it does not, at sparsity 0.9; then the share in which any
/// verdict of these rules is wrong, dense or sparse, that stands by Holm's rule.
fn rows(kinds: &[Kind], rules: &[Claim], simulations: u64) -> Vec<Row> {
    let studies = |kind: &Kind| {
        let one = |seed: u64| {
            let study = (kind.study)(seed);
            let mut found = claims(&study, &fits(&study), None);
            found.retain(|finding| rules.contains(&finding.claim));
            holm(found.iter_mut());
            let is_wrong = |verdict: Verdict, truth: Option<bool>| match verdict {
                Verdict::Holds => truth != Some(true),
                Verdict::DoesNotHold => truth != Some(false),
                Verdict::Undecided => false,
            };
            let wrong = found.iter().any(|finding| finding.stands && is_wrong(finding.verdict, kind.truth(finding.claim)));
            let verdict = |rule: &Claim| found.iter().rfind(|finding| finding.claim == *rule).unwrap().verdict;
            (rules.iter().map(verdict).collect::<Vec<_>>(), wrong)
        };
        (0..simulations).into_par_iter().map(|seed| one(seed + 50_000)).collect::<Vec<_>>()
    };
    let columns: Vec<Vec<(Vec<Verdict>, bool)>> = kinds.iter().map(studies).collect();
    let percent = |number: usize| 100.0 * number as f64 / simulations as f64;
    let row = |(place, rule): (usize, &Claim)| {
        let share = |column: &Vec<(Vec<Verdict>, bool)>| {
            let of = |verdict: Verdict| percent(column.iter().filter(|(found, _)| found[place] == verdict).count());
            vec![of(Verdict::Holds), of(Verdict::DoesNotHold)]
        };
        (rule.words().to_owned(), columns.iter().map(share).collect())
    };
    let by_holm = columns.iter().map(|column| vec![percent(column.iter().filter(|(_, wrong)| *wrong).count())]).collect();
    rules.iter().enumerate().map(row).chain([("a wrong verdict that stands by Holm's rule".to_owned(), by_holm)]).collect()
}

fn table(kinds: &[Kind], rows: &[Row]) -> String {
    let mut text = format!("| rule | {} |\n", kinds.iter().map(|kind| kind.name).collect::<Vec<_>>().join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(kinds.len()));
    for (words, shares) in rows {
        let field = |share: &Vec<f64>| share.iter().map(|percent| format!("{percent:.1}")).collect::<Vec<_>>().join(" / ");
        text += &format!("| {words} | {} |\n", shares.iter().map(field).collect::<Vec<_>>().join(" | "));
    }
    text
}

/// The rows of a table.
fn read(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut fields = line.trim_matches('|').split(" | ").map(str::trim);
        let words = fields.next().unwrap().to_owned();
        (words, fields.map(|field| field.split(" / ").map(|share| share.parse().unwrap()).collect()).collect())
    };
    text.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect()
}

/// Wrong verdicts are to be rare: in 5 % of the studies of a kind, and what so few simulations may add. Of a claim at its border either verdict is
/// wrong.
fn check(kinds: &[Kind], rules: &[Claim], rows: &[Row], simulations: u64) {
    let most = 100.0 * (0.05 + 3.0 * (0.05_f64 * 0.95 / simulations as f64).sqrt());
    for (place, kind) in kinds.iter().enumerate() {
        for (rule, (words, shares)) in rules.iter().zip(rows) {
            let [holds, does_not] = shares[place][..] else { panic!("{words}: {shares:?}") };
            let wrong = match kind.truth(*rule) {
                Some(true) => does_not,
                Some(false) => holds,
                None => holds + does_not,
            };
            assert!(wrong <= most, "{}: {words}: wrong in {wrong} % of {simulations} studies", kind.name);
        }
        let (words, shares) = rows.last().unwrap();
        assert!(shares[place][0] <= most, "{}: {words}: {shares:?}", kind.name);
    }
}

#[test]
fn rules_decide_wrongly_as_seldom_as_the_page_says() {
    let asked = std::env::var("DPS_COVERAGE").ok().map(|number| number.parse::<u64>().expect("DPS_COVERAGE is a number of simulations"));
    let simulations = asked.map_or(SIMULATIONS, |asked| asked / 2);
    let tables = [(kinds_of_law(), &OF_LAW[..]), (kinds_of_search(), &OF_SEARCH[..])];
    let made: Vec<Vec<Row>> = tables.iter().map(|(kinds, rules)| rows(kinds, rules, simulations)).collect();
    let text: Vec<String> = tables.iter().zip(&made).map(|((kinds, _), rows)| table(kinds, rows)).collect();
    println!("{}", text.join("\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    let is_to_be_written = asked.is_some() && std::env::var_os("DPS_WRITE_PAGES").is_some();
    if is_to_be_written {
        fs::write(&path, format!("{before}{BEGIN}\n{}\n{END}{after}", text.join("\n"))).unwrap();
    }
    for ((kinds, rules), rows) in tables.iter().zip(&made) {
        check(kinds, rules, rows, simulations);
    }
    // A rule that never decides is never wrong.
    let holds = |table: usize, rule: Claim, kind: &str| {
        let place = tables[table].0.iter().position(|one| one.name == kind).unwrap();
        made[table].iter().find(|row| row.0 == rule.words()).unwrap().1[place][0]
    };
    for kind in ["c1 × 3, c2 × 3", "c1 × 3, c2 × 3, confirmed"] {
        assert!(holds(0, Claim::MoreSteps, kind) > 90.0, "{kind}");
    }
    for kind in ["c1 × 4, c2 × 1", "c1 × 4, c2 × 1, confirmed"] {
        assert!(holds(0, Claim::RatioFalls, kind).min(holds(0, Claim::CriticalBatchSize, kind)) > 90.0, "{kind}");
    }
    for rule in [Claim::GoodRegion, Claim::LearningRate] {
        assert!(holds(1, rule, "some points are better") > 50.0, "{rule:?}");
    }
    if is_to_be_written {
        return;
    }
    // The page's own shares, of more simulations, are as seldom wrong, and of the same rules and kinds.
    let there: Vec<&str> = there.trim().split("\n\n").collect();
    for (((kinds, rules), made), there) in tables.iter().zip(&text).zip(there) {
        let first = |text: &str| text.lines().next().map(str::to_owned);
        assert_eq!(first(there), first(made), "run: make coverage");
        check(kinds, rules, &read(there), 300);
    }
}
