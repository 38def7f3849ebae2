//! The kinds of files that a figure is written as.

#[cfg(feature = "pictures")]
use super::pictures::{pdf, png};

/// A kind of file that figures are written as.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The ending of its files' names.
    pub name: &'static str,
    /// Makes a file's bytes of an SVG document; where that cannot be done, what the libraries say.
    pub make: fn(&str) -> Result<Vec<u8>, String>,
}

/// The formats of this build: SVG and, with the feature `pictures`, PDF and PNG.
pub const FORMATS: &[Format] = &[
    Format { name: "svg", make: |svg| Ok(svg.as_bytes().to_vec()) },
    #[cfg(feature = "pictures")]
    Format { name: "pdf", make: pdf },
    #[cfg(feature = "pictures")]
    Format { name: "png", make: png },
];
