//! The one error type of the crate: each variant says what was expected, what was found and what to do,
//! and has an exit code of its own.

use std::path::PathBuf;

use crate::exit;

/// Result of the crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, in words meant for the person who runs the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A configuration file or an override of it is not a study. All problems are listed at once.
    #[error("{}: {}", short(path, PATH), list(problems))]
    Configuration {
        /// The file, or the option, the problems are in.
        path: String,
        /// One sentence a problem.
        problems: Vec<String>,
    },
    /// A data file is missing, damaged or not what its name says.
    #[error("{}: {}", short(&path.display().to_string(), PATH), sentences(problem))]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
    /// A result file could not be written or read.
    #[error("{}: {}", short(&path.display().to_string(), PATH), sentences(problem))]
    Results {
        /// The HDF5 file.
        path: PathBuf,
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
    /// The ranks disagree, or one of them is lost.
    #[error("rank {rank}: {}", sentences(problem))]
    Communication {
        /// The rank that found it.
        rank: usize,
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
    /// Another rank failed; this one ends with it.
    #[error("rank {rank}: {}", sentences(problem))]
    Elsewhere {
        /// The rank that failed.
        rank: usize,
        /// Exit code of that rank.
        code: u8,
        /// Error of that rank, in its words.
        problem: String,
    },
    /// The device asked for cannot be used.
    #[error("device \"{device}\": {}", sentences(problem))]
    Device {
        /// The device as the configuration names it.
        device: String,
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
    /// Memory is used up.
    #[error("{}", sentences(problem))]
    Memory {
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
    /// A signal asked the program to stop in the middle of something long, which left no trace.
    #[error("stopped by a signal")]
    Interrupted,
    /// The study's journal, checkpoint or lock cannot be used: nothing finished is lost, but the study cannot go on like this.
    #[error("{}: {}", short(&path.display().to_string(), PATH), sentences(problem))]
    Journal {
        /// The journal, checkpoint or lock file.
        path: PathBuf,
        /// Sentence on the problem: what was expected, what was found, what to do.
        problem: String,
    },
}

impl Error {
    /// The process's exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Configuration { .. } => exit::CONFIGURATION,
            Error::Data { .. } => exit::DATA,
            Error::Results { .. } => exit::RESULTS,
            Error::Communication { .. } => exit::COMMUNICATION,
            Error::Device { .. } | Error::Memory { .. } => exit::DEVICE,
            Error::Elsewhere { code, .. } => *code,
            Error::Journal { .. } => exit::JOURNAL,
            Error::Interrupted => exit::STOPPED,
        }
    }
}

/// Problems that are named; of more there is a count.
const NAMED: usize = 10;

/// Letters of a path in front of a sentence, and of the sentence, at most: what they quote may have been made by a program.
const PATH: usize = 120;
const SENTENCE: usize = 350;

/// One problem on the line itself, several on lines of their own.
fn list(problems: &[String]) -> String {
    match problems {
        [one] => short(one, SENTENCE),
        many => {
            let mut text = format!("{} problems", many.len());
            for problem in many.iter().take(NAMED) {
                text += "\n  - ";
                text += &short(problem, SENTENCE);
            }
            if many.len() > NAMED {
                text += &format!("\n  - and {} more", many.len() - NAMED);
            }
            text
        }
    }
}

/// The sentences of a problem, one a line, each of them no longer than [`SENTENCE`].
fn sentences(problem: &str) -> String {
    problem.lines().map(|line| short(line, SENTENCE)).collect::<Vec<_>>().join("\n")
}

/// Advice on an HDF5 file that could not be locked, where HDF5's words for the error say that.
pub(crate) fn locked(words: &str) -> Option<&'static str> {
    words.contains("unable to lock file").then_some(
        "another program has the file open for writing, or its file system has no locks; close that program, or set the environment variable \
         HDF5_USE_FILE_LOCKING=FALSE",
    )
}

/// A text, or its beginning and its end where it has more than `most` letters: a sentence says at its end what to do.
pub(crate) fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let beginning: String = text.chars().take(most * 2 / 3).collect();
    let end: String = text.chars().skip(count - most / 3).collect();
    format!("{beginning} … {end}")
}
