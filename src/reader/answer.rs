//! What the reading process says: blocks, each a length and so many bytes, then a length that says how it ended.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::process::{Child, ChildStdout};

use super::end::ended;

/// Bytes of a block at most, and of a pipe where the system allows it.
const BLOCK: usize = 1 << 18;
/// In place of a block's length: all was said.
const END: u32 = 0;
/// In place of a block's length: words of what is wrong follow, to the end.
const PROBLEM: u32 = u32::MAX;
/// Bytes of such words, at most.
const WORDS: u64 = 1 << 16;

/// The reading process's end: it gathers blocks and writes them.
pub(super) struct Blocks<W: Write> {
    output: W,
    /// The block's length, then its bytes so far.
    block: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    pub fn new(output: W) -> Self {
        Blocks { output, block: vec![0; 4] }
    }

    /// Says that all was said.
    pub fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.output.write_all(&END.to_le_bytes())
    }

    /// Says what is wrong.
    pub fn problem(mut self, words: &str) -> io::Result<()> {
        self.output.write_all(&[&PROBLEM.to_le_bytes(), words.as_bytes()].concat())
    }
}

impl<W: Write> Write for Blocks<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(BLOCK + 4 - self.block.len())];
        self.block.extend_from_slice(taken);
        if self.block.len() == BLOCK + 4 {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let length = (self.block.len() - 4) as u32;
        if length > 0 {
            self.block[..4].copy_from_slice(&length.to_le_bytes());
            self.output.write_all(&self.block)?;
            self.block.truncate(4);
        }
        Ok(())
    }
}

/// What is wrong with a file, in words that follow its name: the cause of an [`io::Error`] that reading an [`Answer`] gives.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// The words of the problem that is the cause of `error`, if one is.
    pub(crate) fn of(error: &io::Error) -> Option<&str> {
        error.get_ref()?.downcast_ref::<Problem>().map(|Problem(words)| words.as_str())
    }
}

/// What was read, as a stream.
#[derive(Debug)]
pub(crate) enum Answer {
    /// By this process.
    Whole(Cursor<Vec<u8>>),
    /// By another one, which ends with the answer.
    Stream {
        /// The process.
        child: Child,
        /// Standard output of the child.
        pipe: BufReader<ChildStdout>,
        /// Bytes of the present block that were not read yet; none after the end.
        left: Option<u32>,
    },
}

impl Answer {
    /// The answer of `child`, once its first block is there.
    pub(super) fn of(mut child: Child) -> Result<Answer, String> {
        let output = child.stdout.take().expect("its output is a pipe");
        #[cfg(target_os = "linux")]
        // SAFETY: the call changes nothing but the size of the pipe, which this process owns; refused, it stays as it is.
        unsafe {
            use std::os::fd::AsRawFd;
            libc::fcntl(output.as_raw_fd(), libc::F_SETPIPE_SZ, BLOCK as libc::c_int);
        }
        let mut answer = Answer::Stream { child, pipe: BufReader::with_capacity(1 << 16, output), left: Some(0) };
        answer.next_block().map_err(|error| error.to_string())?;
        Ok(answer)
    }

    fn next_block(&mut self) -> io::Result<()> {
        let Answer::Stream { child, pipe, left } = self else { return Ok(()) };
        let mut length = [0; 4];
        if let Err(error) = pipe.read_exact(&mut length) {
            if error.kind() != io::ErrorKind::UnexpectedEof {
                return Err(error);
            }
            return Err(io::Error::other(Problem(ended(child.wait()?))));
        }
        match u32::from_le_bytes(length) {
            END => *left = None,
            PROBLEM => {
                let mut words = Vec::new();
                pipe.take(WORDS).read_to_end(&mut words)?;
                return Err(io::Error::other(Problem(String::from_utf8_lossy(&words).into_owned())));
            }
            length => *left = Some(length),
        }
        Ok(())
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Answer::Stream { left: Some(0), .. } = self {
            self.next_block()?;
        }
        match self {
            Answer::Whole(found) => found.read(buffer),
            Answer::Stream { left: None, .. } => Ok(0),
            Answer::Stream { child, pipe, left: Some(left) } => {
                let most = buffer.len().min(*left as usize);
                let read = pipe.read(&mut buffer[..most])?;
                if read == 0 && most > 0 {
                    return Err(io::Error::other(Problem(ended(child.wait()?))));
                }
                *left -= read as u32;
                Ok(read)
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Answer::Stream { child, .. } = self {
            // The child may have ended; nothing else can fail here.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// The answer of a process that says `bytes` and ends with `code`.
    fn said(bytes: &[u8], code: u8) -> Result<Answer, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("said");
        std::fs::write(&file, bytes).unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("cat \"$0\"; exit {code}")).arg(&file).stdout(Stdio::piped());
        Answer::of(command.spawn().unwrap())
    }

    fn blocks(values: &[u8], finish: fn(Blocks<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut blocks = Blocks::new(&mut bytes);
        blocks.write_all(values).unwrap();
        finish(blocks).unwrap();
        bytes
    }

    #[test]
    fn what_is_said_arrives() {
        for length in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7] {
            let values: Vec<u8> = (0..length).map(|place| place as u8).collect();
            let mut found = Vec::new();
            said(&blocks(&values, |blocks| blocks.end()), 0).unwrap().read_to_end(&mut found).unwrap();
            assert!(found == values, "{length}");
        }
    }

    #[test]
    fn a_problem_and_an_early_end_are_errors() {
        assert_eq!(said(&blocks(&[], |blocks| blocks.problem("damaged")), 0).unwrap_err(), "damaged");
        assert!(said(&[], exit_by_memory()).unwrap_err().contains("more memory"));
        let values = vec![7; 2 * BLOCK + 1];
        let late = |bytes: &[u8]| {
            let error = said(bytes, exit_by_memory()).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
            error.get_ref().and_then(|cause| cause.downcast_ref::<Problem>()).map(|problem| problem.0.clone()).unwrap()
        };
        assert_eq!(late(&blocks(&values, |blocks| blocks.problem("chunk 3"))), "chunk 3");
        let whole = blocks(&values, |blocks| blocks.end());
        for cut in [BLOCK + 4, BLOCK + 6, BLOCK + 100, whole.len() - 4, whole.len() - 1] {
            assert!(late(&whole[..cut]).contains("more memory"), "{cut}");
        }
    }

    fn exit_by_memory() -> u8 {
        crate::exit::DEVICE
    }
}
