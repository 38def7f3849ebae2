//! Facts of a data set, and the share of it that validates.

use super::ImageShape;

/// Facts of a data set that are known before its images are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Extents of its images.
    pub shape: ImageShape,
    /// Bytes of each of their values.
    pub value_bytes: usize,
    /// Number of classes.
    pub classes: usize,
    /// Examples of the training file.
    pub training: usize,
    /// Examples of a validation set of the data's own; without one it is a share of the training file.
    pub own_validation: Option<usize>,
    /// Examples of the test file; 0 where there is none.
    pub test: usize,
}

impl Facts {
    /// Checks that a split leaves training and validation examples; or says what it leaves.
    pub(crate) fn check_split(&self, validation_fraction: f64) -> std::result::Result<(), String> {
        if self.own_validation.is_some() {
            return Ok(());
        }
        let n = u32::try_from(self.training).map_err(|_| format!("expected fewer than 2³² examples, found {}", self.training))?;
        held_out(validation_fraction, n).map(|_| ())
    }

    /// Validation examples, where that fraction of the training file is held out if there are none of the data's own.
    pub fn validation(&self, fraction: f64) -> usize {
        self.own_validation.unwrap_or_else(|| self.held_out(fraction))
    }

    /// Examples of the training file that become validation examples.
    pub fn held_out(&self, fraction: f64) -> usize {
        if self.own_validation.is_some() { 0 } else { (fraction * self.training as f64).round() as usize }
    }

    /// Examples of all files.
    pub fn examples(&self) -> usize {
        self.training + self.own_validation.unwrap_or(0) + self.test
    }

    /// Bytes of so many examples in memory, with a label each.
    pub fn bytes(&self, examples: usize) -> u64 {
        (examples * (self.shape.values() * self.value_bytes + 2)) as u64
    }
}

/// The validation examples among the `n` of a training file.
///
/// # Errors
/// Why there is no training or no validation example.
pub(super) fn held_out(fraction: f64, n: u32) -> std::result::Result<u32, String> {
    let held_out = (fraction * f64::from(n)).round();
    if !(held_out >= 1.0 && held_out < f64::from(n)) {
        return Err(format!(
            "expected at least one training and one validation example, but validation_fraction = {fraction} of the {n} examples of the training file \
             is {held_out} of them; choose another data.validation_fraction, or give more examples"
        ));
    }
    Ok(held_out as u32)
}
