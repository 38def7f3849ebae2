//! A deadline for waiting, so that a rank that is lost or stuck does not make the others wait for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use super::abandon::abandon;
use crate::Error;

/// Milliseconds, since the first call here, at which the wait under way began; 0 when there is none.
static BEGAN: AtomicU64 = AtomicU64::new(0);
/// Milliseconds a wait may last; 0 for ever.
static LONGEST: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// Limits every later wait of this process to `seconds`; 0 sets no limit. Where one lasts longer, a thread abandons it, once, since MPI gives no way
/// out of a collective.
pub(super) fn limit(seconds: u32, rank: usize) {
    static WATCHER: Once = Once::new();
    LONGEST.store(u64::from(seconds) * 1000, Ordering::Relaxed);
    WATCHER.call_once(|| {
        let watch = move || {
            let mut abandoned = 0;
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let (began, longest) = (BEGAN.load(Ordering::Relaxed), LONGEST.load(Ordering::Relaxed));
                if began > 0 && began != abandoned && longest > 0 && now().saturating_sub(began) > longest {
                    abandoned = began;
                    let problem = format!(
                        "expected the other ranks within {} s (execution.deadline_seconds), waited in vain; one of them is lost or stuck: look at \
                         its host, then run the same command again to continue",
                        longest / 1000
                    );
                    abandon(&Error::Communication { rank, problem });
                }
            }
        };
        // Without this thread a study still runs, as it would under any other MPI program.
        let _ = std::thread::Builder::new().name("watch".into()).spawn(watch);
    });
}

/// Runs `wait`, under the limit.
pub(super) fn watched<T>(wait: impl FnOnce() -> T) -> T {
    BEGAN.store(now(), Ordering::Relaxed);
    let result = wait();
    BEGAN.store(0, Ordering::Relaxed);
    result
}
