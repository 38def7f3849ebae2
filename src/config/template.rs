//! The text of a new configuration: the paper's settings for a workload, every key with what it means.

use super::study::{DatasetName, NetworkName, OptimizerName, ScheduleName};

/// What [`template`] is to configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// The data set.
    pub dataset: DatasetName,
    /// The network.
    pub network: NetworkName,
    /// The optimizer.
    pub optimizer: OptimizerName,
    /// The learning-rate schedule.
    pub schedule: ScheduleName,
}

/// A configuration file with comments. Keys that are commented out show their defaults. Goals, step budgets and search spaces are the paper's (Lee et al.,
/// ICLR 2021, section 3 and appendix B).
pub fn template(choices: Choices) -> String {
    let Choices { dataset, network, optimizer, schedule } = choices;
    let (goal_error, max_steps, evaluate_every) = match dataset {
        DatasetName::Mnist => ("0.02", "40_000", 16),
        DatasetName::FashionMnist => ("0.12", "40_000", 16),
        DatasetName::Cifar10 => ("0.4", "100_000", 32),
    };
    let momentum = match optimizer {
        OptimizerName::Sgd => "# momentum: for the optimizers momentum and nesterov alone",
        OptimizerName::Momentum | OptimizerName::Nesterov => "momentum = { min = 0.9, max = 0.9999, scale = \"reverse-log\" }",
    };
    let decay = match schedule {
        ScheduleName::Constant => "# decay_steps, end_learning_rate_factor: for the schedule linear-decay alone",
        ScheduleName::LinearDecay => {
            "# Steps over which the learning rate falls, and the share of it that is left at their end.\n\
             decay_steps = { min = 30_000, max = 60_000, scale = \"integer\" }\n\
             end_learning_rate_factor = { min = 1e-4, max = 0.1, scale = \"log\" }"
        }
    };
    let [datasets, optimizers, schedules] = [DatasetName::NAMES, OptimizerName::NAMES, ScheduleName::NAMES].map(|names| names.join(", "));
    format!(
        r#"# A study: {dataset}, {network}, {optimizer}. A line that begins with # is a comment; a key in a comment shows its default.
# docs/configuration.md of dps lists every key and value.

[workload]
dataset = "{dataset}" # {datasets}
network = "{network}" # simple-cnn for mnist and fashion-mnist, resnet-8 for cifar-10
optimizer = "{optimizer}" # {optimizers}
schedule = "{schedule}" # {schedules}
# A trial is complete once its validation error is at most this.
goal_error = {goal_error}
# goal_comparison = "integers" # "float32" compares in 32-bit floating point, as the authors' public code does
# A trial that has not reached the goal after this many steps ends.
max_steps = {max_steps}
# Steps between two evaluations: steps-to-result is a multiple of it.
evaluate_every = {evaluate_every}

# Every batch size with every sparsity is a cell. The paper's grid: batch sizes 2, 4, 8 … 16384, sparsities 0, 0.5, 0.7 and 0.9.
[grid]
# Examples of a batch, over all ranks.
batch_sizes = [16, 64, 256, 1024]
# Fractions of the parameters that are removed.
sparsities = [0, 0.9]
# Trials of each cell; the paper has 100.
trials = 100

# How parameters are chosen that are removed before training.
[pruning]
# criterion = "snip" # or grasp, random, magnitude
# biases = "prunable" # "exempt": biases are kept, and sparsity counts weights alone
# examples = 0 # training examples that are scored; 0: all
# temperature = 200 # for the criterion grasp alone

# Each trial draws its metaparameters from these ranges. A number in place of a range fixes one.
[search]
# sobol = "bratley-fox" # direction numbers of the Sobol sequence; or joe-kuo
learning_rate = {{ min = 1e-4, max = 1.0, scale = "log" }}
{momentum}
{decay}

[data]
# validation_fraction = 0.1 # share of the training set that is held out
# split_seed = 0 # draws that share
# order = "per-trial" # "shared": all trials see the examples in one order
# source = "original" # "own": the files are yours, and are not compared with the originals

# Measures the loss surface along training, for the paper's figures 4 and 6. Every measurement passes over the training set a dozen times.
# [smoothness]
# every = 100 # steps between two measurements
# start = false # measure the first step, too
# trials = 0 # trials of each cell that are measured; 0: all
# points = 10 # points of a step at which gradients are compared
# whole_step = true # the last of them is the end of the step
# examples = 0 # training examples that are measured on; 0: all

# How the work is done. Of these, race and full_evaluation change what else is recorded; products, reduction and tf32 change rounding on a GPU.
[execution]
# device = "auto" # or cpu, cuda
# threads = 0 # of each rank; 0: the processors of the host shared among its ranks
# data_parallel = 0 # ranks that share a batch; 0: as many as get 16 examples each
# lanes = 0 # trials trained at once; 0: as many as memory has room for
# checkpoint_seconds = 2 # between two checkpoints, or more where they are slow
# deadline_seconds = 1800 # a rank waits this long for the others; 0: for ever
# race = true # a cell ends once its steps-to-result is known
# full_evaluation = false # evaluate on the whole validation set even where the goal is missed already
# products = "fused" # on a GPU; or cublas
# reduction = "reproducible" # on a GPU; or nccl
# tf32 = false # on a GPU
# share_gpu = false # ranks may share a GPU
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Override};

    /// All that can be chosen.
    fn all() -> Vec<Choices> {
        let parsed = |names: &[&str]| names.iter().filter_map(|name| name.parse().ok()).collect::<Vec<DatasetName>>();
        let optimizers = [OptimizerName::Sgd, OptimizerName::Momentum, OptimizerName::Nesterov];
        let mut all = Vec::new();
        for dataset in parsed(DatasetName::NAMES) {
            for optimizer in optimizers {
                for schedule in [ScheduleName::Constant, ScheduleName::LinearDecay] {
                    all.push(Choices { dataset, network: dataset.network(), optimizer, schedule });
                }
            }
        }
        all
    }

    #[test]
    fn every_template_is_a_configuration() {
        for choices in all() {
            let loaded = config::parse("new.toml", &template(choices), &[]).unwrap_or_else(|error| panic!("{choices:?}: {error}"));
            let workload = loaded.study.workload;
            assert_eq!((workload.dataset, workload.optimizer, workload.schedule), (choices.dataset, choices.optimizer, choices.schedule));
        }
    }

    #[test]
    fn its_comments_show_each_default() {
        for choices in all() {
            let text = template(choices);
            let plain = config::parse("new.toml", &text, &[]).unwrap().study;
            // What the comments say, taken at its word, is the same study.
            let commented = |line: &str| {
                let line = line.strip_prefix("# ")?;
                let is_key =
                    line.split_once(" = ").is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || "_23".contains(c)));
                (is_key || line == "[smoothness]").then(|| line.to_owned())
            };
            let lines = text.lines().filter(|line| !line.contains("for the criterion grasp"));
            let told: String = lines.map(|line| commented(line).unwrap_or_else(|| line.to_owned()) + "\n").collect();
            let told = config::parse("told.toml", &told, &[]).unwrap().study;
            assert!(told.smoothness.is_some());
            assert_eq!(config::Study { smoothness: None, ..told.clone() }, plain);
            // And no key is left out.
            let keys = |study: &config::Study| config::canonical(study).unwrap();
            let grasp = Override::parse("pruning.criterion=grasp").unwrap();
            let with_temperature = config::parse("new.toml", &text, &[grasp]).unwrap().study;
            for line in keys(&told).lines().chain(keys(&with_temperature).lines()).filter(|line| line.contains(" = ")) {
                let key = line.split(" = ").next().unwrap();
                assert!(text.contains(&format!("{key} = ")) || ["min", "max", "scale"].contains(&key), "{key} of {choices:?}");
            }
        }
    }
}
