//! Records of a fixed number of words, in which ranks tell each other of the lanes that they train.

use crate::records::Measurement;

/// A record that ranks exchange as `COUNT` words of 64 bits.
pub trait Words<const COUNT: usize>: Sized {
    /// The record as words.
    fn words(&self) -> [u64; COUNT];

    /// The record of such words.
    fn from_words(words: [u64; COUNT]) -> Self;
}

/// Record of a trial's mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskFacts {
    /// Parameters kept.
    pub kept: u32,
    /// The mask's hash.
    pub hash: u64,
    /// Layers of which no weight is kept.
    pub dead_layers: u32,
}

impl Words<3> for MaskFacts {
    fn words(&self) -> [u64; 3] {
        [self.kept.into(), self.hash, self.dead_layers.into()]
    }

    fn from_words([kept, hash, dead_layers]: [u64; 3]) -> Self {
        MaskFacts { kept: kept as u32, hash, dead_layers: dead_layers as u32 }
    }
}

/// Outcome of a lane's evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The lane's loss was NaN or infinite in an earlier step; the lane was not evaluated.
    Broken {
        /// The step with that loss (from 0), which was not taken.
        step: u32,
    },
    /// The lane was evaluated on the validation set.
    Evaluated {
        /// Mean training loss over the batch of its last step.
        loss: f32,
        /// Examples classified wrongly among those seen.
        errors: u32,
        /// Examples seen.
        examples: u32,
    },
}

impl Words<4> for Outcome {
    fn words(&self) -> [u64; 4] {
        match *self {
            Outcome::Broken { step } => [0, step.into(), 0, 0],
            Outcome::Evaluated { loss, errors, examples } => [1, loss.to_bits().into(), errors.into(), examples.into()],
        }
    }

    fn from_words(words: [u64; 4]) -> Self {
        match words.map(|word| word as u32) {
            [0, step, ..] => Outcome::Broken { step },
            [_, loss, errors, examples] => Outcome::Evaluated { loss: f32::from_bits(loss), errors, examples },
        }
    }
}

/// A measurement, or none where the lane has broken. The first word says which.
impl Words<6> for Option<Measurement> {
    fn words(&self) -> [u64; 6] {
        let Some(Measurement { step, loss, gradient_norm, squared_norms, lipschitz }) = *self else { return [0; 6] };
        // A Lipschitz constant is finite where there is one.
        let [loss, gradient_norm, squared_norms, lipschitz] =
            [loss, gradient_norm, squared_norms, lipschitz.unwrap_or(f64::NAN)].map(f64::to_bits);
        [1, step.into(), loss, gradient_norm, squared_norms, lipschitz]
    }

    fn from_words([is_some, step, values @ ..]: [u64; 6]) -> Self {
        let [loss, gradient_norm, squared_norms, lipschitz] = values.map(f64::from_bits);
        let lipschitz = Some(lipschitz).filter(|lipschitz| lipschitz.is_finite());
        (is_some == 1).then_some(Measurement { step: step as u32, loss, gradient_norm, squared_norms, lipschitz })
    }
}

/// A count.
impl Words<1> for u32 {
    fn words(&self) -> [u64; 1] {
        [(*self).into()]
    }

    fn from_words([count]: [u64; 1]) -> Self {
        count as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record after it was sent.
    fn sent<R: Words<COUNT>, const COUNT: usize>(record: R) -> R {
        R::from_words(record.words())
    }

    #[test]
    fn every_record_is_received_as_it_was_sent() {
        let facts = MaskFacts { kept: 7, hash: u64::MAX - 3, dead_layers: 2 };
        assert_eq!(sent(facts), facts);
        for step in [0, 9, u32::MAX] {
            assert_eq!(sent(Outcome::Broken { step }), Outcome::Broken { step });
        }
        for loss in [0.0, -0.0, 1.5, f32::MIN_POSITIVE / 2.0] {
            let outcome = Outcome::Evaluated { loss, errors: 0, examples: u32::MAX };
            assert_eq!(sent(outcome), outcome);
        }
        assert_eq!(sent(None::<Measurement>), None);
        for lipschitz in [None, Some(0.0), Some(f64::MAX)] {
            let measurement = Measurement { step: 0, loss: f64::INFINITY, gradient_norm: 0.1, squared_norms: -0.0, lipschitz };
            assert_eq!(sent(Some(measurement)), Some(measurement));
        }
        assert_eq!(sent(u32::MAX), u32::MAX);
    }
}
