//! The report of studies: a page, tables and figures in a folder, a page in Markdown, and tables for the terminal.
//!
//! The rooms `statistics` and `claims` compute, `figures` draws, and this one puts into words.

mod answer;
mod document;
mod files;
mod numbers;
mod page;
mod parts;
mod rows;
mod section;
mod summary;
mod table;
mod tables;
mod terminal;
mod values;
mod warnings;
mod weakness;

pub use files::{LIST, Options, Report, claims_page, refuse_foreign_claims, report};
pub use section::Answer;
pub use table::Table;
pub use terminal::table;
pub use values::values;
pub use warnings::{Warning, warnings};
