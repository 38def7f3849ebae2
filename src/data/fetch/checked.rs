//! Copying bytes while they are compared with what was published of them.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::super::contents::{decompressed, describe};
use super::super::table::DataFile;

/// Nothing, or why a source does not have what was asked of it.
pub(super) type Reason = Result<(), String>;

/// Bytes between two messages of progress on one file.
const PROGRESS_BYTES: u64 = 32 << 20;

pub(super) fn open(path: &Path) -> Result<BufReader<fs::File>, String> {
    fs::File::open(path).map(BufReader::new).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// Whether the file at `path`, gzipped or not, has the contents of `file`.
pub(super) fn verify(path: &Path, file: &DataFile) -> Reason {
    copy_checked(&mut decompressed(Box::new(open(path)?)).map_err(|error| describe(&error))?, file, &mut io::sink(), &mut |_| ())
}

/// Copies at most the bytes of `file`, and says what differs where `reader` does not give exactly those.
pub(super) fn copy_checked(reader: &mut dyn Read, file: &DataFile, output: &mut dyn Write, progress: &mut dyn FnMut(&str)) -> Reason {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut copied = 0;
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(describe(&error)),
        };
        let before = copied;
        copied += read.len() as u64;
        if copied > file.bytes {
            return Err(format!("expected {} bytes, found more", file.bytes));
        }
        if before / PROGRESS_BYTES < copied / PROGRESS_BYTES {
            progress(&format!("{}: {} of {} MB", file.name, copied / 1_000_000, file.bytes / 1_000_000));
        }
        hash.update(read);
        output.write_all(read).map_err(|error| format!("cannot be written: {error}"))?;
    }
    if copied < file.bytes {
        return Err(format!("expected {} bytes, found {copied}", file.bytes));
    }
    let found = format!("{:x}", hash.finalize());
    if file.sha256 == found { Ok(()) } else { Err(format!("expected SHA-256 {}, found {found}", file.sha256)) }
}
