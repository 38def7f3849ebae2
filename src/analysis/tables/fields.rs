//! Fields of rows, and names of columns.

use crate::analysis::fit::Estimate;
use crate::analysis::studies::StudyResults;
use crate::records::CellKey;

/// The beginning of a row that belongs to a cell.
pub(super) fn of_cell(study: &StudyResults, key: CellKey) -> Vec<String> {
    vec![study.slug.clone(), key.batch_size.to_string(), key.sparsity.to_string()]
}

/// Names of columns.
pub(super) fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The columns of a number with its limits.
pub(super) fn estimates(name: &str) -> [String; 3] {
    ["", "_low", "_high"].map(|end| format!("{name}{end}"))
}

/// A number with its limits; empty where one does not exist.
pub(super) fn limits(estimate: Option<Estimate>) -> [String; 3] {
    let of = |value: fn(Estimate) -> f64| optional(estimate.map(value).filter(|value| !value.is_nan()));
    [of(|estimate| estimate.value), of(|estimate| estimate.low), of(|estimate| estimate.high)]
}

/// A number, or an empty field where it does not exist.
pub(super) fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
