//! A study with what was made of it: what every part of the report is written from.

use crate::analysis::claims::Finding;
use crate::analysis::figures::Figure;
use crate::analysis::statistics::{ConfirmedCell, ConfirmedFit, Critical, Fitted, Smooth, Timed};
use crate::analysis::studies::StudyResults;

/// A study with what was made of it.
pub struct Section<'a> {
    /// The study.
    pub study: &'a StudyResults,
    /// The study's fits.
    pub fits: &'a [Fitted],
    /// The study's confirmed cells.
    pub confirmed: Vec<ConfirmedCell>,
    /// The fits of these.
    pub confirmed_fits: Vec<ConfirmedFit>,
    /// What it says of the paper's claims.
    pub claims: Vec<Finding>,
    /// What was measured along its training.
    pub smoothness: Vec<Smooth>,
    /// The study's critical batch sizes by several definitions.
    pub critical: Vec<Critical>,
    /// How long its best trials take.
    pub times: Vec<Timed>,
    /// The study's figures.
    pub figures: Vec<Drawn>,
    /// The study's warnings.
    pub warnings: Vec<String>,
    /// What it says in three sentences.
    pub answer: Vec<String>,
}

/// A figure as it was drawn.
pub struct Drawn {
    /// What it is.
    pub figure: Figure,
    /// The name of its files, without their kind.
    pub name: String,
    /// The figure's SVG document.
    pub svg: String,
}
