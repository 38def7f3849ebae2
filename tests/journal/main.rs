//! The journal, checkpoint and lock of a study, under torn writes, damage, kills and every failing file operation.

mod damage;
mod failures;
mod files;
mod growth;
mod records;
mod sample;
#[path = "../support/mod.rs"]
mod support;
