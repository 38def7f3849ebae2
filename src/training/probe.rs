//! Smoothness along a trial's training: which trials are measured, when, and what is measured where a lane is.

use crate::Result;
use crate::backend::Backend;
use crate::pruning::Mask;
use crate::records::Measurement;
use crate::settings::{Smoothness, first_of};

/// Which trials are measured, when and how.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    settings: Smoothness,
    /// Training examples that are measured on.
    examples: usize,
}

impl Probe {
    /// The probe of these settings for a training set of `training_examples`.
    pub fn new(settings: &Smoothness, training_examples: usize) -> Probe {
        Probe { settings: *settings, examples: first_of(settings.examples, training_examples as u64) as usize }
    }

    /// Whether a trial is measured at all.
    pub fn measures(&self, trial: usize) -> bool {
        (trial as u64) < first_of(self.settings.trials, u64::MAX)
    }

    /// Whether the step that follows `step` steps is measured: it ends at a multiple of the settings' steps, or it is the first one and asked for.
    pub fn is_due(&self, step: u32) -> bool {
        step % self.settings.every == self.settings.every - 1 || self.settings.start && step == 0
    }

    /// Where steps taken in one go from `step` to `end` must pause: a measured step is taken alone.
    pub fn pause(&self, step: u32, end: u32) -> u32 {
        let every = self.settings.every;
        if self.is_due(step) { step + 1 } else { (step - step % every).saturating_add(every - 1).min(end) }
    }

    /// How often [`Probe::measure`] asks whether to go on, at most: before each pass over the examples but the first.
    pub fn votes(&self) -> usize {
        self.compared() as usize + 1
    }

    /// Points of a step that its start is compared with.
    fn compared(&self) -> u32 {
        self.settings.points - u32::from(!self.settings.whole_step)
    }

    /// Measures at `weights`, whose masked ones are zero, after `step` steps; `next` are the weights one step later, where a step follows.
    /// `go_on` is asked between passes over the examples.
    ///
    /// The gradient's Lipschitz constant along the step d is the largest ‖∇f(w + γd) − ∇f(w)‖ / ‖γd‖ over γ = 1/points … 1 (Lee et al., ICLR
    /// 2021, equation 11; Zhang et al., ICLR 2020), or without γ = 1 where the settings leave it out. Weights are single precision, so w + γd is
    /// rounded, and the distance taken is the one to the rounded point.
    ///
    /// # Errors
    /// The error of `go_on`, or the device's.
    pub fn measure(
        &self,
        backend: &mut impl Backend,
        step: u32,
        weights: &[f32],
        next: Option<&[f32]>,
        mask: &Mask,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Measurement> {
        let count = self.examples.max(1) as f64;
        let (here, loss) = backend.gradient(weights, self.examples)?;
        let mut greatest = f64::NEG_INFINITY;
        for point in (1..=self.compared()).filter(|_| next.is_some()) {
            let share = f64::from(point) / f64::from(self.settings.points);
            let moved = |(&w, &to): (&f32, &f32)| (f64::from(w) + share * (f64::from(to) - f64::from(w))) as f32;
            let there: Vec<f32> = weights.iter().zip(next.unwrap_or(weights)).map(moved).collect();
            go_on()?;
            let (gradient, _) = backend.gradient(&there, self.examples)?;
            let moved_by = distance(&there, weights, mask);
            // So near that all weights were rounded to where they are.
            if moved_by == 0.0 {
                continue;
            }
            let ratio = distance(&gradient, &here, mask) / count / moved_by;
            // A NaN is kept.
            greatest = if greatest.is_nan() || ratio <= greatest { greatest } else { ratio };
        }
        go_on()?;
        let squares = backend.squared_norms(weights, mask, self.examples)?;
        Ok(Measurement {
            step,
            loss: f64::from(loss) / count,
            gradient_norm: norm(&here, mask) / count,
            squared_norms: squares / count,
            lipschitz: Some(greatest).filter(|greatest| greatest.is_finite()),
        })
    }
}

/// ‖mask · a‖.
fn norm(a: &[f32], mask: &Mask) -> f64 {
    over(mask, |index| f64::from(a[index]))
}

/// ‖mask · (a − b)‖.
fn distance(a: &[f32], b: &[f32], mask: &Mask) -> f64 {
    over(mask, |index| f64::from(a[index]) - f64::from(b[index]))
}

/// The norm of what is kept, in the order of indices.
fn over(mask: &Mask, value: impl Fn(usize) -> f64) -> f64 {
    let square = |index: usize| value(index) * value(index);
    let squares: f64 = match mask {
        Mask::Dense(parameters) => (0..*parameters).map(square).sum(),
        Mask::Sparse { kept, .. } => kept.iter().map(|&index| square(index as usize)).sum(),
    };
    squares.sqrt()
}
