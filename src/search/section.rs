//! The section `[search]`.

use std::ops::Bound::Unbounded;

use serde::Serialize;

use crate::config::key::{Key, SectionHelp, key, name};
use crate::config::kind::{Kind, Number, Whole};
use crate::config::names::names;
use crate::config::reader::Section;
use crate::optimizer::{ByMetaparameter, Metaparameter, OptimizerName, Scale, ScheduleName, Setting};

/// Each trial draws its metaparameters from these ranges. A number in place of a range fixes one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    /// Direction numbers of the Sobol sequence.
    pub sobol: SobolNumbers,
    /// The number of the first trial.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_trial: u32,
    /// The metaparameters that the study has.
    #[serde(flatten)]
    pub settings: ByMetaparameter<Setting>,
}

names! {
    /// Direction numbers of the Sobol sequence.
    SobolNumbers {
        /// Bratley and Fox (1988), as in the authors' public code.
        BratleyFox = "bratley-fox",
        /// Joe and Kuo (2008), D6.
        JoeKuo = "joe-kuo",
    }
}

fn sobol() -> Key<impl Kind<Value = SobolNumbers>> {
    Key::new("search", "sobol", "Direction numbers of the Sobol sequence.", Some(SobolNumbers::BratleyFox), name())
}

/// Trials that a study may leave out at most: all Sobol points before the first are computed.
const MOST_LEFT_OUT: u32 = 1_000_000;

fn first_trial() -> Key<impl Kind<Value = u32>> {
    let meaning = "The number of the first trial. A trial's number decides its Sobol point and its seeds: with 100, a study of 100 trials measures a second \
                   hundred, which dps-train merge joins with the first.";
    Key::new("search", "first_trial", meaning, Some(0), key(Whole::between(0, MOST_LEFT_OUT), "100"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// All that is said of the section, its keys, and the keys of a range.
pub(crate) fn help() -> SectionHelp {
    let any = || Number::real((Unbounded, Unbounded));
    let scale = "How a number u of the Sobol sequence, from 0 to 1, becomes a value of the range.";
    let of_range = [
        Key::new("search", "*.min", "Lower limit of a range.", None, key(any(), "1e-4")).help(),
        Key::new("search", "*.max", "Upper limit of a range.", None, key(any(), "1.0")).help(),
        Key::new("search", "*.scale", scale, None, name::<Scale>()).help(),
    ];
    let metaparameters = Metaparameter::ALL.iter().map(|name| name.key().help());
    SectionHelp {
        name: "search",
        meaning: "Each trial draws its metaparameters from these ranges. A number in place of a range fixes one.".to_owned(),
        is_optional: false,
        keys: [sobol().help(), first_trial().help()].into_iter().chain(metaparameters).chain(of_range).collect(),
    }
}

/// Reads the section; `optimizer` and `schedule` are `None` where the workload leaves them in doubt.
pub(crate) fn read(mut section: Section, optimizer: Option<OptimizerName>, schedule: Option<ScheduleName>) -> Option<Search> {
    let of = |key: &str| match key {
        "optimizer" => optimizer.map(OptimizerName::name),
        _ => schedule.map(ScheduleName::name),
    };
    let sobol = sobol().read(&mut section);
    let first_trial = first_trial().read(&mut section);
    let mut settings = Some(ByMetaparameter::default());
    for name in Metaparameter::ALL {
        let given = name.key().read(&mut section);
        name.key().agree(&mut section, &given, of);
        let default = || name.default(optimizer?, schedule?);
        settings = settings.zip(given).map(|(mut settings, given)| {
            settings.set(name, given.or_else(default));
            settings
        });
    }
    Some(Search { sobol: sobol?, first_trial: first_trial?, settings: settings? })
}
