//! The digest of a result file, by which a reader knows that a file is the one that a report names.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of a file, hexadecimal.
///
/// # Errors
/// Those of reading the file.
pub fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut BufReader::new(File::open(path)?), &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}
