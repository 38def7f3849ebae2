//! Studies by the program: what is measured, by which choices, on any ranks, and again from the files.

mod choices;
mod confirmation;
mod growth;
mod networks_of_your_own;
mod pilot;
#[cfg(feature = "mpi")]
mod ranks;
mod real_data;
mod replay;
mod storage;
#[path = "../support/mod.rs"]
mod support;
