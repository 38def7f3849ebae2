//! The one error type of the crate: each variant says what was expected, what was found and what to do,
//! and has an exit code of its own (README, "Exit codes").

use std::path::PathBuf;

/// What the crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, in words meant for the person who runs the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration file or an override of it is not a study. All problems are listed at once.
    #[error("{path}: {}", list(problems))]
    Configuration {
        /// The file, or the option, the problems are in.
        path: String,
        /// One sentence a problem.
        problems: Vec<String>,
    },
    /// A data file is missing, damaged or not what its name says.
    #[error("{}: {problem}", path.display())]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// What was expected, what was found, what to do.
        problem: String,
    },
    /// A result file could not be written or read.
    #[error("{}: {problem}", path.display())]
    Results {
        /// The HDF5 file.
        path: PathBuf,
        /// What was expected, what was found, what to do.
        problem: String,
    },
    /// The ranks disagree, or one of them is lost.
    #[error("rank {rank}: {problem}")]
    Communication {
        /// The rank that found it.
        rank: usize,
        /// What was expected, what was found, what to do.
        problem: String,
    },
    /// Another rank failed; this one ends with it.
    #[error("rank {rank}: {problem}")]
    Elsewhere {
        /// The rank that failed.
        rank: usize,
        /// Its exit code.
        code: u8,
        /// Its error, in its words.
        problem: String,
    },
    /// The device asked for cannot be used.
    #[error("device \"{device}\": {problem}")]
    Device {
        /// The device as the configuration names it.
        device: String,
        /// What was expected, what was found, what to do.
        problem: String,
    },
    /// The study's journal, checkpoint or lock cannot be used: nothing finished is lost, but the study cannot go on like this.
    #[error("{}: {problem}", path.display())]
    Journal {
        /// The journal, checkpoint or lock file.
        path: PathBuf,
        /// What was expected, what was found, what to do.
        problem: String,
    },
}

impl Error {
    /// The process's exit code for this error (README, "Exit codes").
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Configuration { .. } => 2,
            Error::Data { .. } => 3,
            Error::Results { .. } => 4,
            Error::Communication { .. } => crate::comm::LOST,
            Error::Device { .. } => 6,
            Error::Elsewhere { code, .. } => *code,
            Error::Journal { .. } => 7,
        }
    }
}

/// One problem on the line itself, several on lines of their own.
fn list(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        many => many.iter().fold(format!("{} problems", many.len()), |text, problem| text + "\n  - " + problem),
    }
}
