//! Figures as pixels.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

/// Pixels of a picture at most, at 4 bytes each in memory; larger figures are made smaller.
const MOST_PIXELS: f32 = 3e7;

/// An SVG document as a PNG file of its own size. All text is in DejaVu Sans, which the program carries, so that a machine without
/// fonts gives the same picture.
///
/// # Errors
/// The libraries' words, where the document is none or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let options = Options { fontdb: fonts.clone(), font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = (MOST_PIXELS / (width * height)).sqrt().min(1.0);
    let pixels = |length: f32| (length * scale).round().max(1.0) as u32;
    let mut pixels = Pixmap::new(pixels(width), pixels(height)).ok_or("the picture is too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
