//! The version of dps, and the commit it was built from.

/// The package's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The git commit it was built from, twelve hexadecimal digits, or "unknown".
pub const COMMIT: &str = env!("DPS_COMMIT");

/// Whether the files that it was built from were those of the commit: "clean", "modified", or "unknown".
pub const SOURCE_TREE: &str = env!("DPS_SOURCE_TREE");

/// The compiler that built it, as it names itself, or "unknown".
pub const COMPILER: &str = env!("DPS_COMPILER");

/// Version and commit, as `--version` prints them.
pub const VERSION_AND_COMMIT: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("DPS_COMMIT"), ")");
