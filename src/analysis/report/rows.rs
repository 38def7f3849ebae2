//! A table is declared column by column: each column has its name and how its field is made of what a row is of.

use super::numbers::ABSENT;
use super::section::Section;
use super::table::Table;
use crate::analysis::statistics::Estimate;
use crate::analysis::studies::StudyResults;
use crate::optimizer::Metaparameter;
use crate::readable::count;
use crate::records::{Cell, CellKey, Trial};
use crate::results::{Column, Table as Row};

/// A table that gets its columns one after the other, with a row for each of `of`.
pub struct Rows<T> {
    of: Vec<T>,
    table: Table,
}

impl<T> Rows<T> {
    /// The table called `name`, without columns.
    pub fn new(name: &'static str, of: impl IntoIterator<Item = T>) -> Self {
        let of: Vec<T> = of.into_iter().collect();
        Rows { table: Table { name, keys: 1, heading: Vec::new(), rows: vec![Vec::new(); of.len()] }, of }
    }

    /// The finished table.
    pub fn table(self) -> Table {
        self.table
    }

    /// Adds a column for each of `names`. This and the next method are compiled once for each kind of row, not once for each column.
    fn add(&mut self, names: &[&str], fields: &dyn Fn(&T) -> Vec<String>) {
        self.table.heading.extend(names.iter().map(|&name| name.to_owned()));
        for (row, of) in self.table.rows.iter_mut().zip(&self.of) {
            row.extend(fields(of));
        }
    }

    /// Adds a column.
    fn add_one(&mut self, name: &str, field: &dyn Fn(&T) -> String) {
        self.add(&[name], &|row| vec![field(row)]);
    }

    /// A column for each of `names`.
    pub fn columns(mut self, names: &[&str], fields: impl Fn(&T) -> Vec<String>) -> Self {
        self.add(names, &fields);
        self
    }

    /// A column.
    pub fn column(mut self, name: &str, field: impl Fn(&T) -> String) -> Self {
        self.add_one(name, &field);
        self
    }

    /// The columns of a cell: its batch size and sparsity.
    pub fn of_cell(self, cell: impl Fn(&T) -> CellKey) -> Self {
        self.column("batch_size", |row| cell(row).batch_size.to_string()).column("sparsity", |row| cell(row).sparsity.to_string())
    }

    /// A column for people of a number that may not exist.
    pub fn shown(self, name: &str, show: fn(Estimate) -> String, estimate: impl Fn(&T) -> Option<Estimate>) -> Self {
        self.column(name, |row| estimate(row).map_or(ABSENT.to_owned(), show))
    }

    /// The columns for people of a cell: its batch size and sparsity, which stand beside the others wherever the table goes on.
    pub fn keyed(self, key: impl Fn(&T) -> CellKey) -> Self {
        self.column("batch size", |row| count(key(row).batch_size)).column("sparsity", |row| key(row).sparsity.to_string()).keys(2)
    }

    /// The table, of which so many columns say what a row is of.
    pub fn keys(mut self, keys: usize) -> Self {
        self.table.keys = keys;
        self
    }

    /// The columns of a number with its limits; empty where one does not exist.
    pub fn estimate(mut self, name: &str, estimate: impl Fn(&T) -> Option<Estimate>) -> Self {
        let names = ["", "_low", "_high"].map(|limit| format!("{name}{limit}"));
        self.add(&names.each_ref().map(String::as_str), &|row| limits(estimate(row)));
        self
    }

    /// The columns of the metaparameters `shown`.
    pub fn metaparameters<'a>(self, shown: &[Metaparameter], trial: impl Fn(&T) -> Option<&'a Trial>) -> Self {
        let names: Vec<&str> = shown.iter().map(|name| name.name()).collect();
        self.columns(&names, |row| {
            let trial = trial(row);
            shown.iter().map(|&name| optional(trial.and_then(|trial| trial.metaparameters.get(name)))).collect()
        })
    }

    /// The columns of a table of the result file that are `chosen`; empty where there is no such row.
    pub fn declared<R: Row>(self, chosen: impl Fn(&Column) -> bool, row_of: impl Fn(&T) -> Option<R>) -> Self {
        let numbers: Vec<usize> = (0..R::COLUMNS.len()).filter(|&number| chosen(&R::COLUMNS[number])).collect();
        let names: Vec<&str> = numbers.iter().map(|&number| R::COLUMNS[number].name).collect();
        self.columns(&names, |row| {
            let texts = row_of(row).map_or_else(Vec::new, |row| row.texts());
            numbers.iter().map(|&number| texts.get(number).cloned().unwrap_or_default()).collect()
        })
    }
}

impl Rows<&Cell> {
    /// The columns for people of a cell's best trial: its number below `heading`, and what it has of the metaparameters `shown`.
    pub fn best(self, heading: &str, shown: &[Metaparameter]) -> Self {
        let rows = self.column(heading, |cell| cell.best().map_or(ABSENT.to_owned(), |trial| trial.index.to_string()));
        shown.iter().fold(rows, |rows, &name| {
            let value = |cell: &&Cell| Some(name.show(cell.best()?.metaparameters.get(name)?));
            rows.column(name.title(), |cell| value(cell).unwrap_or(ABSENT.to_owned()))
        })
    }
}

impl<'a, T> Rows<(&'a StudyResults, T)> {
    /// The table called `name` with the column of the study, and a row for each thing that `things` finds in a section.
    pub fn of<I: IntoIterator<Item = T>>(name: &'static str, sections: &'a [Section<'a>], things: impl Fn(&'a Section<'a>) -> I) -> Self {
        let with_study = |section: &'a Section<'a>| things(section).into_iter().map(|thing| (section.study, thing));
        Rows::new(name, sections.iter().flat_map(with_study)).column("study", |(study, _)| study.slug.clone())
    }
}

/// The fields of a number and its limits; empty where one does not exist.
fn limits(estimate: Option<Estimate>) -> Vec<String> {
    let values = estimate.map_or([f64::NAN; 3], |estimate| [estimate.value, estimate.low, estimate.high]);
    values.map(|value| optional(Some(value).filter(|value| !value.is_nan()))).to_vec()
}

/// A number, or an empty field where it does not exist.
pub fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
