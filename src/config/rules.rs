//! What each key of a study may say: types, ranges, and what must agree with what.

use super::reader::{Problems, Section, Wanted};
use super::study::*;
use super::tree::{Node, Table, Value};

/// The study that `table` describes, or every sentence about why it is none.
pub fn study(table: &Table) -> Result<Study, Vec<String>> {
    let mut problems = Problems::default();
    let study = {
        let mut root = Section::root(table, &mut problems);
        let workload = workload(root.section("workload", Some("dataset, network, optimizer, goal_error, max_steps and evaluate_every")));
        let grid = grid(root.section("grid", Some("batch_sizes, sparsities and trials")));
        let pruning = pruning(root.section("pruning", None));
        let (optimizer, schedule) = (workload.optimizer, workload.schedule);
        let search = search(root.section("search", None), optimizer, schedule);
        let data = data(root.section("data", None));
        let smoothness = smoothness(root.section("smoothness", None));
        let execution = execution(root.section("execution", None));
        (|| {
            Some(Study {
                workload: workload.complete()?,
                grid: grid?,
                pruning: pruning?,
                search: search?,
                data: data?,
                smoothness: smoothness?,
                execution: execution?,
            })
        })()
    };
    let sentences = problems.sentences();
    match study {
        Some(study) if sentences.is_empty() => Ok(study),
        _ => Err(sentences),
    }
}

/// A workload of which some fields may be in doubt; the others can still be checked against the rest of the file.
struct Draft {
    dataset: Option<DatasetName>,
    network: Option<NetworkName>,
    optimizer: Option<OptimizerName>,
    schedule: Option<ScheduleName>,
    goal_error: Option<f64>,
    goal_comparison: Option<GoalComparison>,
    max_steps: Option<u32>,
    evaluate_every: Option<u32>,
}

impl Draft {
    fn complete(self) -> Option<Workload> {
        Some(Workload {
            dataset: self.dataset?,
            network: self.network?,
            optimizer: self.optimizer?,
            schedule: self.schedule?,
            goal_error: self.goal_error?,
            goal_comparison: self.goal_comparison?,
            max_steps: self.max_steps?,
            evaluate_every: self.evaluate_every?,
        })
    }
}

fn workload(mut section: Section) -> Draft {
    let absent = section.is_absent();
    let draft = Draft {
        dataset: section.name("dataset", DatasetName::NAMES, None),
        network: section.name("network", NetworkName::NAMES, None),
        optimizer: section.name("optimizer", OptimizerName::NAMES, None),
        schedule: section.name("schedule", ScheduleName::NAMES, (!absent).then(ScheduleName::default)),
        goal_error: section.required("goal_error", Wanted { expected: "a fraction above 0 and below 1", example: "0.02" }, open_fraction),
        goal_comparison: section.name("goal_comparison", GoalComparison::NAMES, (!absent).then(GoalComparison::default)),
        max_steps: section.required("max_steps", Wanted { expected: COUNT, example: "40000" }, count),
        evaluate_every: section.required("evaluate_every", Wanted { expected: COUNT, example: "16" }, count),
    };
    if let (Some(every), Some(most)) = (draft.evaluate_every, draft.max_steps)
        && every > most
    {
        let sentence = format!("expected at most workload.max_steps = {most}, found {every}; lower it, or no trial is ever evaluated");
        section.problem_among("evaluate_every", &["max_steps"], &sentence);
    }
    if let (Some(dataset), Some(network)) = (draft.dataset, draft.network) {
        let images = match dataset {
            DatasetName::Mnist | DatasetName::FashionMnist => "28×28×1",
            DatasetName::Cifar10 => "32×32×3",
        };
        let fitting = dataset.network();
        if network != fitting {
            let sentence =
                format!("expected \"{fitting}\" for the {images} images of {dataset}, found \"{network}\"; change one of the two");
            section.problem_among("network", &["dataset"], &sentence);
        }
    }
    draft
}

fn grid(mut section: Section) -> Option<Grid> {
    let batch_sizes = Wanted { expected: "a list of batch sizes, each a whole number from 1 to 16777216", example: "[16, 64, 256]" };
    let sparsities = Wanted { expected: "a list of sparsities, each a fraction from 0 to below 1", example: "[0, 0.5, 0.9]" };
    let batch_sizes = section.list("batch_sizes", MOST_VALUES, batch_sizes, |value| count(value).filter(|size| *size <= MOST_BATCH));
    let sparsities = section.list("sparsities", MOST_VALUES, sparsities, |value| number(value).filter(|x| (0.0..1.0).contains(x)));
    let trials = Wanted { expected: "a whole number from 1 to 100000", example: "100" };
    let trials = section.required("trials", trials, |value| count(value).filter(|trials| *trials <= MOST_TRIALS));
    if let (Some(sizes), Some(sparsities)) = (&batch_sizes, &sparsities)
        && sizes.len() * sparsities.len() > MOST_CELLS
    {
        let found = sizes.len() * sparsities.len();
        let sentence =
            format!("expected at most {MOST_CELLS} cells, found {found}; give fewer batch sizes or sparsities, and others their own file");
        section.problem_among("batch_sizes", &["sparsities"], &sentence);
        return None;
    }
    Some(Grid { batch_sizes: batch_sizes?, sparsities: sparsities?, trials: trials? })
}

fn pruning(mut section: Section) -> Option<Pruning> {
    let default = Pruning::default();
    let criterion = section.name("criterion", Criterion::NAMES, Some(default.criterion));
    let biases = section.name("biases", BiasPruning::NAMES, Some(default.biases));
    let examples = section.defaulted(
        "examples",
        default.examples,
        Wanted { expected: "a whole number of training examples, 0 for all of them", example: "0" },
        whole,
    );
    let heat = Wanted { expected: "a number from 0.001 to 1000000", example: "200" };
    let temperature = section
        .defaulted("temperature", None, heat, |value| number(value).filter(|temperature| (1e-3..=1e6).contains(temperature)).map(Some));
    let temperature = match (criterion?, temperature?) {
        (Criterion::Grasp, given) => Some(given.unwrap_or(Pruning::TEMPERATURE)),
        (other, Some(_)) => {
            let sentence =
                format!("expected nothing for criterion \"{other}\", found a value; remove it, or change the criterion to \"grasp\"");
            section.problem_among("temperature", &[], &sentence);
            None
        }
        (_, None) => None,
    };
    Some(Pruning { criterion: criterion?, biases: biases?, examples: examples?, temperature })
}

fn data(mut section: Section) -> Option<DataSplit> {
    let default = DataSplit::default();
    let validation_fraction = section.defaulted(
        "validation_fraction",
        default.validation_fraction,
        Wanted { expected: "a fraction from 0.000001 to 0.999999", example: "0.1" },
        |value| open_fraction(value).filter(|fraction| (1e-6..=1.0 - 1e-6).contains(fraction)),
    );
    // TOML promises 64-bit signed integers and no more.
    let split_seed = section.defaulted(
        "split_seed",
        default.split_seed,
        Wanted { expected: "a whole number from 0 to 9223372036854775807", example: "0" },
        |value| integer(value).and_then(|seed| i64::try_from(seed).ok()).and_then(|seed| u64::try_from(seed).ok()),
    );
    let order = section.name("order", DataOrder::NAMES, Some(default.order));
    let source = section.name("source", DataSource::NAMES, Some(default.source));
    Some(DataSplit { validation_fraction: validation_fraction?, split_seed: split_seed?, order: order?, source: source? })
}

/// Some nothing where the section is absent.
fn smoothness(mut section: Section) -> Option<Option<Smoothness>> {
    let absent = section.is_absent();
    let all = Wanted { expected: "a whole number, 0 for all of them", example: "0" };
    let every = section.required("every", Wanted { expected: COUNT, example: "100" }, count);
    let trials = section.defaulted("trials", 0, all, whole);
    let points = Wanted { expected: "a whole number from 1 to 1000", example: "10" };
    let points = section.defaulted("points", 10, points, |value| count(value).filter(|points| *points <= 1000));
    let start = section.flag("start", false);
    let whole_step = section.flag("whole_step", true);
    if (points, whole_step) == (Some(1), Some(false)) {
        let sentence = "expected true where smoothness.points = 1, found false, which leaves no point to measure at; change one of the two";
        section.problem_among("whole_step", &["points"], sentence);
        return None;
    }
    let examples = section.defaulted("examples", 0, all, whole);
    if absent {
        return Some(None);
    }
    Some(Some(Smoothness { every: every?, start: start?, trials: trials?, points: points?, whole_step: whole_step?, examples: examples? }))
}

fn execution(mut section: Section) -> Option<Execution> {
    let default = Execution::default();
    let automatic = Wanted { expected: "a whole number, 0 for automatic", example: "0" };
    let device = section.name("device", DeviceName::NAMES, Some(default.device));
    let threads = Wanted { expected: "a whole number of at most 1024, 0 for automatic", example: "0" };
    let threads = section.defaulted("threads", default.threads, threads, |value| whole(value).filter(|threads| *threads <= MOST_THREADS));
    let data_parallel = section.defaulted("data_parallel", default.data_parallel, automatic, whole);
    let products = section.name("products", Products::NAMES, Some(default.products));
    let reduction = section.name("reduction", Reduction::NAMES, Some(default.reduction));
    let lanes = section.defaulted("lanes", default.lanes, automatic, whole);
    let seconds = Wanted { expected: "a whole number of seconds, 0 for none but at a signal", example: "2" };
    let checkpoint_seconds = section.defaulted("checkpoint_seconds", default.checkpoint_seconds, seconds, whole);
    let seconds = Wanted { expected: "a whole number of seconds, 0 for no limit", example: "1800" };
    let deadline_seconds = section.defaulted("deadline_seconds", default.deadline_seconds, seconds, whole);
    let (tf32, share_gpu) = (section.flag("tf32", default.tf32), section.flag("share_gpu", default.share_gpu));
    let (race, full_evaluation) = (section.flag("race", default.race), section.flag("full_evaluation", default.full_evaluation));
    Some(Execution {
        device: device?,
        threads: threads?,
        data_parallel: data_parallel?,
        products: products?,
        tf32: tf32?,
        reduction: reduction?,
        share_gpu: share_gpu?,
        lanes: lanes?,
        checkpoint_seconds: checkpoint_seconds?,
        deadline_seconds: deadline_seconds?,
        race: race?,
        full_evaluation: full_evaluation?,
    })
}

/// `optimizer` and `schedule` are `None` where the workload leaves them in doubt.
fn search(mut section: Section, optimizer: Option<OptimizerName>, schedule: Option<ScheduleName>) -> Option<Search> {
    let default = Search::default();
    let sobol = section.name("sobol", SobolNumbers::NAMES, Some(default.sobol));
    let learning_rate = LEARNING_RATE.read(&mut section);
    let momentum = MOMENTUM.read(&mut section);
    let decay_steps = DECAY_STEPS.read(&mut section);
    let factor = END_LEARNING_RATE_FACTOR.read(&mut section);
    if let Some(optimizer) = optimizer {
        let needed = optimizer != OptimizerName::Sgd;
        MOMENTUM.agree(&mut section, &momentum, needed, "optimizer", optimizer.name());
    }
    if let Some(schedule) = schedule {
        let needed = schedule == ScheduleName::LinearDecay;
        DECAY_STEPS.agree(&mut section, &decay_steps, needed, "schedule", schedule.name());
        END_LEARNING_RATE_FACTOR.agree(&mut section, &factor, needed, "schedule", schedule.name());
    }
    Some(Search {
        sobol: sobol?,
        learning_rate: learning_rate.ok()?.unwrap_or(default.learning_rate),
        momentum: momentum.ok()?,
        decay_steps: decay_steps.ok()?,
        end_learning_rate_factor: factor.ok()?,
    })
}

/// What a metaparameter may be, as a fixed value and as a range.
struct Bounds {
    key: &'static str,
    /// Names the allowed values in a sentence.
    allowed: &'static str,
    contains: fn(f64) -> bool,
    scales: &'static [Scale],
    /// The paper's range, to show how one is written.
    example: (&'static str, &'static str, Scale),
}

const REAL: &[Scale] = &[Scale::Linear, Scale::Log, Scale::ReverseLog];
const LEARNING_RATE: Bounds = Bounds {
    key: "learning_rate",
    allowed: "a finite number above 0",
    contains: |x| x > 0.0,
    scales: REAL,
    example: ("1e-4", "1.0", Scale::Log),
};
const MOMENTUM: Bounds = Bounds {
    key: "momentum",
    allowed: "a number from 0 to below 1",
    contains: |x| (0.0..1.0).contains(&x),
    scales: REAL,
    example: ("0.9", "0.9999", Scale::ReverseLog),
};
const DECAY_STEPS: Bounds = Bounds {
    key: "decay_steps",
    allowed: COUNT,
    contains: |x| (1.0..=f64::from(u32::MAX)).contains(&x) && x.fract() == 0.0,
    scales: &[Scale::Integer],
    example: ("30000", "60000", Scale::Integer),
};
const END_LEARNING_RATE_FACTOR: Bounds = Bounds {
    key: "end_learning_rate_factor",
    allowed: "a number above 0 and at most 1",
    contains: |x| x > 0.0 && x <= 1.0,
    scales: REAL,
    example: ("1e-4", "0.1", Scale::Log),
};

/// A problem was added.
struct InDoubt;

impl Bounds {
    fn example(&self) -> String {
        let (min, max, scale) = self.example;
        format!("{{ min = {min}, max = {max}, scale = \"{scale}\" }}")
    }

    /// The value of a limit, or of the metaparameter.
    fn value(&self, value: &Value) -> Option<f64> {
        number(value).filter(|x| (self.contains)(*x))
    }

    fn read(&self, section: &mut Section) -> Result<Option<Metaparameter>, InDoubt> {
        let Some(Node { value, origin }) = section.node(self.key) else { return Ok(None) };
        if let Value::Table(table) = value {
            return self.range(section.inside(self.key, table, origin)).map(|range| Some(Metaparameter::Range(range))).ok_or(InDoubt);
        }
        if let Some(fixed) = self.value(value) {
            return Ok(Some(Metaparameter::Fixed(fixed)));
        }
        section.problem(
            origin,
            self.key,
            &format!("expected {} or a range, found {value}; write for example {}", self.allowed, self.example()),
        );
        Err(InDoubt)
    }

    fn range(&self, mut section: Section) -> Option<Range> {
        let (low, high, usual) = self.example;
        let min = section.required("min", Wanted { expected: self.allowed, example: low }, |value| self.value(value));
        let max = section.required("max", Wanted { expected: self.allowed, example: high }, |value| self.value(value));
        let scale = section.name("scale", Scale::NAMES, None);
        if let Some(scale) = scale
            && !self.scales.contains(&scale)
        {
            let scales = self.scales.iter().map(|scale| scale.name()).collect::<Vec<_>>().join(", ");
            section.problem_among(
                "scale",
                &[],
                &format!("expected one of {scales} for this metaparameter, found \"{scale}\"; write for example \"{usual}\""),
            );
            return None;
        }
        let (min, max, scale) = (min?, max?, scale?);
        if min >= max {
            let advice = if min == max { "write the value alone to fix it" } else { "exchange the two" };
            section.problem_among("min", &["max"], &format!("expected less than max = {max}, found {min}; {advice}"));
        } else if scale == Scale::Log && min <= 0.0 {
            section.problem_among(
                "min",
                &["scale"],
                "expected a number above 0 on the scale \"log\", found 0; raise it, or change the scale",
            );
        } else if scale == Scale::ReverseLog && max >= 1.0 {
            section.problem_among(
                "max",
                &["scale"],
                &format!("expected a number below 1 on the scale \"reverse-log\", found {max}; lower it, or change the scale"),
            );
        } else {
            return Some(Range { min, max, scale });
        }
        None
    }

    /// Checks that the metaparameter is given exactly where the `kind` of thing called `name` needs it.
    fn agree(&self, section: &mut Section, given: &Result<Option<Metaparameter>, InDoubt>, needed: bool, kind: &str, name: &str) {
        match given {
            Ok(None) if needed => {
                let wanted = format!(
                    "expected a value or a range for {kind} \"{name}\", found nothing; add for example {} = {}",
                    self.key,
                    self.example()
                );
                section.absent(self.key, wanted);
            }
            Ok(Some(_)) | Err(InDoubt) if !needed => {
                section.problem_among(
                    self.key,
                    &[],
                    &format!("expected nothing for {kind} \"{name}\", found a value; remove it, or change the {kind}"),
                );
            }
            _ => {}
        }
    }
}

/// Batch sizes, or sparsities, of a study.
const MOST_VALUES: usize = 1_000;
/// Examples of a batch: beyond it a step would take hours.
const MOST_BATCH: u32 = 1 << 24;
/// Cells of a study, and trials of a cell: a study of more is several.
const MOST_CELLS: usize = 10_000;
const MOST_TRIALS: u32 = 100_000;
/// Threads of a rank.
const MOST_THREADS: u32 = 1_024;

const COUNT: &str = "a whole number from 1 to 4294967295";

fn integer(value: &Value) -> Option<i128> {
    if let Value::Integer(integer) = value { Some(*integer) } else { None }
}

fn whole(value: &Value) -> Option<u32> {
    integer(value).and_then(|integer| u32::try_from(integer).ok())
}

fn count(value: &Value) -> Option<u32> {
    whole(value).filter(|count| *count >= 1)
}

/// A finite number, whole or not; −0 is 0, or equal sparsities could have two names.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Integer(integer) => *integer as f64,
        Value::Number(number) => *number,
        _ => return None,
    };
    number.is_finite().then_some(number + 0.0)
}

fn open_fraction(value: &Value) -> Option<f64> {
    number(value).filter(|x| *x > 0.0 && *x < 1.0)
}
