//! A table of steps-to-result, as a file of comma-separated values.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::{MOST_BYTES, MOST_STUDIES, cell, excess, results, trial};
use crate::records::{CellKey, Status};
use crate::results::{Results, WorkloadSummary};
use crate::storage::read_regular;
use crate::{Error, Result};

/// The columns that a table must have; others are passed over.
const COLUMNS: [&str; 5] = ["study", "batch_size", "sparsity", "steps_to_result", "goal"];

/// Reads a table of comma-separated values with a heading (RFC 4180), in UTF-8: a row a batch size and sparsity of a study, with the steps that it
/// took to the goal. Rows of one cell are its trials. Each name and goal is a study of its own, in the order of the file.
///
/// # Errors
/// [`Error::Results`] where the file cannot be read, a column is missing, or a field is not what its column holds.
pub fn read_table(path: &Path) -> Result<Vec<Results>> {
    let read = || {
        let bytes = fs::canonicalize(path).and_then(|path| read_regular(&path, MOST_BYTES));
        let bytes = bytes.map_err(|error| format!("the file cannot be read ({error}); give one that may be read"))?;
        studies(&bytes)
    };
    read().map_err(|problem| Error::Results { path: path.to_owned(), problem })
}

fn studies(bytes: &[u8]) -> std::result::Result<Vec<Results>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let heading = reader.headers().map_err(|error| damaged(&error))?.clone();
    let place = |name: &str| {
        let expected = COLUMNS.join(", ");
        let found = heading.iter().take(20).collect::<Vec<_>>().join(", ");
        heading
            .iter()
            .position(|other| other == name)
            .ok_or(format!("expected the columns {expected}, found none called {name}, but {found:?}"))
    };
    let [study, size, sparsity, steps, goal] = COLUMNS.map(place);
    let [study, size, sparsity, steps, goal] = [study?, size?, sparsity?, steps?, goal?];
    let (mut found, mut places) = (Vec::new(), Places::default());
    for (number, row) in reader.records().enumerate() {
        let row = row.map_err(|error| damaged(&error))?;
        let field = |place: usize| row.get(place).unwrap_or_default();
        let refused = |place: usize, expected: &str| {
            format!(
                "row {} below the heading, {}: expected {expected}, found {:?}",
                number + 1,
                heading.get(place).unwrap_or_default(),
                field(place)
            )
        };
        let count = |place: usize, expected: &str| whole(field(place)).ok_or_else(|| refused(place, expected));
        let real = |place: usize, expected: &str, is_right: fn(f64) -> bool| {
            field(place).parse().ok().filter(|&value| is_right(value)).ok_or_else(|| refused(place, expected))
        };
        if field(study).is_empty() {
            return Err(refused(study, "the name of a study"));
        }
        let key = CellKey {
            batch_size: count(size, "a batch size, a whole number from 1")?,
            // Adding 0 makes -0 0.
            sparsity: real(sparsity, "the fraction of parameters removed, from 0 to below 1", |value| (0.0..1.0).contains(&value))? + 0.0,
        };
        let steps = count(steps, "a whole number of steps from 1 (leave out cells that did not reach the goal)")?;
        let goal = real(goal, "a number", f64::is_finite)?;
        add(&mut found, &mut places, field(study), goal, key, steps);
        if found.len() > MOST_STUDIES {
            break;
        }
    }
    if let Some(problem) = excess(&found) {
        return Err(problem);
    }
    if found.is_empty() {
        return Err("expected a row a cell below the heading, found none".to_owned());
    }
    Ok(found)
}

/// Where studies and their cells are: by name and goal, and by study, batch size and sparsity. Floats are told apart by their bits, zeros alike.
#[derive(Default)]
struct Places {
    studies: HashMap<(String, u64), usize>,
    cells: HashMap<(usize, u32, u64), usize>,
}

/// Adds a trial to its cell, which may be a new one of a new study.
fn add(found: &mut Vec<Results>, places: &mut Places, name: &str, goal: f64, key: CellKey, steps: u32) {
    let bits = |value: f64| (value + 0.0).to_bits();
    let study = *places.studies.entry((name.to_owned(), bits(goal))).or_insert_with(|| {
        let workload = WorkloadSummary { dataset: name.to_owned(), goal_error: goal, ..WorkloadSummary::default() };
        found.push(results(workload, Vec::new()));
        found.len() - 1
    });
    let Results { workload, cells, .. } = &mut found[study];
    workload.max_steps = workload.max_steps.max(steps);
    let place = *places.cells.entry((study, key.batch_size, bits(key.sparsity))).or_insert_with(|| {
        cells.push(cell(key, Vec::new()));
        cells.len() - 1
    });
    let index = cells[place].trials.len() as u32;
    cells[place].trials.push(trial(index, Status::Complete, Some(steps), steps));
}

/// A whole number from 1, also as other programs write it: `64.0`.
fn whole(field: &str) -> Option<u32> {
    let value: f64 = field.parse().ok()?;
    (value.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
}

fn damaged(error: &csv::Error) -> String {
    format!("expected rows of comma-separated values below a heading, in UTF-8 ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Cell;

    #[test]
    fn rows_are_trials_of_cells_of_studies() {
        let text = "study,goal,batch_size,sparsity,steps_to_result,seed\n85M,3.42,64,-0.0,46000,1\n85M,3.42,128,0.0,23000.0,1\n\
                    \"151M, wide\",3.24,64,0,96000,1\n85M,3.42,64,0,45000,2\n85M,3.3,64,0.9,90000,1\n";
        let found = studies(text.as_bytes()).unwrap();
        let names: Vec<_> = found.iter().map(|one| (one.workload.dataset.as_str(), one.workload.goal_error, one.cells.len())).collect();
        assert_eq!(names, [("85M", 3.42, 2), ("151M, wide", 3.24, 1), ("85M", 3.3, 1)]);
        assert_eq!(found[0].cells[0].trials.len(), 2);
        assert_eq!(found[0].cells.iter().map(Cell::steps_to_result).collect::<Vec<_>>(), [Some(45_000), Some(23_000)]);
        assert!(found[0].cells[0].key.sparsity.is_sign_positive());
        assert_eq!(found[2].cells[0].key, CellKey { batch_size: 64, sparsity: 0.9 });
    }

    #[test]
    fn what_is_no_such_table_is_refused_in_a_sentence() {
        let heading = "study,batch_size,sparsity,steps_to_result,goal\n";
        for (text, words) in [
            (
                "study,batch_size,steps_to_result,goal\na,1,2,3\n".to_owned(),
                "found none called sparsity, but \"study, batch_size, steps_to_result, goal\"",
            ),
            (heading.to_owned(), "expected a row a cell"),
            (String::new(), "found none called study"),
            (
                format!("{heading}a,0,0,5,1\n"),
                "row 1 below the heading, batch_size: expected a batch size, a whole number from 1, found \"0\"",
            ),
            (format!("{heading}a,1,0,5,1\na,2.5,0,5,1\n"), "row 2 below the heading, batch_size"),
            (format!("{heading}a,1,1,5,1\n"), "sparsity: expected the fraction of parameters removed, from 0 to below 1, found \"1\""),
            (format!("{heading}a,1,0,,1\n"), "leave out cells that did not reach the goal"),
            (format!("{heading}a,1,0,1e99,1\n"), "steps_to_result"),
            (format!("{heading}a,1,0,5,loss\n"), "goal: expected a number, found \"loss\""),
            (format!("{heading},1,0,5,1\n"), "the name of a study"),
            (format!("{heading}a,1,0,5\n"), "expected rows of comma-separated values"),
        ] {
            let problem = studies(text.as_bytes()).unwrap_err();
            assert!(problem.contains(words) && !problem.contains('\n'), "{problem}");
        }
        assert!(studies(b"study,batch_size,sparsity,steps_to_result,goal\n\xff,1,0,5,1\n").unwrap_err().contains("UTF-8"));
    }
}
