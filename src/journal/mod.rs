//! Files that a study keeps on disk while it runs, so that nothing finished is lost: the append-only journal of its records, the checkpoint of the
//! trials under way, and the lock that keeps a second job out. All three lie beside the result file, which can be rebuilt from the journal at any
//! time.
//!
//! The module stores and returns records, and knows which study they belong to. It may not know how a trial is trained, which ranks there are, or
//! what a result file looks like; it prints nothing. One process (rank 0) alone uses it for a study, and the lock sees to that. Every file operation
//! goes through [`Storage`](crate::storage::Storage), so that tests can let each fail in turn.

mod checkpoint;
mod contents;
mod frame;
mod lock;
mod log;
mod paths;
mod problem;

pub use checkpoint::{Checkpoint, Loaded, load, save};
pub use contents::{Contents, Header, Partial, Record, VERSION, bare_start};
pub use lock::{Holder, Lock};
pub use log::{Journal, Opened, other_configuration};
pub use paths::{
    checkpoint_path, figure_path, hosts_path, journal_path, lock_path, namesake, overwrites, refused_name, set_aside, set_result_aside,
};
