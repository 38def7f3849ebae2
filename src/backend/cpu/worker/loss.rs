//! Softmax and cross-entropy.

use std::ops::Range;

use super::pass::Pass;

/// Adds the losses of some images to the pass's, and writes the gradient of their logits. Logits that are there for whole vectors alone take no part.
pub(super) fn softmax_cross_entropy(pass: &mut Pass, images: Range<usize>) {
    let worker = &mut *pass.worker;
    let (classes, stride) = (worker.network.classes, worker.logits_stride);
    for image in images {
        let logits = &mut worker.logits[image * stride..][..classes];
        logits.iter_mut().for_each(|logit| *logit /= pass.temperature);
        let gradient = &mut worker.logit_gradients[image * stride..][..classes];
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
        gradient.iter_mut().for_each(|to| *to /= pass.temperature);
        pass.loss += libm::logf(sum) + largest - logits[label];
    }
}
