//! A study with all that was computed of it, from which every part of the report is written.

use super::warnings::Warning;
use crate::analysis::claims::Finding;
use crate::analysis::figures::Figure;
use crate::analysis::statistics::{ConfirmedCell, ConfirmedFit, Critical, Estimate, Fitted, Smooth, Timed};
use crate::analysis::studies::StudyResults;

/// A study with all that was computed of it.
pub struct Section<'a> {
    /// The study.
    pub study: &'a StudyResults,
    /// The study's fits.
    pub fits: &'a [Fitted],
    /// The study's confirmed cells.
    pub confirmed: Vec<ConfirmedCell>,
    /// Fits of the confirmed cells.
    pub confirmed_fits: Vec<ConfirmedFit>,
    /// The study beside the one that it is a control of.
    pub control: Option<Control<'a>>,
    /// The study's verdicts on the paper's claims.
    pub claims: Vec<Finding>,
    /// The loss surface along the study's trainings.
    pub smoothness: Vec<Smooth>,
    /// The study's critical batch sizes by several definitions.
    pub critical: Vec<Critical>,
    /// Times of the study's best trials.
    pub times: Vec<Timed>,
    /// The study's figures.
    pub figures: Vec<Drawn>,
    /// The study's warnings.
    pub warnings: Vec<Warning>,
    /// The study's answer in three sentences.
    pub answer: Answer,
}

/// The confirmed steps of a study beside those of another, from which it differs by its pruning alone.
pub struct Control<'a> {
    /// The other study.
    pub original: &'a StudyResults,
    /// Each cell, then each sparsity by the laws fitted to both studies.
    pub rows: Vec<ControlRow>,
}

/// A cell, or all cells of a sparsity, beside those of the other study and beside its dense network.
pub struct ControlRow {
    /// Batch size in examples; none of all cells.
    pub batch_size: Option<u32>,
    /// Fraction of parameters removed.
    pub sparsity: f64,
    /// Confirmed steps over those of the other study, and over those of its dense network; none where that has none.
    pub steps: [Option<Estimate>; 2],
    /// The critical batch size over that of the other study, and over that of its dense network; none of a cell.
    pub critical: [Option<Estimate>; 2],
}

/// A figure as it was drawn.
pub struct Drawn {
    /// The figure as data.
    pub figure: Figure,
    /// The name of its files, without their kind.
    pub name: String,
    /// The figure's SVG document.
    pub svg: String,
    /// The figure for a small screen, or for a column of paper.
    pub narrow: String,
}

/// A study's answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The three sentences; none of a study without fits.
    pub sentences: Vec<String>,
    /// How a sceptic checks each sentence: a command, the file's digest, and what the numbers took.
    pub checks: Vec<String>,
    /// The command that mends the weakest point.
    pub next: Option<String>,
}
