//! The bytes of a data file, gzipped or not, read no further than expected.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha256};

use crate::reader::Problem;
use crate::{Error, Result};

/// A data file's contents after decompression, with errors that name the file.
pub(super) struct Contents {
    path: PathBuf,
    reader: Box<dyn Read>,
    hash: Sha256,
}

impl Contents {
    /// Opens `path`; whether it is gzipped is seen from its first bytes, not its name.
    pub fn open(path: &Path) -> Result<Self> {
        let reader = File::open(path).and_then(|file| decompressed(Box::new(BufReader::new(file))));
        let reader = reader.map_err(|error| Error::Data { path: path.into(), problem: unreadable(&error) })?;
        Ok(Contents { path: path.into(), reader, hash: Sha256::new() })
    }

    /// The next `bytes` bytes, or all that is left when that is less.
    pub fn read_up_to(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut read = Vec::new();
        match self.reader.by_ref().take(bytes as u64).read_to_end(&mut read) {
            Ok(_) => {
                self.hash.update(&read);
                Ok(read)
            }
            Err(error) => Err(self.error(describe(&error))),
        }
    }

    /// SHA-256, in hexadecimal, of all that was read.
    pub fn digest(self) -> String {
        format!("{:x}", self.hash.finalize())
    }

    /// The error that says `problem` of this file.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        Error::Data { path: self.path.clone(), problem: problem.into() }
    }
}

/// Why reading failed, as half a sentence: a [`Problem`]'s words as they are. A decoder's words mean little to a reader.
pub(super) fn describe(error: &io::Error) -> String {
    described(error, "gzip", "fetch the data set again").unwrap_or_else(|| unreadable(error))
}

/// The words of a [`Problem`], or that the data, compressed as `format` says, are damaged and what to do then; none of another error.
pub(super) fn described(error: &io::Error, format: &str, advice: &str) -> Option<String> {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let is_damaged = matches!(error.kind(), InvalidInput | InvalidData | UnexpectedEof);
    let damaged = || is_damaged.then(|| format!("its {format} data is damaged or cut short ({error}); {advice}"));
    Problem::of(error).map(str::to_owned).or_else(damaged)
}

fn unreadable(error: &io::Error) -> String {
    format!("the file cannot be read ({error}); make it readable, or fetch the data set into another folder with --data")
}

/// Whether a file that begins so is gzipped.
pub(super) fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// The contents of gzip members that follow each other. Zeros after them, with which some programs fill up blocks, are passed over.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.0 else { return Ok(0) };
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let mut rest = self.0.take().map(GzDecoder::into_inner);
            while let Some(reader) = &mut rest {
                let bytes = reader.fill_buf()?;
                let (zeros, length) = (bytes.iter().take_while(|&&byte| byte == 0).count(), bytes.len());
                reader.consume(zeros);
                if length == 0 {
                    rest = None;
                } else if zeros < length {
                    break;
                }
            }
            self.0 = rest.map(GzDecoder::new);
        }
    }
}

/// `reader` itself, or what it holds in gzip, by its first two bytes.
pub(super) fn decompressed<'a>(mut reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::with_capacity(2);
    reader.by_ref().take(2).read_to_end(&mut start)?;
    let gzipped = is_gzip(&start);
    let whole = io::Cursor::new(start).chain(reader);
    Ok(if gzipped { Box::new(Members(Some(GzDecoder::new(BufReader::new(whole))))) } else { Box::new(whole) })
}
