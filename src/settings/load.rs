//! Reading a study: from a file and the command line to a validated study.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::execution::{Convolutions, Execution};
use super::grid::Grid;
use super::keys::names_a_key;
use super::shipped::Shipped;
use super::study::{self, Study};
use crate::config::{Override, tree};
use crate::storage::{described, read_regular};
use crate::{Error, Result};

/// A configuration that was read: the validated study, and what else is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The study.
    pub study: Study,
    /// The study as TOML, overrides and defaults included, in one canonical form: [`recorded`] reads it back as `study` and as itself.
    pub text: String,
    /// The file's name without its ending: the study's name.
    pub name: String,
    /// Path of the file, which stands in front of its problems.
    pub source: String,
    /// SHA-256 in hexadecimal of the canonical text without the grid and the confirmations, and with the default of each key in
    /// [`IGNORED_KEYS`](super::IGNORED_KEYS): a study may go on elsewhere, and get more cells, trials and confirmations.
    pub digest: String,
}

/// Reads the study at `path`, changed by `overrides` in their order.
///
/// # Errors
/// [`Error::Configuration`] with every problem found, each naming its line or its option.
pub fn load(path: &Path, overrides: &[Override]) -> Result<Configuration> {
    let refuse = |problem: String| Error::Configuration { path: path.display().to_string(), problems: vec![problem] };
    let bytes = read_configuration(path).map_err(refuse)?;
    let text = String::from_utf8(bytes).map_err(|error| refuse(no_text(error.as_bytes(), error.utf8_error().valid_up_to())))?;
    parse_named(&path.display().to_string(), study_name(path), &text, overrides)
}

/// Whether a name is one of a result file. dps-train takes any other file that a study may come from for a configuration.
pub fn names_results(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "h5")
}

/// The name of the study that a file is of: the file's name without its ending.
pub fn study_name(path: &Path) -> String {
    path.file_stem().map_or_else(|| "study".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Bytes that a configuration file may have.
const MOST_BYTES: u64 = 1 << 20;

/// A configuration may be a link to a regular file.
fn read_configuration(path: &Path) -> std::result::Result<Vec<u8>, String> {
    let kind = fs::metadata(path).ok().map(|found| found.file_type()).filter(|kind| !kind.is_file());
    if let Some(kind) = kind {
        let (found, is_read_once) = (described(kind), !kind.is_dir());
        let why =
            if is_read_once { ", which every rank would have to read; write it to a file and name that" } else { "; name a file in it" };
        return Err(format!("expected a configuration file, found {found}{why}"));
    }
    // Before the length is looked at: a result file may be larger than a configuration.
    let mut start = [0; 4];
    if File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"\x89HDF" {
        let problem = "expected a configuration, found an HDF5 file; give the TOML file of the study. Result files are taken by dps-train RESULT.h5 \
                       (without --cells), dps-train confirm and dps-report, if their names end with .h5";
        return Err(problem.to_owned());
    }
    fs::canonicalize(path).and_then(|path| read_regular(&path, MOST_BYTES)).map_err(|error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let to_do = match Shipped::named(&name) {
            Some(Shipped { name, .. }) => format!("dps-train configs {name} > study.toml writes the one that comes with the program"),
            None => "give the path of a TOML file, for example configs/quickstart.toml".to_owned(),
        };
        format!("expected a readable configuration file, found none ({error}); {to_do}")
    })
}

/// The problem of a file whose bytes are no text in UTF-8 from the byte `from` on.
fn no_text(bytes: &[u8], from: usize) -> String {
    if bytes.contains(&0) {
        return "expected a configuration, which is text, found a file of another kind; give the path of a TOML file".to_owned();
    }
    let line = 1 + bytes.iter().take(from).filter(|byte| **byte == b'\n').count();
    format!("line {line}: expected text in UTF-8, found other bytes; save the file as UTF-8")
}

/// Reads a study from the text of a configuration file; `name` is the study's and stands in front of problems.
///
/// # Errors
/// As [`load`].
pub fn parse(name: &str, text: &str, overrides: &[Override]) -> Result<Configuration> {
    parse_named(name, name.to_owned(), text, overrides)
}

/// Reads a study from the canonical text that a result file or a journal keeps, as [`parse`] reads a configuration file. A kept text without
/// `execution.convolutions` is of direct ones: dps 0.2 had no others at first, and the key is left out for them since.
///
/// # Errors
/// As [`load`].
pub fn recorded(name: &str, text: &str, overrides: &[Override]) -> Result<Configuration> {
    let is_said = |section: &toml::Value| !section.is_table() || section.get("convolutions").is_some();
    let says = |kept: toml::Table| kept.get("execution").is_some_and(is_said);
    let direct = Override::new("execution.convolutions", "execution.convolutions", Convolutions::Direct.name());
    let filled = if text.parse().is_ok_and(says) { Vec::new() } else { vec![direct] };
    parse_named(name, name.to_owned(), text, &[&filled[..], overrides].concat())
}

fn parse_named(path: &str, name: String, text: &str, overrides: &[Override]) -> Result<Configuration> {
    let refuse = |problems| Error::Configuration { path: path.to_owned(), problems };
    let sentences =
        |problems: Vec<(tree::Origin, String)>| problems.into_iter().map(|(origin, sentence)| format!("{origin}{sentence}")).collect();
    // Past a syntax error the rest of a file is guesswork, so nothing more is said about it.
    let mut table = tree::read(text).map_err(|problems| refuse(sentences(problems)))?;
    let unfit = sentences(overrides.iter().filter_map(|change| change.apply(&mut table, names_a_key).err()).collect());
    let study = match (study::read(&table), unfit) {
        (Ok(study), unfit) if unfit.is_empty() => study,
        (Ok(_), unfit) => return Err(refuse(unfit)),
        (Err(problems), unfit) => return Err(refuse(problems.into_iter().chain(unfit).collect())),
    };
    let Execution { race, full_evaluation, convolutions, products, tf32, .. } = study.execution;
    let execution = Execution { race, full_evaluation, convolutions, products, tf32, ..Execution::default() };
    let grid = Grid { batch_sizes: Vec::new(), sparsities: Vec::new(), trials: 0 };
    let decisive = Study { execution, grid, confirm: None, ..study.clone() };
    let digest = format!("{:x}", Sha256::digest(canonical(&decisive)?));
    Ok(Configuration { text: canonical(&study)?, study, name, source: path.to_owned(), digest })
}

/// A study as TOML with all of its defaults, in the one form that is stored with results.
///
/// # Errors
/// [`Error::Configuration`] where TOML cannot express it; no configuration that was read is such a study.
pub fn canonical(study: &Study) -> Result<String> {
    toml::to_string(study).map_err(|error| {
        let problem = format!("expected a study that TOML can express, found one that it cannot ({error}); report this as a bug");
        Error::Configuration { path: "the study".to_owned(), problems: vec![problem] }
    })
}
