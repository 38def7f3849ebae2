//! What reading a file gives: a value, or what is wrong.

use std::io;

/// A value, or what is wrong, in words that follow the file's name.
pub(super) type Found<T> = std::result::Result<T, String>;

/// Why reading failed, as half a sentence.
pub(super) fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            format!("its compressed data is damaged or cut short ({error}); write the file again")
        }
        _ => format!("the file cannot be read ({error}); make it readable"),
    }
}
