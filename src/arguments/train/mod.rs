//! The command line of `dps-train`: `options` declares what can be typed, and `reading` makes of it what the programs need.

mod options;
mod reading;
#[cfg(test)]
mod tests;

pub use options::{
    ConfirmArguments, DataCommand, DataFolder, ExecutionArguments, PilotArguments, ReplayArguments, ShownArguments, Source, StudyArguments,
    Train,
};
pub(super) use reading::programs;
pub use reading::supervised;
