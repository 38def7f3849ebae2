//! The section `[data]`.

use std::ops::Bound::Included;

use super::choice::DatasetChoice;
use crate::config::key::{key, name};
use crate::config::kind::{Number, OneOf, Seed, Sometimes};
use crate::config::names::names;
use crate::config::reader::Section;
use crate::config::section::section;

section! {
    /// How the training file becomes a training and a validation set, and the training set a stream of batches.
    #[derive(Debug, Clone, PartialEq)]
    "data" DataSplit: Default {
        /// Share of the training file that is held out for validation.
        validation_fraction: f64 = 0.1 => key(Number::fraction((Included(1e-6), Included(1.0 - 1e-6))), "0.1"),
        /// Seed of the draw of that share, the same for all trials.
        split_seed: u64 = 0 => key(Seed, "0"),
        /// The order in which trials see the training set.
        order: DataOrder = DataOrder::PerTrial => name(),
        /// Where the files of the data set come from.
        source: DataSource = DataSource::Original => name(),
        /// Where the channels of your own images are. Without it they are last, and images that look as if they were first are refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        layout: Option<DataLayout> = None => key(Sometimes { kind: OneOf::any(), otherwise: None }, "\"channels-first\""),
    }
}

names! {
    /// The order in which trials see the training set.
    DataOrder {
        /// Each trial in an order of its own, drawn by its number.
        PerTrial = "per-trial",
        /// All trials in the same order, as in the authors' public code.
        Shared = "shared",
    }
}
names! {
    /// Where the files of a data set come from.
    DataSource {
        /// The publisher's files: every file must be the original, byte by byte.
        Original = "original",
        /// Your own in the same format, such as images encoded anew: no file is compared with an original.
        Own = "own",
    }
}
names! {
    /// Where the channels of images are.
    DataLayout {
        /// `[n][rows][columns][channels]`, as TensorFlow and Keras have them.
        ChannelsLast = "channels-last",
        /// `[n][channels][rows][columns]`, as PyTorch has them.
        ChannelsFirst = "channels-first",
    }
}

/// Reads the section of a study of `dataset`, where that is known.
pub(crate) fn read(mut section: Section, dataset: Option<&DatasetChoice>) -> Option<DataSplit> {
    let draft = Draft::read(&mut section);
    if let (Some(DatasetChoice::Named(name)), Some(Some(_))) = (dataset, draft.layout) {
        let sentence = format!("expected nothing for {name}, whose layout is known, found a value; remove it");
        section.problem_among("layout", &[], &sentence);
    }
    draft.complete()
}
