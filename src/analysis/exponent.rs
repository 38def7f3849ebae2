//! Whether steps fall in proportion to the batch size: the law K ≈ c1/B^a + c2 with an exponent a that is fitted too. The paper's law has a = 1.

use super::fit::{Estimate, least_squares, student};

/// Points that are needed: one more than the law has parameters.
const FEWEST_POINTS: usize = 4;

/// Exponents that are tried: from one to the other, in so many steps. Between two of them the squares have one minimum at most.
const TRIED: (f64, f64, usize) = (0.1, 4.0, 39);

/// The exponent of (batch size, K*) points of one sparsity, by least squares of log K. None where fewer than four batch sizes were measured.
///
/// Its interval has the exponents whose least squares are at most (1 + t²/(n − 3)) times the least of all, with the 97.5th percentile t of Student's
/// distribution of n − 3 degrees of freedom: the profile likelihood of a normal scatter of log K. A limit that is not within 0.1 to 4 is 0 or ∞.
pub fn exponent(measured: &[(u32, u32)]) -> Option<Estimate> {
    let mut sizes: Vec<u32> = measured.iter().map(|point| point.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < FEWEST_POINTS {
        return None;
    }
    let logs: Vec<f64> = measured.iter().map(|point| f64::from(point.1.max(1)).ln()).collect();
    let squares = |exponent: f64| {
        let inverse: Vec<f64> = measured.iter().map(|point| f64::from(point.0.max(1)).powf(-exponent)).collect();
        let law = least_squares(&inverse, &logs);
        inverse.iter().zip(&logs).map(|(inverse, log)| (log - (law.c1 * inverse + law.c2).ln()).powi(2)).sum::<f64>()
    };
    let (first, last, count) = TRIED;
    let width = (last - first) / count as f64;
    let tried: Vec<f64> = (0..=count).map(|step| first + width * step as f64).map(squares).collect();
    let at = |place: usize| first + width * place as f64;
    let coarse = (0..=count).min_by(|a, b| tried[*a].total_cmp(&tried[*b]))?;
    // Between the neighbours of the best of these lies the best of all: thirds narrow it down.
    let (mut low, mut high) = (at(coarse.saturating_sub(1)), at((coarse + 1).min(count)));
    for _ in 0..20 {
        let third = (high - low) / 3.0;
        if squares(low + third) < squares(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    let narrowed = (low + high) / 2.0;
    let value = if tried[coarse] <= squares(narrowed) { at(coarse) } else { narrowed };
    let freedom = measured.len() - 3;
    let most = squares(value) * (1.0 + student(freedom).powi(2) / freedom as f64);
    // Where the squares pass the limit, between an exponent inside and one outside.
    let border = |mut inside: f64, mut outside: f64| {
        for _ in 0..20 {
            let middle = (inside + outside) / 2.0;
            if squares(middle) <= most { inside = middle } else { outside = middle }
        }
        inside
    };
    let below = (0..=count).rev().find(|&place| at(place) < value && tried[place] > most);
    let above = (0..=count).find(|&place| at(place) > value && tried[place] > most);
    Some(Estimate {
        value,
        low: below.map_or(0.0, |place| border(value, at(place))),
        high: above.map_or(f64::INFINITY, |place| border(value, at(place))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(exponent: f64, c2: f64, sizes: &[u32]) -> Vec<(u32, u32)> {
        sizes.iter().map(|&size| (size, (1e6 / f64::from(size).powf(exponent) + c2).round() as u32)).collect()
    }

    /// Exponents that are tried, and others between them; steps are rounded to whole ones.
    #[test]
    fn the_exponent_of_a_law_is_found() {
        let sizes = [2, 8, 32, 128, 512, 2048];
        for truth in [0.5, 0.52, 0.8, 0.83, 0.92, 1.0, 1.02, 1.27, 1.3] {
            let found = exponent(&points(truth, 500.0, &sizes)).unwrap();
            assert!((found.value - truth).abs() < 0.01 && found.holds(found.value) && found.holds(truth), "{truth}: {found:?}");
            assert!(found.high - found.low < 0.05, "{found:?}");
        }
        let exact = exponent(&[(2, 1000), (4, 500), (8, 250), (16, 125)]).unwrap();
        assert!((exact.value - 1.0).abs() < 1e-9 && exact.holds(exact.value), "{exact:?}");
    }

    #[test]
    fn few_points_have_none_and_a_floor_alone_any() {
        assert_eq!(exponent(&points(1.0, 500.0, &[2, 4, 8])), None);
        let flat = exponent(&[(2, 100), (4, 103), (8, 98), (16, 101), (32, 99)]).unwrap();
        assert_eq!((flat.low, flat.high), (0.0, f64::INFINITY));
    }
}
