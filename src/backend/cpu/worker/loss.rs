//! Softmax and cross-entropy.

use std::ops::Range;

use super::room::Worker;

/// Adds the losses of some images to `loss`, and writes the gradient of their logits, which are divided by `temperature`. Logits that are there for
/// whole vectors alone take no part.
pub(super) fn softmax_cross_entropy(worker: &mut Worker, images: Range<usize>, temperature: f32, mut loss: f32) -> f32 {
    let (classes, stride) = (worker.space.network.classes, worker.logits_stride);
    for image in images {
        let logits = &mut worker.space.logits[image * stride..][..classes];
        logits.iter_mut().for_each(|logit| *logit /= temperature);
        let gradient = &mut worker.space.logit_gradients[image * stride..][..classes];
        let label = usize::from(worker.labels[image]);
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for (to, &mut logit) in gradient.iter_mut().zip(&mut *logits) {
            // libm's functions are the same on every machine; the system's are not.
            *to = libm::expf(logit - largest);
            sum += *to;
        }
        for to in gradient.iter_mut() {
            *to /= sum;
        }
        gradient[label] -= 1.0;
        gradient.iter_mut().for_each(|to| *to /= temperature);
        loss += libm::logf(sum) + largest - logits[label];
    }
    loss
}
