//! Cost of a study at most, before a step of it is taken.

use std::fmt;
use std::ops::Range;

use super::layers::MOST_DRAWN;
use super::measured;
use super::memory::Memory;
use crate::backend::Sharing;
use crate::comm::MemoryLimit;
use crate::network::{Network, initial_weights};
use crate::pruning::{Given, Scoring, Untrained};
use crate::readable::{aligned, count, duration, si, some};
use crate::records::{CellKey, cells};
use crate::settings::{Confirm, Race, Study, first_of};

/// Where a study would run, and on how many examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Examples of the training set, after the split.
    pub training_examples: u64,
    /// Examples of the validation set.
    pub validation_examples: u64,
    /// The device, in words.
    pub device: String,
    /// Units that train side by side: threads of all ranks on CPUs, ranks on GPUs.
    pub units: u32,
    /// Ranks.
    pub ranks: usize,
    /// When the ranks share a batch.
    pub sharing: Sharing,
    /// Most trials that run at once, on all ranks together.
    pub lanes: u32,
    /// FLOP a second that training reaches, all ranks together.
    pub flop_per_second: f64,
    /// Memory that training takes on each rank.
    pub memory: Memory,
    /// Memory that a rank may take.
    pub limit: MemoryLimit,
}

/// The upper bound of a study's cost: what it takes if no trial reaches the goal. The table is its `Display`.
#[derive(Debug, Clone, PartialEq)]
pub struct CostBound {
    /// The cells, in the order of the study.
    pub cells: Vec<CellBound>,
    /// FLOP of the pruning scores: once a seed for the whole study, or once a seed and sparsity.
    pub score_flop: f64,
    /// FLOP of the measurements of the loss surface in all cells.
    pub smoothness_flop: f64,
    /// Most validation errors with which a trial is complete.
    pub threshold: u64,
    /// Trials with a dead layer at each sparsity that has any, of the first [`EXAMINED`]; nothing where scores need more than the initial weights.
    dead: Vec<(f64, usize)>,
    /// Parameters of the network, biases included.
    parameters: usize,
    /// FLOP of a forward and a backward pass of one image.
    training_flop: f64,
    study: Study,
    site: Site,
}

/// Part of a pass over the training set after which the best trial of a small batch is assumed to reach the goal: on MNIST it took 0.4 passes.
const SHARE_OF_PASS: f64 = 0.5;

/// Part of the site's speed that training is assumed to reach.
const SHARE_OF_SPEED: f64 = 0.5;

/// FLOP a second of one thread of the reference, about: 1.2 GFLOP/s for Simple-CNN and 1.6 GFLOP/s for ResNet-20 on a virtual Xeon core.
const REFERENCE_SPEED: f64 = 1e9;

/// Trials whose masks are made, to see whether they have dead layers.
const EXAMINED: u32 = 16;

/// The upper bound of one cell's cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellBound {
    /// Batch size and sparsity of the cell.
    pub key: CellKey,
    /// Steps of all of its trials together.
    pub trial_steps: u64,
    /// Evaluations of all of its trials together.
    pub evaluations: u64,
    /// FLOP of its training steps.
    pub training_flop: f64,
    /// FLOP of its evaluations.
    pub evaluation_flop: f64,
}

impl CostBound {
    /// The bound of `study` at `site`.
    pub fn new(study: &Study, network: &Network, site: Site) -> CostBound {
        let (trials, forward_flop, training_flop) = (u64::from(study.grid.trials), network.forward_flop(), network.training_flop());
        // Products of two 32-bit numbers: neither overflows.
        let budget = study.workload.budget();
        let trial_steps = trials * u64::from(budget);
        let evaluations = trials * u64::from(budget / study.workload.evaluate_every);
        let cell = |key: CellKey| CellBound {
            key,
            trial_steps,
            evaluations,
            training_flop: trial_steps as f64 * f64::from(key.batch_size) * training_flop,
            evaluation_flop: evaluations as f64 * site.validation_examples as f64 * forward_flop,
        };
        let sparsities = &study.grid.sparsities;
        let sparse = sparsities.iter().filter(|sparsity| **sparsity > 0.0).count();
        let examples = first_of(study.pruning.examples, site.training_examples);
        let measured = study.smoothness.map_or(0.0, |settings| {
            let measurements = u64::from(budget / settings.every) + u64::from(settings.start);
            // A gradient at the start of a step and one at each point of it, and one of each example by itself; two at a trial's end.
            let points = u64::from(settings.points) - u64::from(!settings.whole_step);
            let is_measured = |trial: &u32| u64::from(*trial) < first_of(settings.trials, u64::MAX);
            let passes = (measurements * (points + 2) + 2) as f64 * study.trials().filter(is_measured).count() as f64;
            cells(&study.grid).len() as f64 * passes * first_of(settings.examples, site.training_examples) as f64 * training_flop
        });
        CostBound {
            smoothness_flop: measured,
            cells: cells(&study.grid).into_iter().map(cell).collect(),
            score_flop: Scoring::of(&study.pruning).images(examples, sparse) * trials as f64 * training_flop,
            dead: dead_layers(study, network),
            threshold: study.workload.goal_threshold(site.validation_examples),
            parameters: network.parameters(),
            training_flop,
            study: study.clone(),
            site,
        }
    }

    /// Steps of all trials of all cells.
    pub fn trial_steps(&self) -> u64 {
        self.cells.iter().fold(0, |sum, cell| sum.saturating_add(cell.trial_steps))
    }

    /// Evaluations of the whole validation set.
    pub fn evaluations(&self) -> u64 {
        self.cells.iter().fold(0, |sum, cell| sum.saturating_add(cell.evaluations))
    }

    /// FLOP of everything.
    pub fn flop(&self) -> f64 {
        self.score_flop + self.smoothness_flop + self.cells.iter().map(|cell| cell.training_flop + cell.evaluation_flop).sum::<f64>()
    }

    /// Seconds of everything; not finite where the site's speed is unknown.
    pub fn seconds(&self) -> f64 {
        (self.flop() - self.score_flop) / self.site.flop_per_second + self.score_seconds()
    }

    /// Seconds of a dense cell whose time does not depend on the batch size, by what is assumed before any cell is measured: the best trial reaches
    /// the goal after half a pass over the training set, or at its first evaluation where that comes later, and training reaches half of the site's
    /// speed. None without a race, where trials go on to their own ends, for a goal without errors, which none may reach, and where the loss surface
    /// is measured, which takes longer than training.
    pub fn assumed(&self) -> Option<f64> {
        if self.threshold == 0 || self.study.smoothness.is_some() {
            return None;
        }
        let trials = f64::from(self.study.grid.trials) * self.study.execution.race.factor()?;
        let least = self.study.grid.batch_sizes.iter().min().map_or(0.0, |size| f64::from(*size));
        let first_evaluation = f64::from(self.study.workload.evaluate_every) * least;
        let of_trial = first_evaluation.max(SHARE_OF_PASS * self.site.training_examples as f64);
        let examples = trials * (1.0 + measured::confirmation(&self.study)) * of_trial;
        let seconds = examples * self.training_flop / (SHARE_OF_SPEED * self.site.flop_per_second);
        seconds.is_finite().then_some(seconds)
    }

    /// Seconds of all cells where no trial reaches the goal, or as late, and with confirmations; without the scores, at half of the site's speed;
    /// infinite where that is not known.
    pub fn assumed_most(&self) -> f64 {
        let seconds = (self.seconds() - self.score_seconds()) * (1.0 + measured::confirmation(&self.study)) / SHARE_OF_SPEED;
        if seconds.is_nan() { f64::INFINITY } else { seconds }
    }

    /// Seconds of the pruning scores. Rounds are computed by the reference, whatever the device.
    pub fn score_seconds(&self) -> f64 {
        match Scoring::of(&self.study.pruning) {
            Scoring::Once(_) => self.score_flop / self.site.flop_per_second,
            Scoring::Rounds(_) => self.score_flop / (REFERENCE_SPEED * f64::from(self.site.units)),
        }
    }

    /// The table's rows, the heading first and the totals last.
    fn rows(&self) -> Vec<Vec<String>> {
        let flop = |flop: f64| si(flop, "FLOP");
        let time = |flop: f64| duration(flop / self.site.flop_per_second);
        let heading = ["batch size", "sparsity", "trial-steps", "evaluations", "training", "evaluation", "time"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.cells.iter().map(|cell| {
            vec![
                count(cell.key.batch_size),
                cell.key.sparsity.to_string(),
                count(cell.trial_steps),
                count(cell.evaluations),
                flop(cell.training_flop),
                flop(cell.evaluation_flop),
                time(cell.training_flop + cell.evaluation_flop),
            ]
        }));
        let blank = String::new;
        rows.push(vec!["scores".to_owned(), blank(), blank(), blank(), flop(self.score_flop), blank(), duration(self.score_seconds())]);
        if self.study.smoothness.is_some() {
            let (flop, time) = (flop(self.smoothness_flop), time(self.smoothness_flop));
            rows.push(vec!["smoothness".to_owned(), blank(), blank(), blank(), flop, blank(), time]);
        }
        let evaluation: f64 = self.cells.iter().map(|cell| cell.evaluation_flop).sum();
        rows.push(vec![
            "at most".to_owned(),
            blank(),
            count(self.trial_steps()),
            count(self.evaluations()),
            flop(self.flop() - evaluation),
            flop(evaluation),
            duration(self.seconds()),
        ]);
        rows
    }

    /// How many ranks share a batch, from which batch size on; nothing of a single rank.
    fn ranks_a_batch(&self) -> Option<String> {
        let CostBound { study, site, .. } = self;
        let mut sizes = study.grid.batch_sizes.clone();
        sizes.sort_unstable();
        let of = |batch: u32| site.sharing.ranks_a_batch(site.ranks, batch as usize, study.execution.data_parallel as usize);
        let mut steps: Vec<(u32, usize)> = sizes.into_iter().map(|batch| (batch, of(batch))).collect();
        steps.dedup_by_key(|(_, ranks)| *ranks);
        let ((_, first), later) = steps.split_first().filter(|_| site.ranks > 1)?;
        let later = later.iter().map(|(batch, ranks)| format!(", from {} on by {}", count(*batch), some(*ranks, "rank")));
        let later = later.collect::<String>().replacen("from ", "from batch size ", 1);
        Some(format!("each batch is trained by {}{later}; groups of ranks share the trials", some(*first, "rank")))
    }
}

impl fmt::Display for CostBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CostBound { study, site, .. } = self;
        let workload = &study.workload;
        writeln!(
            f,
            "{} × {} ({} parameters) × {} ({}), goal error {}: errors ≤ {} of {}",
            workload.dataset,
            workload.network,
            count(self.parameters as u64),
            workload.optimizer,
            workload.schedule,
            workload.goal_error,
            count(self.threshold),
            count(site.validation_examples),
        )?;
        writeln!(
            f,
            "{} × {}{} × at most {} steps, evaluated every {}",
            some(self.cells.len(), "cell"),
            some(study.grid.trials as usize, "trial"),
            numbers(&study.trials()),
            count(workload.budget()),
            count(workload.evaluate_every),
        )?;
        writeln!(
            f,
            "{} × {}, {} in all\nup to {} at once, in {} of memory on each rank, {} on rank 0 while it saves a checkpoint\nmemory: {}",
            site.units,
            site.device,
            si(site.flop_per_second, "FLOP/s"),
            some(study.grid.trials.min(site.lanes) as usize, "trial"),
            si(site.memory.bytes as f64, "B"),
            si(site.memory.saving as f64, "B"),
            site.limit,
        )?;
        if let Some(problem) = site.memory.problem(&site.limit) {
            writeln!(f, "{problem}")?;
        }
        if let Some(words) = self.ranks_a_batch() {
            writeln!(f, "{words}")?;
        }
        writeln!(f)?;
        f.write_str(&aligned(&self.rows(), ""))?;
        let examined = study.grid.trials.min(EXAMINED);
        for (sparsity, dead) in &self.dead {
            write!(f, "\nSparsity {sparsity}: trials with a dead layer (pruning leaves it no weight): {dead} of the first {examined}.")?;
        }
        match study.execution.race {
            Race::Until(1.0) => writeln!(f, "\nA cell ends as soon as a trial of it reaches the goal, so most cells take less."),
            Race::Until(factor) => {
                writeln!(f, "\nA cell ends at {factor} times the steps of its first trial that reaches the goal, so most cells take less.")
            }
            Race::Off => writeln!(f, "\nEvery trial runs to its own goal or end (race = false)."),
        }?;
        let Some(Confirm { points, seeds, precision, drop_slower, neighbours, limit, mean_error, .. }) = &study.confirm else {
            return Ok(());
        };
        let (points, seeds) = (some(*points as usize, "point"), some(*seeds as usize, "fresh seed"));
        let fewer = match precision {
            0.0 => String::new(),
            _ => format!(", fewer once the mean log steps are known to ±{precision}"),
        };
        let dropped = if *drop_slower { ", fewer for points that are plainly slower" } else { "" };
        let besides = if *neighbours { " and those of the cells next to it" } else { "" };
        let most = if *mean_error { "" } else { "at most " };
        writeln!(
            f,
            "Confirmation comes besides: in each cell up to {points}{besides} with {seeds} each{fewer}{dropped}, to {most}{limit} times the cell's steps-to-result."
        )
    }
}

/// Sparsities at which masks that need nothing but the initial weights leave layers without a weight, and in how many of the first [`EXAMINED`]
/// trials; none of a network of more than [`MOST_DRAWN`] parameters.
fn dead_layers(study: &Study, network: &Network) -> Vec<(f64, usize)> {
    let Scoring::Once(criterion) = Scoring::of(&study.pruning) else { return Vec::new() };
    if criterion.given() != Given::Nothing || network.parameters() > MOST_DRAWN {
        return Vec::new();
    }
    let mut dead: Vec<(f64, usize)> =
        study.grid.sparsities.iter().filter(|sparsity| **sparsity > 0.0).map(|&sparsity| (sparsity, 0)).collect();
    for seed in study.trials().take(EXAMINED as usize).map(u64::from) {
        let scores = criterion.scores(&Untrained { network, seed, weights: &initial_weights(network, seed) }, &[]);
        for (sparsity, trials) in &mut dead {
            let mask = criterion.cut(network, &scores, *sparsity, study.pruning.biases);
            *trials += usize::from(mask.dead_layers(network) > 0);
        }
    }
    dead.retain(|(_, trials)| *trials > 0);
    dead
}

/// The numbers of a study's trials in words, where the first one is not 0.
pub(super) fn numbers(trials: &Range<u32>) -> String {
    if trials.start == 0 { String::new() } else { format!(" (numbers {} to {})", trials.start, trials.end - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::SHARING;
    use crate::config::Override;
    use crate::network::NetworkName;
    use crate::settings;

    /// FLOP of an image on Simple-CNN.
    const FORWARD_FLOP: f64 = 7_495_680.0;
    const TRAINING_FLOP: f64 = 21_565_440.0;

    /// The bound of a study whose cost these tests compute by themselves.
    fn small(settings: &[&str]) -> CostBound {
        let fixed = ["grid.batch_sizes=[16, 64, 256]", "workload.goal_error=0.2", "workload.max_steps=400", "workload.evaluate_every=16"];
        bound(include_str!("../../configs/quickstart.toml"), &[&fixed, settings].concat())
    }

    fn bound(configuration: &str, settings: &[&str]) -> CostBound {
        let overrides: Vec<Override> = settings.iter().map(|setting| Override::parse(setting).unwrap()).collect();
        let study = settings::parse("test", configuration, &overrides).unwrap_or_else(|error| panic!("{error}")).study;
        CostBound::new(&study, &Network::new(NetworkName::SimpleCnn), site())
    }

    #[test]
    fn ranks_that_share_a_batch_are_told_by_batch_size() {
        let plan = small(&["grid.batch_sizes=[2, 64, 32]"]);
        let words =
            "each batch is trained by 1 rank, from batch size 32 on by 2 ranks, from 64 on by 4 ranks; groups of ranks share the trials";
        assert_eq!(plan.ranks_a_batch().unwrap(), words);
        let alone = CostBound { site: Site { ranks: 1, ..site() }, ..plan };
        assert_eq!(alone.ranks_a_batch(), None);
    }

    fn site() -> Site {
        Site {
            training_examples: 54_000,
            validation_examples: 6_000,
            device: "cpu".to_owned(),
            units: 2,
            ranks: 4,
            sharing: SHARING,
            lanes: 100,
            flop_per_second: 1e11,
            memory: Memory { bytes: 240_000_000, saving: 300_000_000 },
            limit: MemoryLimit::NONE,
        }
    }

    #[test]
    fn a_workload_of_the_paper_has_fourteen_million_evaluations() {
        let plan = bound(include_str!("../../configs/mnist-simple-cnn-sgd.toml"), &[]);
        assert_eq!(plan.cells.len(), 56);
        assert_eq!(plan.evaluations(), 14_000_000);
        assert_eq!(plan.trial_steps(), 56 * 100 * 40_000);
        assert_eq!(plan.threshold, 120);
        // 100 seeds, one pass over the training set each, whatever the number of cells.
        assert_eq!(plan.score_flop, 100.0 * 54_000.0 * TRAINING_FLOP);
    }

    #[test]
    fn points_of_neighbours_are_told() {
        for (neighbours, expected) in [
            (true, "in each cell up to 2 points and those of the cells next to it with 1 fresh seed each, "),
            (false, "in each cell up to 2 points with 1 fresh seed each, "),
        ] {
            let told = small(&[&format!("confirm={{points=2,seeds=1,neighbours={neighbours}}}")]).to_string();
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn flop_add_up() {
        let plan = small(&[]);
        let training = f64::from((16 + 64 + 256) * 2 * 4 * 400) * TRAINING_FLOP;
        let evaluation = f64::from(6 * 4 * 25 * 6_000) * FORWARD_FLOP;
        let scores = f64::from(4 * 2_000) * TRAINING_FLOP;
        assert!((plan.flop() / (training + evaluation + scores) - 1.0).abs() < 1e-12);
        assert!((plan.seconds() - plan.flop() / 1e11).abs() < 1e-9);
    }

    #[test]
    fn scores_are_counted_where_there_are_any() {
        let flop = |settings: &[&str]| small(settings).score_flop;
        assert_eq!(flop(&["pruning.criterion=random"]), 0.0);
        assert_eq!(flop(&["grid.sparsities=[0]"]), 0.0);
        assert_eq!(flop(&["pruning.examples=4000000000"]), flop(&["pruning.examples=0"]));
        assert!(flop(&[]) > 0.0);
    }

    /// SynFlow passes one image through the network a hundred times for each seed and sparsity, at the speed of the reference.
    #[test]
    fn rounds_are_counted_for_each_sparsity() {
        let plan = |settings: &[&str]| small(&[&["pruning.criterion=synflow"], settings].concat());
        let plans = [
            plan(&["grid.sparsities=[0]"]),
            plan(&["grid.sparsities=[0, 0.9]"]),
            plan(&["grid.sparsities=[0.5, 0.9]", "pruning.examples=7"]),
        ];
        assert_eq!(plans.each_ref().map(|plan| plan.score_flop), [0.0, 4.0 * 100.0 * TRAINING_FLOP, 2.0 * 4.0 * 100.0 * TRAINING_FLOP]);
        assert!((plans[1].score_seconds() - 8.626176 / 2.0).abs() < 1e-9, "{}", plans[1].score_seconds());
        assert!((plans[1].seconds() - (plans[1].flop() - plans[1].score_flop) / 1e11 - 8.626176 / 2.0).abs() < 1e-6);
    }

    #[test]
    fn the_table_is_aligned_and_names_the_goal() {
        let text = small(&[]).to_string();
        assert!(
            text.starts_with(
                "fashion-mnist × simple-cnn (62,346 parameters) × momentum (constant), goal error 0.2: errors ≤ 1,200 of 6,000\n\
             6 cells × 4 trials × at most 400 steps, evaluated every 16\n\
             2 × cpu, 100 GFLOP/s in all\n\
             up to 4 trials at once, in 240 MB of memory on each rank, 300 MB on rank 0 while it saves a checkpoint\nmemory: no limit known\n\
             each batch is trained by 1 rank, from batch size 64 on by 4 ranks; groups of ranks share the trials\n\n"
            ),
            "{text}"
        );
        let table: Vec<&str> = text.lines().skip(7).take(9).collect();
        assert_eq!(table[1], "        16         0        1,600          100   552 GFLOP  4.50 TFLOP   50.5s", "{text}");
        assert!(table.iter().all(|line| line.chars().count() == table[0].chars().count()), "{text}");
        assert!(table[8].trim_start().starts_with("at most") && table[8].contains("9,600") && table[8].contains("600"), "{text}");
    }

    #[test]
    fn trials_with_dead_layers_are_counted() {
        let random = small(&["pruning.criterion=random", "grid.sparsities=[0, 0.9, 0.9999]", "grid.trials=100"]).to_string();
        assert!(
            random.contains("\nSparsity 0.9999: trials with a dead layer (pruning leaves it no weight): 16 of the first 16.\n"),
            "{random}"
        );
        assert!(!random.contains("Sparsity 0.9:"), "{random}");
        // SNIP's scores need the data, which a plan does not read.
        assert!(!small(&["grid.sparsities=[0.9999]"]).to_string().contains("dead"));
    }

    /// A trial that is evaluated seldom trains until then.
    #[test]
    fn no_trial_is_assumed_to_end_before_its_first_evaluation() {
        let assumed = |every: u32| {
            let settings = [format!("workload.evaluate_every={every}"), "workload.max_steps=1000000".into(), "execution.race=1.0".into()];
            small(&settings.each_ref().map(String::as_str)).assumed().unwrap()
        };
        assert_eq!(assumed(1), assumed(16));
        let times = assumed(1_000_000) / assumed(500_000);
        assert!((times - 2.0).abs() < 1e-9 && assumed(500_000) > assumed(16), "{times}");
    }

    #[test]
    fn the_largest_study_does_not_overflow() {
        let settings = ["grid.trials=100000", "workload.max_steps=4294967295", "workload.evaluate_every=1", "grid.batch_sizes=[16777216]"];
        let plan = CostBound { site: Site { flop_per_second: 0.0, ..site() }, ..small(&settings) };
        assert_eq!(plan.evaluations(), 2 * 100_000_u64 * 4_294_967_295);
        assert!(plan.to_string().contains("unknown"));
    }
}
