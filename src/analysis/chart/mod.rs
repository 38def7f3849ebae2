//! A figure as data, and how it is drawn as SVG and, with the feature `pictures`, as PDF and PNG.
//!
//! `parts` is what a chart is made of; `axes` alone knows of scales, `layout` of sizes, `svg` of tags. Nothing here knows what is measured: studies,
//! fits and tables are above it.

mod axes;
mod drawing;
mod formats;
mod layout;
mod marker;
mod parts;
#[cfg(feature = "pictures")]
mod pictures;
mod svg;

pub use axes::{Axis, Scale, power};
pub use formats::{FORMATS, Format};
pub use layout::{Style, Width};
pub use marker::{Marker, Series};
pub use parts::{Chart, Dot, Element, Entry, Panel, Path, Stroke, Tile};
pub use svg::{Colour, GREY};
