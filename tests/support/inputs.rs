//! Inputs of back ends as the `dps` crate has them: data sets and masks of the fixtures and of noise.

use dps::data::{DataSplit, Dataset, Examples, ImageShape, Normalisation};
use dps::pruning::{BiasPruning, Mask};

use super::fixture::{Biases, Cut, Fixture};
use super::noise;

/// A data set whose training, validation and test sets are all of these examples.
pub fn of_examples(all: Examples, classes: usize, normalisation: Vec<Normalisation>) -> Dataset {
    Dataset {
        // Nothing that a back end computes depends on the name.
        name: "made up".into(),
        shape: all.shape,
        classes,
        training: all.clone(),
        validation: all.clone(),
        test: all,
        normalisation,
        digest: String::new(),
        particulars: Default::default(),
    }
}

/// The fixture's batches of `size` examples with these image seeds, in order, as training, validation and test set.
pub fn of_batches(fixture: &Fixture, seeds: impl IntoIterator<Item = u32>, size: usize) -> Dataset {
    let (images, labels): (Vec<Vec<u8>>, Vec<Vec<u16>>) = seeds.into_iter().map(|seed| fixture.images(seed, size)).unzip();
    let shape = ImageShape { height: fixture.image.height, width: fixture.image.width, channels: fixture.image.channels };
    let normalisation = fixture.image.mean.iter().zip(&fixture.image.std).map(|(&mean, &std)| Normalisation { mean, std }).collect();
    of_examples(Examples { images: images.concat().into(), labels: labels.concat(), shape }, 10, normalisation)
}

/// Random images of ten classes: `count` of them of which a part is for validation, and 10 for testing.
pub fn of_noise(shape: ImageShape, count: usize, validation_fraction: f64) -> Dataset {
    let examples = |seed: u32, count: usize| Examples {
        images: noise::image_bytes(seed, count * shape.values()).into(),
        labels: noise::labels(seed, count),
        shape,
    };
    let split = DataSplit { validation_fraction, ..DataSplit::default() };
    Dataset::new("random", 10, examples(31, count), examples(32, 10), &split).unwrap()
}

/// The mask that keeps the flagged parameters.
pub fn mask(kept: &[bool]) -> Mask {
    Mask::Sparse { kept: (0..kept.len() as u32).filter(|&index| kept[index as usize]).collect(), parameters: kept.len() }
}

/// The dense mask of so many parameters, or the mask of the fixtures' masked networks.
pub fn fixture_mask(masked: bool, parameters: usize) -> Mask {
    if masked { mask(&noise::mask(parameters)) } else { Mask::Dense(parameters) }
}

/// Whether a cut's biases can be removed.
pub fn biases(cut: &Cut) -> BiasPruning {
    match cut.biases {
        Biases::Included => BiasPruning::Prunable,
        Biases::Exempt => BiasPruning::Exempt,
    }
}

/// Checks that a mask keeps what PyTorch's cut keeps.
pub fn assert_cut(cut: &Cut, mask: &Mask, what: &str) {
    let Mask::Sparse { kept, parameters } = mask else { panic!("a sparse mask") };
    let flags: Vec<bool> = (0..*parameters as u32).map(|index| kept.binary_search(&index).is_ok()).collect();
    assert_eq!(cut.difference(&flags), None, "{what}");
}

/// The largest difference, as a share of the largest expected value; NaN where a difference is.
pub fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |most, value| most.max(value.abs())).max(1e-20);
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    off.fold(0.0_f32, |most, off| if most.is_nan() || most >= off { most } else { off }) / largest
}
