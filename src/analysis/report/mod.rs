//! The report of studies: a page, tables and figures in a folder, a page in Markdown, and tables for the terminal.
//!
//! What is said is computed below (`statistics`, `claims`) and drawn below (`figures`); here it is put into words.

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

pub use files::{LIST, Options, Report, claims_page, refuse_foreign_claims, report};
pub use section::Answer;
pub use table::Table;
pub use terminal::table;
pub use values::values;
pub use warnings::{FEWEST_TRIALS, Warning, warnings};
