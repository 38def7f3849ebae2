//! An SVG document, written shape by shape. Its letters are those that XML allows.

use std::fmt::{self, Display, Formatter};

use maud::html;

use crate::readable::steers;

/// A place in SVG units: to the right of the upper left corner, and down.
pub type Place = (i32, i32);

/// Height of a line of text over its em.
const LINE: f64 = 1.24;

/// How near a mouse must be to a line, in SVG units, for the line's words to be shown.
const NEAR: i32 = 4;

/// A colour: its parts of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// The colour of axes and text.
pub const BLACK: Colour = Colour(0, 0, 0);

/// The colour of the background.
pub const WHITE: Colour = Colour(255, 255, 255);

/// The grey of what helps reading and is not data.
pub const GREY: Colour = Colour(120, 120, 120);

impl Display for Colour {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        write!(formatter, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Which part of its words a text's place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The left end, at half the height.
    Left,
    /// The right end, at half the height.
    Right,
    /// The middle.
    Middle,
    /// The middle of the upper edge.
    Top,
    /// The middle of the lower edge.
    Bottom,
    /// The right end of the upper edge.
    UpperRight,
    /// The middle of the upper edge, of words that run upwards.
    Upwards,
}

/// A document that is being written.
pub struct Svg {
    shapes: String,
    /// Transparent shapes: each shows its words while a mouse is over it.
    hovers: String,
}

impl Svg {
    /// A white document with a title, which screen readers read aloud. `inches` is its size on paper.
    pub fn new((width, height): (u32, u32), inches: Option<(f64, f64)>, title: &str) -> Svg {
        let shown =
            inches.map_or((width.to_string(), height.to_string()), |(width, height)| (format!("{width}in"), format!("{height:.4}in")));
        let shapes = format!(
            "<svg width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n\
             <title>{}</title>\n\
             <rect x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\" opacity=\"1\" fill=\"#FFFFFF\" stroke=\"none\"/>\n",
            shown.0,
            shown.1,
            escaped(title)
        );
        Svg { shapes, hovers: String::new() }
    }

    /// The finished document; without what is shown where a mouse is, if there is none.
    pub fn finished(self, has_mouse: bool) -> String {
        let Svg { shapes, hovers } = self;
        let hovers = if has_mouse { hovers } else { String::new() };
        let hovers = if hovers.is_empty() { hovers } else { format!("<g class=\"points\" fill-opacity=\"0\">\n{hovers}</g>\n") };
        format!("{shapes}{hovers}</svg>\n")
    }

    /// A line of so many units' width through places.
    pub fn line(&mut self, places: &[Place], colour: Colour, width: u32) {
        self.stroke(places, colour, width, "");
    }

    /// A dashed line through places.
    pub fn dashes(&mut self, places: &[Place], colour: Colour) {
        self.stroke(places, colour, 2, " stroke-dasharray=\"12 10\"");
    }

    fn stroke(&mut self, places: &[Place], colour: Colour, width: u32, dashes: &str) {
        let places = listed(places);
        self.shapes +=
            &format!("<polyline fill=\"none\" opacity=\"1\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes} points=\"{places}\"/>\n");
    }

    /// A thin line from one place to another.
    pub fn rule(&mut self, (x1, y1): Place, (x2, y2): Place, colour: Colour) {
        self.shapes +=
            &format!("<line opacity=\"1\" stroke=\"{colour}\" stroke-width=\"1\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n");
    }

    /// The area between corners.
    pub fn area(&mut self, corners: &[Place], colour: Colour, opacity: f64) {
        self.shapes += &format!("<polygon opacity=\"{opacity}\" fill=\"{colour}\" points=\"{}\"/>\n", listed(corners));
    }

    /// A circle: a disc, or a ring.
    pub fn circle(&mut self, (x, y): Place, radius: i32, colour: Colour, solid: bool) {
        let paint = match solid {
            true => format!("fill=\"{colour}\" stroke=\"none\" stroke-width=\"1\""),
            false => format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\""),
        };
        self.shapes += &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" opacity=\"1\" {paint}/>\n");
    }

    /// A text whose lines are of so many units' height.
    pub fn text(&mut self, words: &str, (x, y): Place, height: u32, colour: Colour, anchor: Anchor) {
        let across = match anchor {
            Anchor::Left => "start",
            Anchor::Right | Anchor::UpperRight => "end",
            Anchor::Middle | Anchor::Top | Anchor::Bottom | Anchor::Upwards => "middle",
        };
        let down = match anchor {
            Anchor::Left | Anchor::Right | Anchor::Middle => "0.5ex",
            Anchor::Top | Anchor::UpperRight | Anchor::Upwards => "0.76em",
            Anchor::Bottom => "-0.5ex",
        };
        let turned = if anchor == Anchor::Upwards { format!(" transform=\"rotate(270, {x}, {y})\"") } else { String::new() };
        self.shapes += &format!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{across}\" font-family=\"sans-serif\" font-size=\"{}\" opacity=\"1\" \
             fill=\"{colour}\"{turned}>\n{}\n</text>\n",
            f64::from(height) / LINE,
            escaped(words)
        );
    }

    /// Words that are shown where a mouse is over a rectangle with this upper left corner, width and height.
    pub fn hover_over(&mut self, (left, top): Place, (width, height): (i32, i32), words: &str) {
        let words = escaped(words);
        self.hovers += &format!("<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"><title>{words}</title></rect>\n");
    }

    /// Words that are shown where a mouse is near a line.
    pub fn hover_over_line(&mut self, places: &[Place], words: &str) {
        let (places, width, words) = (listed(places), 2 * NEAR, escaped(words));
        self.hovers += &format!(
            "<polyline points=\"{}\" stroke=\"black\" stroke-opacity=\"0\" stroke-width=\"{width}\"><title>{words}</title></polyline>\n",
            places.trim_end()
        );
    }
}

fn listed(places: &[Place]) -> String {
    places.iter().map(|(x, y)| format!("{x},{y} ")).collect()
}

/// Words between tags. Control characters mean nothing in a figure, and XML does not allow them.
fn escaped(words: &str) -> String {
    let plain: String = words.chars().map(|letter| if steers(letter) { ' ' } else { letter }).collect();
    html! { (plain) }.into_string()
}
