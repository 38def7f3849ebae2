//! The critical batch size by several definitions.

use super::super::document::Block;
use super::super::numbers::{ABSENT, interval};
use super::super::rows::Rows;
use crate::analysis::statistics::{COVERED, Critical, Definition, Estimate};
use crate::settings::ascending;

/// A row a definition and a column a sparsity, and what the definitions are.
pub fn critical(critical: &[Critical]) -> Vec<Block<'static>> {
    let found = |one: &Critical| match one.estimate {
        Estimate { value, .. } if value.is_infinite() && one.definition == Definition::Overhead => "beyond those measured".to_owned(),
        estimate => interval(estimate).replace('\n', " "),
    };
    let text = format!(
        "Definitions differ in what they call critical, so their numbers may differ by more than their 95 % intervals. Those of the first four are of the \
         fit's bootstrap; that of the noise scale is over trials, and there is none of a single trial. In simulations with known truth such intervals hold it \
         in {} to {} of 100 cases (make coverage). The table critical.csv says what each was computed from.",
        100.0 * COVERED.0,
        100.0 * COVERED.1
    );
    let sparsities = ascending(critical.iter().map(|one| one.sparsity), f64::total_cmp);
    let of = |definition: Definition, sparsity: f64| {
        let found: Vec<String> =
            critical.iter().filter(|one| one.definition == definition && one.sparsity == sparsity).map(found).collect();
        if found.is_empty() { ABSENT.to_owned() } else { found.join("; ") }
    };
    let used = || Definition::ALL.into_iter().filter(|definition| critical.iter().any(|one| one.definition == *definition));
    let rows = Rows::new("critical", used()).column("definition", |definition| definition.name().to_owned());
    let add =
        |rows: Rows<Definition>, &sparsity: &f64| rows.column(&format!("sparsity {sparsity}"), |&definition| of(definition, sparsity));
    let table = sparsities.iter().fold(rows, add);
    let definitions = used().map(|definition| format!("__{}__: {}.", definition.name(), definition.source()));
    let definitions = Block::Fold(String::new(), "The definitions".to_owned(), vec![Block::List(definitions.collect())]);
    vec![Block::Text(text), Block::Words(table.table()), definitions]
}
