//! Waiting for a program that this one has started, not longer than a limit; and reading what such a program writes.

use std::io::{self, Cursor, Read};
use std::process::{Child, ChildStdout, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(10);

/// How `child` ended; none where it ran longer than `limit`, and was killed. Each look tells `look` how long it has run.
///
/// # Errors
/// The child cannot be waited for; it is killed then, too.
pub fn end_within(child: &mut Child, limit: Duration, mut look: impl FnMut(Duration)) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        look(begun.elapsed());
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if begun.elapsed() < limit => thread::sleep(LOOK),
            late => {
                end(child);
                return late;
            }
        }
    }
}

fn end(child: &mut Child) {
    // The child may have ended in between; nothing else can fail here.
    let _ = child.kill();
    let _ = child.wait();
}

/// The standard output of a program. Its end is an error where `judge`, which waits for the program, says so. A program whose output is
/// not read to its end is killed.
pub struct Output<J> {
    child: Child,
    pipe: ChildStdout,
    judge: J,
}

impl<J: FnMut(&mut Child) -> io::Result<()>> Output<J> {
    /// The output of `child`, which is a pipe, once its first byte is there.
    ///
    /// # Errors
    /// The program ended without a byte, and `judge` says that it failed.
    pub fn begun(mut child: Child, judge: J) -> io::Result<impl Read> {
        let pipe = child.stdout.take().expect("its output is a pipe");
        let mut output = Output { child, pipe, judge };
        let mut first = [0];
        let read = output.read(&mut first)?;
        Ok(Cursor::new(first).take(read as u64).chain(output))
    }
}

impl<J: FnMut(&mut Child) -> io::Result<()>> Read for Output<J> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.pipe.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            (self.judge)(&mut self.child)?;
        }
        Ok(read)
    }
}

impl<J> Drop for Output<J> {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
