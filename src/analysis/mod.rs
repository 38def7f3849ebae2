//! Analyses of results: tables, fits, figures and the page that holds them all; and the export to the layout of Shallue et al.
//!
//! The module reads [`Results`](crate::results::Results), which `others` makes of what others measured; it neither trains nor opens HDF5 files.
//! Seven rooms, each of which imports only rooms before it in this list (`tests/architecture.rs` holds it):
//!
//! - `studies`: files put together to studies;
//! - `statistics`: what is computed of studies;
//! - `chart`: a figure as data, and its drawing;
//! - `figures`: what each figure shows, a file a figure;
//! - `claims`: what a study says of the paper's claims;
//! - `others`: what other programs measured, and the export to their layout;
//! - `report`: the page, the tables, the page in Markdown and the terminal's tables.

mod chart;
mod claims;
mod figures;
mod others;
mod report;
mod statistics;
mod studies;

pub use chart::{Chart, FORMATS, Format, Style, Width};
pub use claims::{Claim, Finding, Verdict, claims, holm};
pub use figures::{Figure, Whole, figures, steps_to_result_plot, whole_curves};
pub use others::{read_layout, read_table, shallue};
pub use report::{Answer, LIST, Options, Report, Table, Warning, claims_page, refuse_foreign_claims, report, table, values, warnings};
pub use statistics::{
    Along, Bounds, ConfirmedCell, ConfirmedFit, Critical, Definition, EDGE, EnoughTrials, Fitted, NEAR, Shift, Smooth, Surface, Timed,
    confirmed, confirmed_cells, confirmed_fits, critical, exponent, fit, fits, measured_points, sentences, share, smoothness, threshold,
    times,
};
pub use studies::{Grid, StudyResults, gather};
