//! What results say: tables, fits, figures and the page that holds them all; and the export to the layout of Shallue et al.
//!
//! What lives here reads [`Results`](crate::results::Results), which `others` makes of what others measured; it neither trains nor opens HDF5 files.
//! A figure is data (a [`Chart`]) until it is drawn, and `axes` alone knows of scales; so a new figure is one file in `figures`.

mod answer;
mod axes;
mod budget;
mod chart;
mod claims;
mod confirmations;
pub mod confirmed;
mod critical;
mod estimate;
pub mod exponent;
mod fewer;
mod figures;
pub mod fit;
mod fits;
mod goals;
mod grid;
mod laws;
mod layout;
mod marker;
mod means;
mod others;
mod page;
mod pdf;
mod png;
mod report;
mod shallue;
mod smoothness;
mod studies;
mod summary;
mod table;
mod tables;
mod terminal;
mod timing;
mod tree;
mod values;
mod variances;
mod warnings;
mod work;

pub use chart::Chart;
pub use claims::{Claim, Finding, Verdict, claims, holm};
pub use confirmations::{ConfirmedCell, ConfirmedFit, confirmed_cells, confirmed_fits};
pub use critical::{Critical, Definition, critical};
pub use figures::{Figure, Whole, figures, steps_to_result_plot, whole_curves};
pub use fits::{EnoughTrials, Fitted, NEAR, Shift, fits};
pub use goals::{Bounds, threshold};
pub use grid::Grid;
pub use layout::Style;
pub use others::{read_layout, read_table};
pub use pdf::pdf;
pub use png::png;
pub use report::{LIST, Options, Report, report};
pub use shallue::shallue;
pub use smoothness::{Along, Measured, Smooth, Surface, smoothness};
pub use studies::{StudyResults, gather};
pub use table::Table;
pub use terminal::table;
pub use timing::{Timed, sentences, times};
pub use warnings::{EDGE, FEWEST_TRIALS, share, warnings};
