//! The parts of a figure: panels with their axes and what is drawn between them, and a legend.

use super::axes::Axis;
use super::marker::Marker;
use super::svg::Colour;

/// How a line is stroked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// Without gaps.
    Solid,
    /// Dashes.
    Dashed,
    /// Thin, for what helps reading.
    Thin,
}

/// One thing drawn in a panel, in natural units of its axes. Later ones lie above earlier ones.
#[derive(Debug, Clone)]
pub enum Element {
    /// A line through points; what is outside the axes is left out.
    Line(Stroke, Colour, Vec<(f64, f64)>),
    /// Lines, each with words that are shown where a mouse is over it.
    Paths(Stroke, Colour, Vec<Path>),
    /// A marker at each point.
    Points(Marker, Colour, Vec<Dot>),
    /// The outline of a marker at each point that is a bound.
    Hollow(Marker, Colour, Vec<Dot>),
    /// The area between a lower and an upper value at each x: (x, lower, upper).
    Band(Colour, Vec<(f64, f64, f64)>),
    /// A vertical bar from a lower to an upper value at each x: (x, lower, upper).
    Bars(Colour, Vec<(f64, f64, f64)>),
    /// Filled rectangles.
    Tiles(Vec<Tile>),
    /// A few words in grey, their right end at a point.
    Words(String, (f64, f64)),
}

/// A point of a figure, with words that are shown where a mouse is over it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// The place of the point, in natural units of the axes.
    pub at: (f64, f64),
    /// Which cell or trial it is of, its value and what is known of that.
    pub words: String,
}

/// A filled rectangle of a figure, with words that are shown where a mouse is over it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// The values that the tile stands for, in natural units of the axes.
    pub at: (f64, f64),
    /// The lower left corner.
    pub from: (f64, f64),
    /// The upper right corner.
    pub to: (f64, f64),
    /// The colour.
    pub colour: Colour,
    /// The cell that the tile is of, and its value.
    pub words: String,
}

/// A line of a figure with words.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The points that the line joins, in natural units of the axes.
    pub points: Vec<(f64, f64)>,
    /// The cell or trial that the line is of, and its values.
    pub words: String,
}

/// A pair of axes with what is drawn between them.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The words above the panel; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The things drawn between the axes, the lowest first.
    pub layers: Vec<Element>,
    /// Words in the middle of a panel with nothing else to show.
    pub note: Option<String>,
}

/// A line of the legend.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The words beside the sample.
    pub name: String,
    /// Colour of its sample.
    pub colour: Colour,
    /// The line of its sample.
    pub stroke: Option<Stroke>,
    /// The point of its sample.
    pub marker: Option<Marker>,
}

/// A figure: panels in rows, and a legend at their right.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The words above all panels.
    pub title: String,
    /// Panels in a row, at least one.
    pub columns: usize,
    /// Whether there are so many points that they must be small.
    pub crowded: bool,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// The legend.
    pub legend: Vec<Entry>,
}

/// Places between two neighbours of a line that count as drawn.
const BETWEEN: i32 = 40;

impl Element {
    /// Places at which this element is drawn; along a line the places lie close to each other.
    pub fn places(&self, place: impl Fn(&(f64, f64)) -> (i32, i32)) -> Vec<(i32, i32)> {
        let line = |points: &[(f64, f64)]| {
            let known: Vec<(i32, i32)> = points.iter().filter(|point| point.0.is_finite() && point.1.is_finite()).map(&place).collect();
            let between = |pair: &[(i32, i32)]| {
                let (from, to) = (pair[0], pair[1]);
                (0..=BETWEEN)
                    .map(move |part| (from.0 + (to.0 - from.0) * part / BETWEEN, from.1 + (to.1 - from.1) * part / BETWEEN))
                    .collect::<Vec<_>>()
            };
            known.windows(2).flat_map(between).chain(known.first().copied()).collect::<Vec<_>>()
        };
        match self {
            Element::Line(_, _, points) => line(points),
            Element::Paths(_, _, paths) => paths.iter().flat_map(|path| line(&path.points)).collect(),
            Element::Points(_, _, dots) | Element::Hollow(_, _, dots) => dots.iter().map(|dot| place(&dot.at)).collect(),
            Element::Band(_, edges) | Element::Bars(_, edges) => {
                edges.iter().flat_map(|&(x, low, high)| line(&[(x, low), (x, high)])).collect()
            }
            Element::Tiles(tiles) => tiles.iter().flat_map(|tile| line(&[tile.from, tile.to])).collect(),
            Element::Words(_, at) => vec![place(at)],
        }
    }
}

impl Panel {
    /// A panel without a title.
    pub fn new(x: Axis, y: Axis, layers: Vec<Element>) -> Panel {
        Panel { title: String::new(), x, y, layers, note: None }
    }

    /// The panel with a title.
    pub fn titled(self, title: String) -> Panel {
        Panel { title, ..self }
    }
}

impl Entry {
    /// An entry with a line.
    pub fn line(name: impl Into<String>, colour: Colour, stroke: Stroke) -> Entry {
        Entry { name: name.into(), colour, stroke: Some(stroke), marker: None }
    }

    /// An entry with a point.
    pub fn point(name: impl Into<String>, colour: Colour, marker: Marker) -> Entry {
        Entry { name: name.into(), colour, stroke: None, marker: Some(marker) }
    }
}

impl Chart {
    /// A chart with so many panels in a row.
    pub fn new(title: String, columns: usize, panels: Vec<Panel>, legend: Vec<Entry>) -> Chart {
        Chart { title, columns, crowded: false, panels, legend }
    }

    /// The chart with small points.
    pub fn crowded(self) -> Chart {
        Chart { crowded: true, ..self }
    }
}
