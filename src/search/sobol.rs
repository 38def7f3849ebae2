//! Sobol points: the crate `sobol` with its Joe–Kuo direction numbers, or with Bratley and Fox's.

use sobol::params::JoeKuoD6;
use sobol::{ParamDimension, Sobol, SobolParams};

use super::section::SobolNumbers;
use crate::optimizer::Metaparameter;

/// The points of a Sobol sequence in index order, each coordinate in (0, 1), without end for any practical number of trials (2^53).
///
/// The sequence starts after the zero point, at (½, …, ½), and is not scrambled, as in the paper's public code.
pub struct Points(Sobol<f64>);

impl Points {
    /// Most dimensions, as many as there are metaparameters or more.
    pub const MOST_DIMENSIONS: usize = BRATLEY_FOX.len() + 1;

    /// Points with `dimensions` coordinates, at most [`Points::MOST_DIMENSIONS`]: more are cut.
    pub fn new(numbers: SobolNumbers, dimensions: usize) -> Points {
        let dimensions = dimensions.min(Self::MOST_DIMENSIONS);
        let mut points = match numbers {
            SobolNumbers::BratleyFox => Sobol::new(dimensions, &BratleyFox),
            SobolNumbers::JoeKuo => Sobol::new(dimensions, &JoeKuoD6::minimal()),
        };
        points.next();
        Points(points)
    }
}

impl Iterator for Points {
    type Item = Vec<f64>;

    fn next(&mut self) -> Option<Vec<f64>> {
        self.0.next()
    }
}

// Every metaparameter can be searched.
const _: () = assert!(Metaparameter::ALL.len() <= Points::MOST_DIMENSIONS);

/// The direction numbers of Bratley and Fox (ACM TOMS 14, 1988, algorithm 659), dimensions 2 to 16 of its 40; dimension 1 has none.
struct BratleyFox;

/// A primitive polynomial over GF(2) and the first direction numbers, as many as its degree.
struct Direction {
    dimension: u16,
    /// The coefficient of x^k is bit k.
    polynomial: u32,
    initial: &'static [u32],
}

const BRATLEY_FOX: [Direction; 15] = [
    Direction { dimension: 2, polynomial: 0b11, initial: &[1] },
    Direction { dimension: 3, polynomial: 0b111, initial: &[1, 1] },
    Direction { dimension: 4, polynomial: 0b1011, initial: &[1, 3, 7] },
    Direction { dimension: 5, polynomial: 0b1101, initial: &[1, 1, 5] },
    Direction { dimension: 6, polynomial: 0b1_0011, initial: &[1, 3, 1, 1] },
    Direction { dimension: 7, polynomial: 0b1_1001, initial: &[1, 1, 3, 7] },
    Direction { dimension: 8, polynomial: 0b10_0101, initial: &[1, 3, 3, 9, 9] },
    Direction { dimension: 9, polynomial: 0b11_1011, initial: &[1, 3, 7, 13, 3] },
    Direction { dimension: 10, polynomial: 0b10_1111, initial: &[1, 1, 5, 11, 27] },
    Direction { dimension: 11, polynomial: 0b11_1101, initial: &[1, 3, 5, 1, 15] },
    Direction { dimension: 12, polynomial: 0b11_0111, initial: &[1, 1, 7, 3, 29] },
    Direction { dimension: 13, polynomial: 0b10_1001, initial: &[1, 3, 7, 7, 21] },
    Direction { dimension: 14, polynomial: 0b100_0011, initial: &[1, 1, 1, 9, 23, 37] },
    Direction { dimension: 15, polynomial: 0b110_0001, initial: &[1, 3, 3, 5, 19, 33] },
    Direction { dimension: 16, polynomial: 0b101_1011, initial: &[1, 1, 3, 13, 11, 7] },
];

impl SobolParams<u32> for BratleyFox {
    fn get_dim(&self, dim: usize) -> &dyn ParamDimension<u32> {
        // The crate asks for dimensions 2 to max_dims.
        &BRATLEY_FOX[dim - 2]
    }

    fn max_dims(&self) -> usize {
        Points::MOST_DIMENSIONS
    }
}

impl ParamDimension<u32> for Direction {
    fn d(&self) -> u16 {
        self.dimension
    }

    fn s(&self) -> usize {
        self.initial.len()
    }

    // Only the inner coefficients count; the outer two are always 1.
    fn coefficient(&self, i: usize) -> u32 {
        (self.polynomial >> (i + 1)) & 1
    }

    fn m(&self, i: usize) -> u32 {
        self.initial[i]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first points of the generator in the paper's public code, run once.
    const PUBLIC_CODE: [[f64; 4]; 8] = [
        [0.5, 0.5, 0.5, 0.5],
        [0.75, 0.25, 0.75, 0.25],
        [0.25, 0.75, 0.25, 0.75],
        [0.375, 0.375, 0.625, 0.125],
        [0.875, 0.875, 0.125, 0.625],
        [0.625, 0.125, 0.375, 0.375],
        [0.125, 0.625, 0.875, 0.875],
        [0.1875, 0.3125, 0.3125, 0.6875],
    ];

    #[test]
    fn bratley_fox_points_are_those_of_the_public_code() {
        for dimensions in 1..=4 {
            let points: Vec<Vec<f64>> = Points::new(SobolNumbers::BratleyFox, dimensions).take(8).collect();
            let expected: Vec<Vec<f64>> = PUBLIC_CODE.iter().map(|point| point[..dimensions].to_vec()).collect();
            assert_eq!(points, expected);
        }
    }

    /// Points 20, 41 and 62, times 64, of an implementation of the same algorithm that is not ours: `i4_sobol_generate` of the Python package
    /// `sobol_seq` 0.2.0.
    #[test]
    fn sixteen_dimensions_are_those_of_another_program() {
        let points: Vec<Vec<f64>> = Points::new(SobolNumbers::BratleyFox, Points::MOST_DIMENSIONS).take(63).collect();
        for (index, expected) in [
            (20, [62, 38, 62, 50, 10, 14, 10, 62, 26, 2, 34, 62, 30, 50, 58, 10]),
            (41, [63, 21, 3, 25, 57, 53, 37, 7, 57, 55, 49, 13, 35, 23, 27, 13]),
            (62, [1, 51, 61, 43, 51, 59, 47, 57, 35, 53, 19, 51, 61, 37, 33, 7]),
        ] {
            let found: Vec<i32> = points[index].iter().map(|coordinate| (coordinate * 64.0) as i32).collect();
            assert_eq!(found, expected, "point {index}");
        }
    }

    #[test]
    fn joe_kuo_points_agree_in_two_dimensions_and_differ_in_the_third() {
        let points: Vec<Vec<f64>> = Points::new(SobolNumbers::JoeKuo, 4).take(8).collect();
        for (ours, theirs) in points.iter().zip(PUBLIC_CODE) {
            assert_eq!(ours[..2], theirs[..2]);
        }
        // Joe and Kuo's dimension 3 has m = (1, 3) where Bratley and Fox's has (1, 1).
        let third: Vec<f64> = points.iter().take(7).map(|point| point[2]).collect();
        assert_eq!(third, [0.5, 0.25, 0.75, 0.625, 0.125, 0.875, 0.375]);
    }

    #[test]
    fn every_dimension_is_balanced() {
        // The zero point and the next 2^k − 1 points hold every multiple of 2^−k once, whatever the direction numbers.
        for numbers in [SobolNumbers::BratleyFox, SobolNumbers::JoeKuo] {
            let points: Vec<Vec<f64>> = Points::new(numbers, Points::MOST_DIMENSIONS).take(255).collect();
            for dimension in 0..Points::MOST_DIMENSIONS {
                let mut coordinates: Vec<f64> = points.iter().map(|point| point[dimension]).collect();
                coordinates.sort_by(f64::total_cmp);
                assert_eq!(coordinates, (1..256).map(|k| f64::from(k) / 256.0).collect::<Vec<f64>>());
            }
        }
    }
}
