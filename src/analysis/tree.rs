//! SVG documents as trees of shapes, from which pixels and PDF files are made.

use std::sync::{Arc, OnceLock};

use svg2pdf::usvg::{Options, Tree, fontdb::Database};

/// An SVG document. All text is in DejaVu Sans, which the program carries, so that a machine without fonts gives the same picture.
///
/// # Errors
/// The library's words, where the document is none.
pub fn tree(svg: &str) -> Result<Tree, String> {
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
