//! The allocator of the programs: the system's, which ends the program in a sentence where there is no memory left.
//!
//! Rust would end it with SIGABRT and words that say neither why nor what to do. All that a study finished is in its journal.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;

use dps::exit;

use super::leave;

/// The system's allocator, which ends the program with a message where memory runs out.
pub struct Allocator;

// SAFETY: every call is handed to the system's allocator as it is; where that has none, the process ends.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that System asks for.
        or_end(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that System asks for.
        or_end(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those that System asks for; `place` came from System, as all memory here does.
        or_end(unsafe { System.realloc(place, layout, size) }, size)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that System asks for; `place` came from System, as all memory here does.
        unsafe { System.dealloc(place, layout) }
    }
}

/// The place of so many bytes, which must not be null: the program ends where it is.
fn or_end(place: *mut u8, bytes: usize) -> *mut u8 {
    if place.is_null() {
        end(bytes);
    }
    place
}

/// Says that there is no memory for so many bytes and ends the process, without allocating any.
#[cold]
fn end(bytes: usize) -> ! {
    let mut text = [0; 256];
    let mut rest = &mut text[..];
    // The text has room for the largest number.
    let _ = writeln!(
        rest,
        "dps: expected memory for {bytes} more bytes, found none: raise the limit (ulimit -v, the job's memory); for a study, start fewer ranks on \
         this host or set execution.lanes lower, and start the same command again"
    );
    let length = 256 - rest.len();
    // SAFETY: `write` reads `length` bytes of `text`, which has 256. Neither `write` nor `leave` allocates.
    unsafe { libc::write(2, text.as_ptr().cast(), length as _) };
    leave(exit::DEVICE)
}
