//! Reports of results whose law is known: their words and figures. The library alone: no test starts a process.

mod answers;
mod claims;
mod coverage;
mod figures;
mod fits;
mod page;
mod rules;
#[path = "../support/mod.rs"]
mod support;
