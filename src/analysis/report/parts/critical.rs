//! The critical batch size by several definitions.

use super::super::document::Block;
use super::super::numbers::interval;
use super::super::rows::Rows;
use crate::analysis::statistics::{COVERED, Critical, Definition, Estimate};

/// A row a sparsity and definition, and what the definitions are.
pub fn critical(critical: &[Critical]) -> Vec<Block<'static>> {
    let found = |one: &&Critical| match one.estimate {
        Estimate { value, .. } if value.is_infinite() && one.definition == Definition::Overhead => "beyond those measured".to_owned(),
        estimate => interval(estimate).replace('\n', " "),
    };
    let text = format!(
        "Definitions differ in what they call critical, so their numbers may differ by more than their 95 % intervals. Those of the first four are of the \
         fit's bootstrap; that of the noise scale is over trials, and there is none of a single trial. In simulations with known truth such intervals hold it \
         in {} to {} of 100 cases (make coverage).",
        100.0 * COVERED.0,
        100.0 * COVERED.1
    );
    let table = Rows::new("critical", critical)
        .column("sparsity", |one| one.sparsity.to_string())
        .column("definition", |one| one.definition.name().to_owned())
        .column("critical batch size", found)
        .column("from", |one| one.from.clone());
    let is_used = |definition: &Definition| critical.iter().any(|one| one.definition == *definition);
    let definitions =
        Definition::ALL.into_iter().filter(is_used).map(|definition| format!("__{}__: {}.", definition.name(), definition.source()));
    vec![Block::Text(text), Block::Words(table.table()), Block::Details("The definitions", definitions.collect())]
}
