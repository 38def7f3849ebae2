//! Result of reading a file: a value, or what is wrong.

use std::io;

use crate::data::contents::described;

/// A value, or what is wrong, in words that follow the file's name.
pub(super) type Found<T> = std::result::Result<T, String>;

/// Why a header of this kind of file cannot be read.
pub(super) fn in_header(kind: &str) -> impl Fn(io::Error) -> String {
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("expected {kind}, found an end in its header: the file is cut short"),
        _ => unread(&error),
    }
}

/// Why reading failed, as half a sentence: the words of a [`Problem`](crate::reader::Problem) where a reader gave one.
pub(super) fn unread(error: &io::Error) -> String {
    let described = described(error, "compressed", "write the file again");
    described.unwrap_or_else(|| format!("the file cannot be read ({error}); make it readable"))
}
