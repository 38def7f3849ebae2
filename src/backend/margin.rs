//! The margin by which an example is classified, and how margins travel between ranks.

/// Examples that an evaluation looks at before it asks whether it is decided.
pub const EVALUATION_BLOCK: usize = 50;

/// The margin of an example as [`Backend::margins`](super::Backend::margins) says it.
pub(super) fn margin(logits: &[f32], label: usize) -> f32 {
    // The first of equal logits is the prediction, as in TensorFlow and PyTorch; where one is no number, there is none.
    let own = logits[label];
    let right = logits.iter().enumerate().all(|(class, &value)| if class < label { value < own } else { value <= own });
    let others = logits.iter().enumerate().filter(|(class, _)| *class != label).map(|(_, &value)| value);
    let distance = (own - others.fold(f32::NEG_INFINITY, f32::max)).abs();
    let distance = if distance.is_nan() { f32::INFINITY } else { distance };
    if right { distance } else { -distance }
}

/// Words of 64 bits in which a block of margins travels between ranks: two margins a word.
pub(super) const WORDS: usize = EVALUATION_BLOCK.div_ceil(2);

/// Appends a block, or the shorter last one, as [`WORDS`] words.
pub(super) fn send(margins: &[f32], words: &mut Vec<u64>) {
    let end = words.len() + WORDS;
    words.extend(margins.chunks(2).map(|pair| pair.iter().rev().fold(0, |word, margin| word << 32 | u64::from(margin.to_bits()))));
    words.resize(end, 0);
}

/// The block that [`send`] made words of.
pub(super) fn receive(words: &[u64], margins: &mut [f32]) {
    for (pair, word) in margins.chunks_mut(2).zip(words) {
        for (place, margin) in pair.iter_mut().enumerate() {
            *margin = f32::from_bits((word >> (32 * place)) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_says_what_is_wrong_and_the_size_by_how_much() {
        assert_eq!(margin(&[1.0, 4.0, 2.5], 1), 1.5);
        assert_eq!(margin(&[1.0, 4.0, 2.5], 2), -1.5);
        // Where logits are equal, the first is the prediction.
        assert!(margin(&[2.0, 2.0], 0).is_sign_positive() && margin(&[2.0, 2.0], 1).is_sign_negative());
        assert!(
            margin(&[f32::INFINITY, f32::INFINITY], 0) == f32::INFINITY && margin(&[f32::INFINITY, f32::INFINITY], 1) == f32::NEG_INFINITY
        );
        // A NaN anywhere is an error.
        for logits in [[f32::NAN, 0.0], [0.0, f32::NAN]] {
            assert!((0..2).all(|label| margin(&logits, label).is_sign_negative()), "{logits:?}");
        }
        assert_eq!(margin(&[0.0, f32::NEG_INFINITY, f32::NAN], 1), f32::NEG_INFINITY);
    }

    #[test]
    fn blocks_return_bit_for_bit() {
        for length in [1, 2, EVALUATION_BLOCK - 1, EVALUATION_BLOCK] {
            let block: Vec<f32> = (0..length).map(|i| [-0.0, f32::NEG_INFINITY, 0.1, -3.5][i % 4]).collect();
            let (mut words, mut found) = (vec![7], vec![1.0; length]);
            send(&block, &mut words);
            receive(&words[1..], &mut found);
            assert_eq!(words.len(), 1 + WORDS);
            assert!(found.iter().zip(&block).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}
