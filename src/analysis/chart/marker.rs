//! Colours and point shapes of a figure's series.

use super::svg::{BLACK, Colour, Place, Svg};

/// Colours that differ for all common kinds of colour vision (Okabe and Ito, 2008), the lightest left out.
const COLOURS: [Colour; 6] =
    [Colour(0, 114, 178), Colour(213, 94, 0), Colour(0, 158, 115), Colour(204, 121, 167), Colour(0, 0, 0), Colour(230, 159, 0)];

/// Shapes that differ in black and white too.
const MARKERS: [Marker; 6] = [Marker::Disc, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Inverted, Marker::Bar];

/// Sparsities that have a colour and a shape of their own, ascending. Up to 0.95 each looks like one of the series of [`Series::numbered`].
const USUAL: [(f64, Colour, Marker); 10] = [
    (0.0, COLOURS[0], MARKERS[0]),
    (0.5, COLOURS[2], MARKERS[2]),
    (0.7, COLOURS[3], MARKERS[3]),
    (0.8, COLOURS[5], MARKERS[5]),
    (0.9, COLOURS[1], MARKERS[1]),
    (0.95, COLOURS[4], MARKERS[4]),
    (0.98, Colour(86, 180, 233), MARKERS[3]),
    (0.99, Colour(120, 110, 20), MARKERS[2]),
    (0.999, Colour(110, 60, 180), MARKERS[0]),
    (1.0, Colour(150, 0, 60), MARKERS[5]),
];

/// Colour and shape of a series' points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Series {
    /// The colour of its line and its points.
    pub colour: Colour,
    /// The shape of its points.
    pub marker: Marker,
}

impl Series {
    /// Colour and shape of a series that is no sparsity, by its number in a figure.
    pub fn numbered(number: usize) -> Series {
        let of = number % COLOURS.len();
        Series { colour: COLOURS[of], marker: MARKERS[of] }
    }

    /// Colour and shape of a sparsity, the same in every figure of every study. A sparsity that has none of its own has a colour between those of its
    /// neighbours that have one, and a shape that neither of them has, by its place between them.
    pub fn of_sparsity(sparsity: f64) -> Series {
        let above = USUAL.iter().position(|usual| usual.0 >= sparsity).unwrap_or(USUAL.len() - 1);
        let (high, colour, marker) = USUAL[above];
        if high <= sparsity || above == 0 {
            return Series { colour, marker };
        }
        let (low, lower, shape) = USUAL[above - 1];
        let share = match -(1.0 - sparsity).log10() {
            // Beyond 0.99 a sparsity's place between its neighbours follows its number of nines, -log10(1 - sparsity).
            nines if nines < 2.0 => (sparsity - low) / (high - low),
            nines if nines < 3.0 => nines - 2.0,
            nines => 1.0 - 1.0 / (nines - 2.0),
        };
        let mixed = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8;
        let neither: Vec<Marker> = MARKERS.into_iter().rev().filter(|other| ![marker, shape].contains(other)).collect();
        Series {
            colour: Colour(mixed(lower.0, colour.0), mixed(lower.1, colour.1), mixed(lower.2, colour.2)),
            marker: neither.get((share * neither.len() as f64) as usize).copied().unwrap_or(Marker::Disc),
        }
    }
}

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// Filled circle.
    Disc,
    /// Circle.
    Ring,
    /// Filled square.
    Square,
    /// Filled triangle that points up.
    Triangle,
    /// Filled square on a corner.
    Diamond,
    /// Filled triangle that points down.
    Inverted,
    /// Filled wide rectangle.
    Bar,
    /// Two strokes.
    Cross,
    /// An arrow: what is meant lies further on in this direction, in pixels to the right and down.
    Arrow(i32, i32),
    /// Star of five points with a black edge.
    Star,
}

impl Marker {
    /// Draws the shape about a place; its outline where it is not solid.
    pub fn draw(self, svg: &mut Svg, (x, y): Place, r: i32, colour: Colour, solid: bool) {
        let at = |corners: &[Place]| corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
        let mut filled = |corners: &[Place]| match solid {
            true => svg.area(&at(corners), colour, 1.0),
            false => svg.line(&at(&[corners, &corners[..1]].concat()), colour, 2),
        };
        match self {
            Marker::Disc => svg.circle((x, y), r, colour, solid),
            Marker::Ring => svg.circle((x, y), r, colour, false),
            Marker::Square => filled(&[(1 - r, 1 - r), (r - 1, 1 - r), (r - 1, r - 1), (1 - r, r - 1)]),
            Marker::Triangle => filled(&[(0, -r - 2), (r + 2, r - 1), (-r - 2, r - 1)]),
            Marker::Diamond => filled(&[(0, -r - 3), (r + 3, 0), (0, r + 3), (-r - 3, 0)]),
            Marker::Inverted => filled(&[(0, r + 2), (r + 2, 1 - r), (-r - 2, 1 - r)]),
            Marker::Bar => filled(&[(-r - 3, -r / 2), (r + 3, -r / 2), (r + 3, r / 2), (-r - 3, r / 2)]),
            Marker::Cross => {
                svg.line(&at(&[(-r, -r), (r, r)]), colour, 2);
                svg.line(&at(&[(-r, r), (r, -r)]), colour, 2);
            }
            Marker::Arrow(right, down) => {
                let (tip, head) = (r + 2, r);
                let side = |turn: i32| (right * (tip - head) + turn * down * head, down * (tip - head) + turn * right * head);
                svg.line(&at(&[(-right * tip, -down * tip), (right * tip, down * tip)]), colour, 3);
                svg.line(&at(&[side(1), (right * tip, down * tip), side(-1)]), colour, 3);
            }
            Marker::Star => {
                let corner = |number: i32| {
                    let (angle, radius) =
                        (f64::from(number) * std::f64::consts::PI / 5.0, f64::from(r) * if number % 2 == 0 { 2.2 } else { 0.9 });
                    ((radius * angle.sin()).round() as i32, (-radius * angle.cos()).round() as i32)
                };
                let corners: Vec<Place> = (0..=10).map(corner).collect();
                filled(&corners);
                svg.line(&at(&corners), BLACK, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparsities_near_each_other_differ_in_colour_or_shape_and_none_depends_on_the_others() {
        let all: Vec<f64> = (0..1000).map(|number| f64::from(number) / 1000.0).collect();
        let usual = [0.0, 0.5, 0.7, 0.8, 0.9, 0.95].map(Series::of_sparsity);
        for (number, series) in usual.iter().enumerate() {
            for other in &usual[number + 1..] {
                assert!(series.colour != other.colour && series.marker != other.marker);
            }
        }
        for step in [10, 50, 100] {
            for pair in all.iter().copied().step_by(step).collect::<Vec<_>>().windows(2) {
                let [one, two] = [pair[0], pair[1]].map(Series::of_sparsity);
                assert!(one.colour != two.colour, "{pair:?}");
            }
        }
        for many in [&[0.1, 0.2, 0.3, 0.4][..], &[0.99, 0.995, 0.999, 0.9995, 0.9999]] {
            for pair in many.windows(2) {
                let [one, two] = [pair[0], pair[1]].map(Series::of_sparsity);
                assert!(one.colour != two.colour && one.marker != two.marker, "{pair:?}");
            }
        }
        // The sparsities of most studies look as numbered series do.
        assert_eq!([0.0, 0.9].map(Series::of_sparsity), [0, 1].map(Series::numbered));
    }
}
