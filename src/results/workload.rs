//! The workload as results describe it.

use super::attributes::{Found, attributes};
use super::environment::the_first;
use crate::records::Cell;

attributes! {
    /// Workload that was trained: data, network, optimizer and goal.
    WorkloadSummary, "workload" {
        dataset: String = "name of the data set" => the_first,
        network: String = "name of the network" => the_first,
        optimizer: String = "name of the optimizer" => the_first,
        schedule: String = "name of the learning-rate schedule" => the_first,
        goal_error: f64 = "validation error, a fraction, at or below which a trial is complete" => the_first,
        goal_threshold: u32 = "the goal error as a count: a trial is complete with at most this many validation examples wrong" => the_first,
        validation_examples: u32 = "examples in the validation set" => the_first,
        training_examples: Option<u32> [optional] =
            "only of data with a validation set of their own: examples in the training set, of which no share was held out" => the_first,
        test_examples: u32 = "examples in the test set" => the_first,
        max_steps: u32 = "step budget of a trial, without steps beyond its last evaluation" => the_first,
        evaluate_every: u32 = "steps between two evaluations" => the_first,
        parameters: u32 = "parameters of the network before pruning" => the_first,
    }
}

impl WorkloadSummary {
    /// The test error of a cell's best trial, a fraction; none where it was not measured, or where there is no test set.
    pub fn test_error(&self, cell: &Cell) -> Option<f64> {
        let errors = cell.test_errors.filter(|_| self.test_examples > 0)?;
        Some(f64::from(errors) / f64::from(self.test_examples))
    }

    /// The workload, unless no study can have had it.
    pub(super) fn checked(self) -> Found<Self> {
        let WorkloadSummary { goal_error, goal_threshold, validation_examples, max_steps, evaluate_every, .. } = self;
        let damaged = |what: &str| Err(format!("damaged: the attributes of /workload say {what}"));
        match () {
            () if !(0.0..=1.0).contains(&goal_error) => damaged(&format!("goal_error = {goal_error}, which is no fraction")),
            () if goal_threshold > validation_examples => damaged("that more errors than there are validation examples reach the goal"),
            () if evaluate_every == 0 || max_steps == 0 => damaged("that trials take, or are evaluated after, 0 steps"),
            // Steps beyond the last evaluation are not taken; files of 0.2 may have them in their budget.
            () if evaluate_every < max_steps => Ok(WorkloadSummary { max_steps: max_steps - max_steps % evaluate_every, ..self }),
            () => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_of_an_earlier_file_ends_at_the_last_evaluation() {
        let read =
            |max_steps: u32, evaluate_every: u32| WorkloadSummary { max_steps, evaluate_every, ..WorkloadSummary::default() }.checked();
        assert_eq!([(20, 7), (14, 7), (5, 7)].map(|(most, every)| read(most, every).unwrap().max_steps), [14, 14, 5]);
    }
}
