//! Ends of both programs. The library ends no process, so whatever does so lives in `src/bin`.

mod allocator;

use allocator::Allocator;
use dps::{Error, data, exit, reader, results, streams};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Prepares a program, before all else; a process that only reads a file for another one does that, and ends. A panic, which is a bug of ours,
/// becomes one sentence and [`exit::UNEXPECTED`]; under mpirun that ends the other ranks, too.
pub fn prepare(program: &'static str) {
    if let Some(code) = reader::begin(&[results::READING, data::READING]) {
        leave(code);
    }
    streams::prepare(program);
    std::panic::set_hook(Box::new(move |panic| {
        streams::err(&format!("{program}: unexpected failure, please report it: {panic}"));
        std::process::exit(exit::UNEXPECTED.into());
    }));
}

/// The exit code of what a program was asked for; an error is said.
pub fn finish(program: &str, result: Result<u8, Error>) -> u8 {
    result.unwrap_or_else(|error| {
        streams::err(&format!("{program}: {error}"));
        error.exit_code()
    })
}

/// Ends the process at once. Destructors and handlers do not run: they might wait for a launcher, for other ranks, or for a device that does not
/// answer.
pub fn leave(code: u8) -> ! {
    // SAFETY: _exit takes any number and does nothing but end the process.
    unsafe { libc::_exit(code.into()) }
}
