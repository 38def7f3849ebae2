//! What both programs share: how they end. The library ends no process, so whatever does so lives in `src/bin`.

mod allocator;

pub use allocator::Allocator;
use dps::{exit, streams};

/// What a program does first. A panic, which is a bug of ours, becomes one sentence and [`exit::UNEXPECTED`]; under mpirun that ends the other ranks,
/// too.
pub fn prepare(program: &'static str) {
    streams::prepare(program);
    std::panic::set_hook(Box::new(move |panic| {
        streams::err(&format!("{program}: unexpected failure, please report it: {panic}"));
        std::process::exit(exit::UNEXPECTED.into());
    }));
}

/// Ends the process at once. Destructors and handlers do not run: they might wait for a launcher, for other ranks, or for a device that does not
/// answer.
pub fn leave(code: u8) -> ! {
    // SAFETY: _exit takes any number and does nothing but end the process.
    unsafe { libc::_exit(code.into()) }
}
