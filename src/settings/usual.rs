//! The settings of a new configuration by its data set: network, schedule, goal and steps.

use crate::data::{DatasetChoice, DatasetName};
use crate::network::NetworkName;
use crate::optimizer::ScheduleName;

/// The settings of a new configuration for a data set.
#[derive(Debug)]
pub struct Usual {
    /// Network.
    pub network: NetworkName,
    /// Learning-rate schedule.
    pub schedule: ScheduleName,
    /// Goal error, as TOML.
    pub goal_error: &'static str,
    /// Steps at most.
    pub max_steps: u32,
    /// Steps between two evaluations.
    pub evaluate_every: u32,
    /// Keys with the values, as TOML, that a new configuration has in place of the keys' examples.
    pub examples: &'static [(&'static str, &'static str)],
}

// Goals, steps and networks of these three are the paper's: Lee et al., ICLR 2021, section 3 and appendix B.

const MNIST: Usual = Usual {
    network: NetworkName::SimpleCnn,
    schedule: ScheduleName::Constant,
    goal_error: "0.02",
    max_steps: 40_000,
    evaluate_every: 16,
    examples: &[],
};

const FASHION_MNIST: Usual = Usual { goal_error: "0.12", ..MNIST };

const CIFAR_10: Usual = Usual {
    network: NetworkName::Resnet8,
    schedule: ScheduleName::LinearDecay,
    goal_error: "0.4",
    max_steps: 100_000,
    evaluate_every: 32,
    ..MNIST
};

/// The settings for images of one's own: a network that fits any, and a goal to begin with. The learning rate falls within the shares of the steps
/// that the paper's ranges have of CIFAR-10's.
const OWN: Usual = Usual {
    network: NetworkName::Lenet300x100,
    goal_error: "0.1",
    max_steps: 2_000,
    examples: &[
        ("search.decay_steps", r#"{ min = 600, max = 1200, scale = "integer" }"#),
        ("search.decay_every", r#"{ min = 100, max = 400, scale = "integer" }"#),
    ],
    ..MNIST
};

impl DatasetChoice {
    /// The settings of a new configuration for this data set.
    pub fn usual(&self) -> &'static Usual {
        match self {
            DatasetChoice::Named(DatasetName::Mnist) => &MNIST,
            DatasetChoice::Named(DatasetName::FashionMnist) => &FASHION_MNIST,
            DatasetChoice::Named(DatasetName::Cifar10) => &CIFAR_10,
            DatasetChoice::Own(_) => &OWN,
        }
    }
}
