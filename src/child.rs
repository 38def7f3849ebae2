//! Waiting for a program that this one has started, not longer than a limit.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(10);

/// How `child` ended; none where it ran longer than `limit`, and was killed. Each look tells `look` how long it has run.
///
/// # Errors
/// It cannot be waited for; it is killed then, too.
pub fn end_within(child: &mut Child, limit: Duration, mut look: impl FnMut(Duration)) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        look(begun.elapsed());
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if begun.elapsed() < limit => thread::sleep(LOOK),
            late => {
                // The child may have ended in between; nothing else can fail here.
                let _ = child.kill();
                let _ = child.wait();
                return late;
            }
        }
    }
}
