//! Where, when and by what a study was run, and the same of parts of a study that are merged.

use std::collections::BTreeSet;

use super::attributes::attributes;
use crate::error::short;
use crate::records::Start;
use crate::settings::Convolutions;

/// Letters of a command line that are kept.
pub const LONGEST_COMMAND: usize = 4_000;

attributes! {
    /// Where, when and by what a study was run; none of it decides a result.
    #[derive(Eq)]
    Environment, "environment" {
        program_version: String = "version of dps; of merged parts, here as in most texts of the group, what each has, with semicolons between" => distinct,
        commit: String = "commit it was built from, or empty" => distinct,
        source_tree: String [optional] = "whether it was built from the files of that commit: clean, modified, or unknown outside of git" => distinct,
        compiler: String [optional] = "the compiler that built it: Rust's own line with its version" => distinct,
        command_line: String [optional] = "the command line of rank 0, without its launcher; of a long one the beginning and the end" =>
            |mine: &mut String, theirs: &String| {
                distinct(mine, theirs);
                *mine = short(mine, LONGEST_COMMAND);
            },
        processor: String [optional] = "model of the processors of rank 0's host" => distinct,
        mpi_library: String = "the MPI library's own description, or none" => distinct,
        ranks: u32 = "ranks of the run that wrote the file; of merged parts the most" => most,
        threads: u32 = "threads a rank; of merged parts the most" => most,
        host: String = "name of rank 0's host" => distinct,
        device: String = "what trained" => distinct,
        data_digest: String = "SHA-256 of all pixels and labels as they are split, hexadecimal" => the_first,
        started: String = "start of the study, ISO 8601 in UTC" => least,
        finished: String = "when the last cell so far was finished, ISO 8601 in UTC" => most;
        /// Every start of the study, in order of time; none of a file by a program that did not record them.
        starts: Vec<Start>
    }
}

impl Environment {
    /// Ranks, threads a rank, and the device.
    pub fn machine(&self) -> (u32, u32, &str) {
        (self.ranks, self.threads, &self.device)
    }

    /// The releases, as "major.minor", of the programs that wrote the records. Programs of one release give the same records of a kept
    /// configuration, and so do those of 0.2 and 0.3 with direct convolutions, which count as one.
    pub fn releases(&self, convolutions: Convolutions) -> String {
        let release = |version: &str| match version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".").as_str() {
            "0.2" | "0.3" if convolutions == Convolutions::Direct => "0.2 or 0.3".to_owned(),
            other => other.to_owned(),
        };
        let releases: BTreeSet<String> = self.program_version.split("; ").map(release).collect();
        releases.into_iter().collect::<Vec<_>>().join(" and ")
    }
}

/// The distinct texts of both, each a list of texts with semicolons between.
pub fn distinct(mine: &mut String, theirs: &str) {
    let texts: BTreeSet<&str> = mine.split("; ").chain(theirs.split("; ")).filter(|text| !text.is_empty()).collect();
    *mine = texts.into_iter().collect::<Vec<_>>().join("; ");
}

fn least<T: Ord + Clone>(mine: &mut T, theirs: &T) {
    if theirs < mine {
        mine.clone_from(theirs);
    }
}

fn most<T: Ord + Clone>(mine: &mut T, theirs: &T) {
    if theirs > mine {
        mine.clone_from(theirs);
    }
}

/// Joins an attribute that has the same value in all merged parts: the first part's value stays.
pub(super) fn the_first<T>(_: &mut T, _: &T) {}
