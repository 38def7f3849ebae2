//! The section `[pruning]`.

use std::ops::Bound::Included;

use crate::config::key::{Only, flag, key, name};
use crate::config::kind::{Number, Sometimes, Whole};
use crate::config::names::names;
use crate::config::reader::Section;
use crate::config::section::section;

const GRASP: Only = Only { of: "criterion", names: &[CriterionName::Grasp.name()] };

section! {
    /// How the connections are chosen that are removed before training.
    #[derive(Debug, Clone, PartialEq)]
    "pruning" Pruning: Default {
        /// The score by which connections are kept.
        criterion: CriterionName = CriterionName::Snip => name(),
        /// Whether biases, and scales of normalised channels, can be removed.
        biases: BiasPruning = BiasPruning::Prunable => name(),
        /// Whether the positions of kept weights are permuted at random within each layer, and likewise those of kept biases. The layers' densities
        /// stay those of the criterion; which of a layer's connections are kept is left to chance, as in a control of Frankle et al. (ICLR 2021).
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        shuffle: bool = false => flag(),
        /// Whether a pruned network's weights are drawn anew after pruning, by the same rule from other random numbers of the trial's seed. The
        /// kept connections stay those of the criterion and get new values, as in a second control of Frankle et al. (ICLR 2021). Dense networks
        /// keep their weights.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reinitialise: bool = false => flag(),
        /// Training examples that the scores are summed over, the first n; 0: all of them, as in the paper.
        examples: u32 = 0 => key(Whole::or_zero_for("all of them").of("training examples"), "0"),
        /// Temperature of GraSP: it divides logits by this before it scores. The default is that of GraSP's authors' public code.
        #[serde(skip_serializing_if = "Option::is_none")]
        temperature: Option<f64> = None => {
            key(Sometimes { kind: Number::real((Included(1e-3), Included(1e6))), otherwise: Some(Pruning::TEMPERATURE) }, "200").only(GRASP)
        },
    }
}

names! {
    /// Pruning criteria.
    CriterionName {
        /// Connection sensitivity |w · ∂L/∂w| (Lee et al., ICLR 2019).
        Snip = "snip",
        /// A uniformly random subset: the usual control.
        Random = "random",
        /// The weights of largest magnitude at initialisation.
        Magnitude = "magnitude",
        /// Gradient signal preservation w · (H ∂L/∂w) (Wang et al., ICLR 2020).
        Grasp = "grasp",
        /// A random subset of each layer, with the layer densities of an Erdős–Rényi kernel (Evci et al., ICML 2020): those of layers with few
        /// connections are higher.
        Erk = "erk",
        /// Synaptic flow (Tanaka et al., NeurIPS 2020), in 100 rounds and without data.
        Synflow = "synflow",
    }
}
names! {
    /// Whether biases can be pruned.
    BiasPruning {
        /// Biases are scored with the weights; zero at initialisation, they are removed first, as in the authors' public code.
        Prunable = "prunable",
        /// Biases are never removed, and sparsity counts the weights alone.
        Exempt = "exempt",
    }
}

impl Pruning {
    /// The temperature of GraSP's authors' public code.
    pub const TEMPERATURE: f64 = 200.0;
}

/// Reads the section.
pub(crate) fn read(mut section: Section) -> Option<Pruning> {
    let mut draft = Draft::read(&mut section);
    if let (Some(criterion), Some(given)) = (draft.criterion, draft.temperature) {
        if GRASP.includes(criterion.name()) {
            draft.temperature = Some(Some(given.unwrap_or(Pruning::TEMPERATURE)));
        } else if given.is_some() {
            let sentence =
                format!("expected nothing for criterion \"{criterion}\", found a value; remove it, or change the criterion to \"grasp\"");
            section.problem_among("temperature", &[], &sentence);
        }
    }
    draft.complete()
}
