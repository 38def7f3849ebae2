//! The section `[workload]`.

use std::ops::Bound::Excluded;

use super::race::Race;
use crate::config::key::{key, name};
use crate::config::kind::{Number, Whole};
use crate::config::names::names;
use crate::config::reader::Section;
use crate::config::section::section;
use crate::data::{DatasetChoice, DatasetKind};
use crate::network::{NetworkChoice, NetworkKind};
use crate::optimizer::{OptimizerName, ScheduleName};
use crate::settings::goal::{exact_threshold, float32_threshold};

section! {
    /// The network, its data, and when a trial has reached its goal.
    #[derive(Debug, Clone, PartialEq)]
    "workload" Workload {
        /// The data set: a name, or a table that says where images of your own are.
        dataset: DatasetChoice => key(DatasetKind, "\"mnist\"").see("configuration.md#data-of-your-own"),
        /// The network: a name, or a list of its layers.
        network: NetworkChoice => key(NetworkKind, "\"simple-cnn\"").see("configuration.md#a-network-of-your-own"),
        /// The optimizer. In its updates w are the parameters, g is their gradient, v the velocity, η the learning rate and m the momentum; a and s
        /// are Adam's averages of the gradient and of its square, t counts the steps from 1, and λ is the weight decay.
        optimizer: OptimizerName => name(),
        /// The learning-rate schedule. Steps k count from 0, or from the end of the warm-up, where there is one (`search.warmup_steps`).
        schedule: ScheduleName = ScheduleName::default() => name(),
        /// A trial is complete once its validation error, a fraction of the examples, is at most this.
        goal_error: f64 => key(Number::fraction((Excluded(0.0), Excluded(1.0))), "0.02"),
        /// How a validation error is compared with the goal.
        goal_comparison: GoalComparison = GoalComparison::Integers => name(),
        /// A trial that has not reached the goal after this many steps ends. Steps beyond the last evaluation are not taken.
        max_steps: u32 => key(Whole::count(), "40000"),
        /// Steps between two evaluations on the validation set. Steps-to-result is a multiple of it, and it is at most `workload.max_steps`.
        evaluate_every: u32 => key(Whole::count(), "16"),
    }
}

names! {
    /// How a validation error is compared with the goal.
    GoalComparison {
        /// errors ≤ goal · examples, exactly: 720 of 6,000 at goal 0.12.
        Integers = "integers",
        /// 1 − accuracy ≤ goal with the accuracy in 32-bit floating point, as in the authors' public code: 719 of 6,000 at goal 0.12.
        Float32 = "float32",
    }
}

impl Workload {
    /// The most validation errors, of so many examples, with which a trial is complete.
    pub fn goal_threshold(&self, examples: u64) -> u64 {
        match self.goal_comparison {
            GoalComparison::Integers => exact_threshold(self.goal_error, examples),
            GoalComparison::Float32 => float32_threshold(self.goal_error, examples),
        }
    }

    /// Most steps of a trial: those at the last evaluation within `max_steps`. Later ones could not be evaluated and are not taken.
    pub fn budget(&self) -> u32 {
        self.max_steps / self.evaluate_every * self.evaluate_every
    }

    /// The last step of a trial that reaches no goal, where the fewest steps to the goal in its cell are `best`, if any trial has reached it.
    pub fn last_step(&self, race: Race, best: Option<u32>) -> u32 {
        let end = best.and_then(|best| race.last_step(best, self.evaluate_every));
        end.map_or(self.budget(), |end| end.min(self.budget()))
    }
}

/// Reads the section, of which nothing is known where it is absent.
pub(super) fn read(mut section: Section) -> Draft {
    let draft = Draft::read(&mut section);
    if section.is_absent() {
        return Draft { schedule: None, goal_comparison: None, ..draft };
    }
    if let (Some(every), Some(most)) = (draft.evaluate_every, draft.max_steps)
        && every > most
    {
        let sentence = format!("expected at most workload.max_steps = {most}, found {every}; lower it, or no trial is ever evaluated");
        section.problem_among("evaluate_every", &["max_steps"], &sentence);
    }
    draft
}
