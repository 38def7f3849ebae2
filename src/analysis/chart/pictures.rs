//! SVG documents as PNG and as PDF files: what the feature `pictures` adds to a build.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use svg2pdf::usvg::{Options, Tree, fontdb::Database};
use svg2pdf::{ConversionOptions, PageOptions};

/// Pixels of a picture at most, at 4 bytes each in memory; larger figures are made smaller.
const MOST_PIXELS: f32 = 3e7;

/// Pixels of a picture from left to right at least: 300 an inch of a figure for papers, which is 5.5 inches wide. Smaller figures are made larger.
const FEWEST_ACROSS: f32 = 1650.0;

/// An SVG document as a PNG file.
///
/// # Errors
/// The libraries' words, where the document is none or too large.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = (FEWEST_ACROSS / width).max(1.0).min((MOST_PIXELS / (width * height)).sqrt());
    let pixels = |length: f32| (length * scale).round().max(1.0) as u32;
    let mut pixels = Pixmap::new(pixels(width), pixels(height)).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

/// Units of an SVG document in an inch, by its standard.
const UNITS_AN_INCH: f32 = 96.0;

/// An SVG document as a PDF file with one page of its size. Text stays text, in a font that the file carries.
///
/// # Errors
/// The library's words, where the document is none.
pub(super) fn pdf(svg: &str) -> Result<Vec<u8>, String> {
    let page = PageOptions { dpi: UNITS_AN_INCH };
    let mut bytes = svg2pdf::to_pdf(&tree(svg)?, ConversionOptions::default(), page).map_err(|error| error.to_string())?;
    if !bytes.starts_with(WRITTEN) {
        return Err("the library writes another version of PDF".to_owned());
    }
    bytes[..VERSION.len()].copy_from_slice(VERSION);
    Ok(bytes)
}

/// The head of every file that the library writes, whatever the file uses.
const WRITTEN: &[u8] = b"%PDF-1.7";

/// The version of a figure's file, the newest that some journals take. Transparency (1.4), embedded CID fonts (1.3) and compressed streams (1.2) are
/// all that a figure uses.
const VERSION: &[u8] = b"%PDF-1.5";

/// An SVG document. All text is in DejaVu Sans, which the program carries, so that a machine without fonts gives the same picture.
///
/// # Errors
/// The library's words, where the document is none.
fn tree(svg: &str) -> Result<Tree, String> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let options = Options { fontdb: fonts.clone(), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| error.to_string())
}
