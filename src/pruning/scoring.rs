//! The criterion of a study.

use super::criteria::{Erk, Grasp, Magnitude, Random, Snip, Synflow};
use super::criterion::{Criterion, Iterated};
use super::section::{CriterionName, Pruning};

/// The criterion of a study, by what its masks depend on.
pub enum Scoring {
    /// The criterion scores each seed's network once: the scores serve every sparsity.
    Once(Box<dyn Criterion>),
    /// The criterion scores in rounds: each sparsity has masks of its own.
    Rounds(&'static dyn Iterated),
}

impl Scoring {
    /// The criterion that a configuration names.
    pub fn of(pruning: &Pruning) -> Scoring {
        Scoring::Once(match pruning.criterion {
            CriterionName::Snip => Box::new(Snip),
            CriterionName::Random => Box::new(Random),
            CriterionName::Magnitude => Box::new(Magnitude),
            CriterionName::Grasp => Box::new(Grasp { temperature: pruning.temperature.unwrap_or(Pruning::TEMPERATURE) as f32 }),
            CriterionName::Erk => Box::new(Erk),
            CriterionName::Synflow => return Scoring::Rounds(&Synflow),
        })
    }

    /// How many images pass forward and backward through each seed's network, where `examples` are scored and there are so many sparsities above 0.
    pub fn images(&self, examples: u64, sparsities: usize) -> f64 {
        match self {
            _ if sparsities == 0 => 0.0,
            Scoring::Once(criterion) => criterion.given().passes() * examples as f64,
            // One image a round.
            Scoring::Rounds(criterion) => f64::from(criterion.rounds()) * sparsities as f64,
        }
    }
}
