//! dps ("data parallelism and sparsity") measures how batch size and pruning change the number of steps that a network needs to train: the
//! experiment of Lee, Ajanthan, Torr and Jaggi (ICLR 2021), after Shallue et al. (2019).
//!
//! A *rank* is one process of MPI. A *cell* is one batch size with one sparsity, a *trial* one training in a cell. A *lane* is a trial that is being
//! trained beside others on a device.
//!
//! docs/architecture.md follows the data through the folders here and says which may import which.
//!
//! `examples/measure.rs` measures a study; `examples/fit.rs` reads results and fits them.
//!
//! ```no_run
#![doc = include_str!("../examples/measure.rs")]
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod analysis;
pub mod arguments;
pub mod backend;
mod child;
pub mod comm;
pub mod config;
pub mod data;
pub mod doctor;
mod error;
pub mod exit;
mod forecast;
pub mod init;
pub mod journal;
pub mod network;
pub mod optimizer;
pub mod pilot;
pub mod progress;
pub mod pruning;
pub mod random;
pub mod readable;
pub mod reader;
pub mod records;
pub mod results;
pub mod search;
pub mod settings;
pub mod signals;
pub mod statistics;
pub mod storage;
pub mod streams;
pub mod study;
pub mod supervise;
pub mod training;
pub mod version;

pub use error::{Error, Result};
