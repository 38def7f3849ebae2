//! A study with all that was computed of it, from which every part of the report is written.

use super::warnings::Warning;
use crate::analysis::claims::Finding;
use crate::analysis::figures::Figure;
use crate::analysis::statistics::{ConfirmedCell, ConfirmedFit, Critical, Fitted, Smooth, Timed};
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
