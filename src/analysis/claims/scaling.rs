//! How steps-to-result scale with the batch size.

use super::claim::{Claim, PAPERS_BATCH_SIZES};
use super::finding::{Finding, Said, Tails, fitted, words};
use crate::analysis::statistics::{Fitted, LINEAR_EXPONENTS, curvature};
use crate::readable::count;

/// The three regimes at each sparsity.
pub fn findings(fits: &[Fitted]) -> Vec<Finding> {
    let claims = [Claim::Linear, Claim::Diminishing, Claim::Maximal];
    let each = |of: &Fitted| claims.map(|claim| Finding::new(claim, of.sparsity, regime(claim, of)));
    fits.iter().flat_map(each).collect()
}

fn regime(claim: Claim, of: &Fitted) -> Said {
    let (fit, points) = (fitted(of)?, &of.points);
    let sizes: Vec<f64> = points.iter().map(|point| point.batch_size).collect();
    let (smallest, largest) = (sizes.first().copied().unwrap_or(1.0), sizes.last().copied().unwrap_or(1.0));
    let (last_linear, first_maximal) = fit.borders();
    let (low, high) = (f64::from(PAPERS_BATCH_SIZES.0), f64::from(PAPERS_BATCH_SIZES.1));
    let tails = Tails(fit.freedom);
    // An exponent and a curvature take three numbers from the points.
    let of_three = Tails(points.len().saturating_sub(3));
    // The doubt, where the batch size `size` (the paper's smallest or largest) was measured; otherwise 1, which decides nothing.
    let where_measured = |size: f64, doubt: f64| if sizes.contains(&size) { doubt } else { 1.0 };
    let (holds, fails, measured) = match claim {
        Claim::Linear => {
            let shown = match of.exponent {
                None => "not known of fewer than 4 batch sizes".to_owned(),
                Some(any) if any.low == 0.0 && any.high.is_infinite() => "not determined".to_owned(),
                Some(exponent) => words(exponent),
            };
            let measured =
                format!("linear below {}; smallest batch size measured: {}; exponent {shown}", words(last_linear), count(smallest as u64));
            let (few, many) = LINEAR_EXPONENTS;
            let is_linear = of.exponent.map_or(1.0, |exponent| of_three.above(exponent, few).max(of_three.below(exponent, many)));
            let is_not = of.exponent.map_or(1.0, |exponent| of_three.below(exponent, few).min(of_three.above(exponent, many)));
            (tails.above(last_linear, smallest).max(is_linear), where_measured(low, tails.below(last_linear, low)).min(is_not), measured)
        }
        Claim::Maximal => {
            let measured = format!("maximal above {}; largest batch size measured: {}", words(first_maximal), count(largest as u64));
            (tails.below(first_maximal, largest), where_measured(high, tails.above(first_maximal, high)), measured)
        }
        _ => {
            let inside = |size: &f64| tails.below(last_linear, *size).max(tails.above(first_maximal, *size));
            let outside = |size: &f64| tails.above(last_linear, *size).min(tails.below(first_maximal, *size));
            let curved = curvature(points);
            let measured = format!(
                "critical batch size {}; steps scatter by {:.1} % about the fit; curvature {}",
                words(fit.critical),
                100.0 * fit.deviation,
                curved.map_or("not known of fewer than 4 batch sizes".to_owned(), words)
            );
            let holds = sizes.iter().map(inside).fold(1.0, f64::min).max(curved.map_or(1.0, |curved| of_three.above(curved, 0.0)));
            let all_outside = sizes.iter().map(outside).fold(0.0, f64::max);
            (holds, where_measured(low, where_measured(high, all_outside)), measured)
        }
    };
    Ok((measured, holds, fails))
}
