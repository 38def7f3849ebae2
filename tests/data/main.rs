//! Data sets: what is read, what is refused, and studies of images of one's own.

mod data;
#[cfg(target_os = "linux")]
mod hostile_files;
mod own_data;
#[path = "../support/mod.rs"]
mod support;
