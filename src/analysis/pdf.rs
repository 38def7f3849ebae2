//! Figures as PDF files.

use svg2pdf::{ConversionOptions, PageOptions};

use super::tree::tree;

/// Units of an SVG document in an inch, by its standard.
const UNITS_AN_INCH: f32 = 96.0;

/// An SVG document as a PDF file with one page of its size. Text stays text, in a font that the file carries.
///
/// # Errors
/// The library's words, where the document is none.
pub fn pdf(svg: &str) -> Result<Vec<u8>, String> {
    svg2pdf::to_pdf(&tree(svg)?, ConversionOptions::default(), PageOptions { dpi: UNITS_AN_INCH }).map_err(|error| error.to_string())
}
