//! The critical batch size by several definitions.

use maud::{Markup, html};

use super::table::interval;
use crate::analysis::statistics::{COVERED, Critical, Definition, Estimate};

/// A row a sparsity and definition, and what the definitions are.
pub fn critical(critical: &[Critical]) -> Markup {
    let found = |one: &Critical| match one.estimate {
        Estimate { value, .. } if value.is_infinite() && one.definition == Definition::Overhead => "beyond those measured".to_owned(),
        estimate => interval(estimate).replace('\n', " "),
    };
    html! {
        p {
            "Definitions differ in what they call critical, so their numbers may differ by more than their 95 % intervals. Those of the first four are of "
            "the fit's bootstrap; that of the noise scale is over trials, and there is none of a single trial. In simulations "
            "with known truth such intervals hold it in " (100.0 * COVERED.0) " to " (100.0 * COVERED.1) " of 100 cases (make coverage)."
        }
        div.wide {
            table.words {
                thead { tr { th { "sparsity" } th { "definition" } th { "critical batch size" } th { "from" } } }
                tbody {
                    @for one in critical {
                        tr { td { (one.sparsity) } td { (one.definition.name()) } td { (found(one)) } td { (one.from) } }
                    }
                }
            }
        }
        details {
            summary { "The definitions" }
            ul {
                @for definition in Definition::ALL.into_iter().filter(|definition| critical.iter().any(|one| one.definition == *definition)) {
                    li { b { (definition.name()) } ": " (definition.source()) "." }
                }
            }
        }
    }
}
