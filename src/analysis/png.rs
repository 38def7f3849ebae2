//! Figures as pixels.

use resvg::tiny_skia::{Pixmap, Transform};

use super::tree::tree;

/// Pixels of a picture at most, at 4 bytes each in memory; larger figures are made smaller.
const MOST_PIXELS: f32 = 3e7;

/// Pixels of a picture from left to right at least: 300 an inch of a figure for papers, which is 5.5 inches wide. Smaller figures are made larger.
const FEWEST_ACROSS: f32 = 1650.0;

/// An SVG document as a PNG file.
///
/// # Errors
/// The libraries' words, where the document is none or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = (FEWEST_ACROSS / width).max(1.0).min((MOST_PIXELS / (width * height)).sqrt());
    let pixels = |length: f32| (length * scale).round().max(1.0) as u32;
    let mut pixels = Pixmap::new(pixels(width), pixels(height)).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
