//! Colours and point shapes of a figure's series.

use plotters::coord::Shift;
use plotters::prelude::*;

/// An area of an SVG document.
pub type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Whether something could be drawn.
pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Colours that differ for all common kinds of colour vision (Okabe and Ito, 2008), the lightest left out.
const COLOURS: [RGBColor; 6] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167), RGBColor(0, 0, 0), RGBColor(230, 159, 0)];

/// The colour of a figure's series by number.
pub fn colour(number: usize) -> RGBColor {
    COLOURS.get(number % COLOURS.len()).copied().unwrap_or(BLACK)
}

/// The shape of a series' points by number; each is told from the others in black and white too.
pub fn marker(number: usize) -> Marker {
    const MARKERS: [Marker; 6] = [Marker::Disc, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Inverted, Marker::Bar];
    MARKERS.get(number % MARKERS.len()).copied().unwrap_or(Marker::Disc)
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
    /// Star of five points with a black edge.
    Star,
}

impl Marker {
    /// Draws the shape about a point, in the area's pixels; its outline where it is not solid.
    pub fn draw(self, area: &Drawing, (x, y): (i32, i32), r: i32, colour: RGBColor, solid: bool) -> Drawn {
        let at = |corners: &[(i32, i32)]| corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
        let filled = |corners: &[(i32, i32)]| match solid {
            true => area.draw(&Polygon::new(at(corners), colour)),
            false => area.draw(&PathElement::new(at(&[corners, &corners[..1]].concat()), colour.stroke_width(2))),
        };
        match self {
            Marker::Disc if !solid => Marker::Ring.draw(area, (x, y), r, colour, true),
            Marker::Disc => area.draw(&Circle::new((x, y), r, colour.filled())),
            Marker::Ring => area.draw(&Circle::new((x, y), r, colour.stroke_width(2))),
            Marker::Square => filled(&[(1 - r, 1 - r), (r - 1, 1 - r), (r - 1, r - 1), (1 - r, r - 1)]),
            Marker::Triangle => filled(&[(0, -r - 2), (r + 2, r - 1), (-r - 2, r - 1)]),
            Marker::Diamond => filled(&[(0, -r - 3), (r + 3, 0), (0, r + 3), (-r - 3, 0)]),
            Marker::Inverted => filled(&[(0, r + 2), (r + 2, 1 - r), (-r - 2, 1 - r)]),
            Marker::Bar => filled(&[(-r - 3, -r / 2), (r + 3, -r / 2), (r + 3, r / 2), (-r - 3, r / 2)]),
            Marker::Cross => {
                area.draw(&PathElement::new(at(&[(-r, -r), (r, r)]), colour.stroke_width(2)))?;
                area.draw(&PathElement::new(at(&[(-r, r), (r, -r)]), colour.stroke_width(2)))
            }
            Marker::Star => {
                let corner = |number: i32| {
                    let (angle, radius) =
                        (f64::from(number) * std::f64::consts::PI / 5.0, f64::from(r) * if number % 2 == 0 { 2.2 } else { 0.9 });
                    ((radius * angle.sin()).round() as i32, (-radius * angle.cos()).round() as i32)
                };
                let corners: Vec<_> = (0..=10).map(corner).collect();
                filled(&corners)?;
                area.draw(&PathElement::new(at(&corners), BLACK.stroke_width(1)))
            }
        }
    }
}
