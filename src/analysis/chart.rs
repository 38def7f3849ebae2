//! Figures as data, and their drawing: a chart of panels with one legend beside or below them.

use std::fmt::Write;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axes::Axis;
use super::layout::{Layout, Legend, Outline, Style};
use super::marker::{Drawing, Drawn, Marker};
use crate::readable::steers;
use crate::{Error, results};

/// Space left of a panel's vertical title.
const LEFT: u32 = 14;

/// The width, which no line has, of lines that are to be dashed: the library's own dashes are pieces whose ends it rounds, each bent a little.
const TO_BE_DASHED: u32 = 9_999;

/// The grey of what helps reading and is not data.
pub const GREY: RGBColor = RGBColor(120, 120, 120);

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
    Line(Stroke, RGBColor, Vec<(f64, f64)>),
    /// Lines, each with words that are shown where a mouse is over it.
    Paths(Stroke, RGBColor, Vec<Path>),
    /// A marker at each point.
    Points(Marker, RGBColor, Vec<Dot>),
    /// The outline of a marker at each point that is a bound.
    Hollow(Marker, RGBColor, Vec<Dot>),
    /// The area between a lower and an upper value at each x: (x, lower, upper).
    Band(RGBColor, Vec<(f64, f64, f64)>),
    /// A vertical bar from a lower to an upper value at each x: (x, lower, upper).
    Bars(RGBColor, Vec<(f64, f64, f64)>),
    /// A few words in grey, their right end at a point.
    Words(String, (f64, f64)),
}

/// A point of a figure, with words that are shown where a mouse is over it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// Where it is, in natural units of the axes.
    pub at: (f64, f64),
    /// Which cell or trial it is of, its value and what is known of that.
    pub words: String,
}

/// A line of a figure with words.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// What it joins, in natural units of the axes.
    pub points: Vec<(f64, f64)>,
    /// What it is of.
    pub words: String,
}

/// A pair of axes with what is drawn between them.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Above it; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub layers: Vec<Element>,
    /// In the middle of a panel with nothing else to show.
    pub note: Option<String>,
}

/// A line of the legend.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is.
    pub name: String,
    /// Colour of its sample.
    pub colour: RGBColor,
    /// The line of its sample.
    pub stroke: Option<Stroke>,
    /// The point of its sample.
    pub marker: Option<Marker>,
}

/// A figure: panels in rows, and a legend at their right.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Above everything.
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

/// Where words are shown, in SVG units.
struct Hover {
    place: Spot,
    words: String,
}

enum Spot {
    /// A square: its middle and half its width.
    Square((i32, i32), i32),
    /// A line.
    Line(Vec<(i32, i32)>),
}

/// How near a mouse must be to a line, in SVG units.
const NEAR: i32 = 4;

impl Chart {
    /// Writes the figure for a screen as an SVG file.
    ///
    /// # Errors
    /// [`Error::Results`] where it cannot be drawn or written; an older file is then untouched.
    pub fn publish(&self, path: &std::path::Path) -> crate::Result<()> {
        let failed = |error| Error::Results { path: path.to_owned(), problem: format!("the figure cannot be drawn ({error})") };
        results::publish(path, self.svg(Style::Screen).map_err(failed)?.as_bytes())
    }

    /// The figure as an SVG document.
    ///
    /// # Errors
    /// The library's words, where it cannot draw.
    pub fn svg(&self, style: Style) -> Result<String, String> {
        let columns = self.columns.max(1);
        let outline = Outline {
            columns,
            panels: self.panels.len(),
            shared: self.panels.chunks(columns).all(|row| row.windows(2).all(|pair| pair[0].y == pair[1].y)),
            crowded: self.crowded,
            title: self.panels.iter().map(|panel| panel.title.chars().count()).max().unwrap_or(0),
            axis: self.panels.iter().map(|panel| panel.y.title().chars().count()).max().unwrap_or(0),
            names: self.legend.iter().map(|entry| entry.name.chars().count()).collect(),
        };
        let layout = Layout::new(&outline, style);
        let (width, height) = layout.size;
        let mut svg = String::new();
        let mut hovers = Vec::new();
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let drawn = self.draw(&area, &layout, &mut hovers).and_then(|()| area.present());
        drop(area);
        drawn.map_err(|error| error.to_string())?;
        svg = svg.replace(&format!("stroke-width=\"{TO_BE_DASHED}\""), "stroke-width=\"2\" stroke-dasharray=\"12 10\"");
        if style == Style::Paper {
            let (wide, high) = (layout.inches, layout.inches * f64::from(height) / f64::from(width));
            svg = svg.replacen(&format!("width=\"{width}\" height=\"{height}\""), &format!("width=\"{wide}in\" height=\"{high:.4}in\""), 1);
        }
        // Screen readers read this title aloud.
        let titled = svg.replacen(">\n", &format!(" role=\"img\">\n<title>{}</title>\n", markup(&self.title)), 1);
        Ok(with_hovers(&titled, &hovers))
    }

    fn draw(&self, area: &Drawing, layout: &Layout, hovers: &mut Vec<Hover>) -> Drawn {
        area.fill(&WHITE)?;
        if layout.heading > 0 {
            area.draw(&text(&self.title, (layout.size.0 as i32 / 2, 36), 32, HPos::Center))?;
        }
        for (number, panel) in self.panels.iter().enumerate() {
            let (row, column) = (number / layout.columns, number % layout.columns);
            let from = (layout.left(column), layout.heading + row as u32 * layout.height);
            let below = area.clone().shrink(from, (layout.width(column), layout.height));
            // The axes' titles stand once a column and once a row.
            panel.draw(area, &below, layout, column, number + layout.columns >= self.panels.len(), hovers)?;
        }
        self.draw_legend(area, &layout.legend)
    }

    fn draw_legend(&self, area: &Drawing, legend: &Legend) -> Drawn {
        for (entry, &(x, y)) in self.legend.iter().zip(&legend.places) {
            match entry.stroke {
                Some(Stroke::Dashed) => {
                    area.draw(&PathElement::new([(x + 16, y), (x + 94, y)], entry.colour.stroke_width(TO_BE_DASHED)))?;
                }
                Some(stroke) => {
                    area.draw(&PathElement::new(
                        [(x + 16, y), (x + 94, y)],
                        entry.colour.stroke_width(if stroke == Stroke::Solid { 4 } else { 1 }),
                    ))?;
                }
                None => {}
            }
            if let Some(marker) = entry.marker {
                marker.draw(area, (x + 55, y), 10, entry.colour, true)?;
            }
            area.draw(&text(&entry.name, (x + 108, y), legend.font, HPos::Left))?;
        }
        Ok(())
    }
}

/// An SVG document with areas that nothing shows but their words, where a mouse is over them.
fn with_hovers(svg: &str, hovers: &[Hover]) -> String {
    let Some((drawn, end)) = svg.rsplit_once("</svg>").filter(|_| !hovers.is_empty()) else { return svg.to_owned() };
    let mut areas = "<g class=\"points\" fill-opacity=\"0\">\n".to_owned();
    for Hover { place, words } in hovers {
        let words = markup(words);
        // Writing to a string cannot fail.
        let _ = match place {
            Spot::Square((x, y), half) => {
                let (left, top, side) = (x - half, y - half, 2 * half);
                writeln!(areas, "<rect x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\"><title>{words}</title></rect>")
            }
            Spot::Line(points) => {
                let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
                let (points, wide) = (points.join(" "), 2 * NEAR);
                writeln!(
                    areas,
                    "<polyline points=\"{points}\" stroke=\"black\" stroke-opacity=\"0\" stroke-width=\"{wide}\"><title>{words}</title></polyline>"
                )
            }
        };
    }
    format!("{drawn}{areas}</g>\n</svg>{end}")
}

/// Words between tags.
fn markup(words: &str) -> String {
    words.chars().map(|letter| if steers(letter) || "<>&".contains(letter) { ' ' } else { letter }).collect()
}

impl Panel {
    /// `root` is the whole chart, whose pixels the plot's coordinates are mapped to; `x_title` whether the horizontal axis's title stands here.
    fn draw(&self, root: &Drawing, area: &Drawing, layout: &Layout, column: usize, x_title: bool, hovers: &mut Vec<Hover>) -> Drawn {
        let font = layout.font;
        let top = if self.title.is_empty() { 10 } else { font + 10 };
        let labels = layout.labels(column);
        let mut plot = ChartBuilder::on(area)
            .margin_top(top)
            .margin_left(LEFT)
            .margin_right(14)
            .x_label_area_size(font * 5 / 2)
            .y_label_area_size(labels)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        if !self.title.is_empty() {
            let middle = (LEFT + labels + layout.width(column)) as i32 / 2;
            area.draw(&text(&self.title, (middle, top as i32 / 2), font, HPos::Center))?;
        }
        let mut mesh = plot.configure_mesh();
        mesh.x_labels(layout.ticks.0)
            .y_labels(layout.ticks.1)
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(228, 228, 228).stroke_width(1))
            .axis_style(BLACK.stroke_width(2))
            .label_style(style(font, HPos::Center))
            .axis_desc_style(style(font, HPos::Center));
        if x_title {
            mesh.x_desc(self.x.title());
        }
        if column == 0 {
            mesh.y_desc(self.y.title());
        }
        mesh.draw()?;
        let inside = |&(x, y): &(f64, f64)| self.x.contains(x) && self.y.contains(y);
        for layer in &self.layers {
            match layer {
                Element::Line(stroke, colour, points) => {
                    let width = if *stroke == Stroke::Thin { 1 } else { layout.line };
                    for run in points.split(|point| !inside(point)).filter(|run| !run.is_empty()) {
                        let run = run.iter().copied();
                        let width = if *stroke == Stroke::Dashed { TO_BE_DASHED } else { width };
                        plot.draw_series(LineSeries::new(run, colour.stroke_width(width)))?;
                    }
                }
                Element::Paths(stroke, colour, paths) => {
                    // The paths' colours must be told from each other.
                    let width = if *stroke == Stroke::Thin { 2 } else { layout.line + 2 };
                    for path in paths {
                        plot.draw_series(LineSeries::new(path.points.iter().copied(), colour.stroke_width(width)))?;
                        let places = path.points.iter().map(|point| plot.plotting_area().map_coordinate(point)).collect();
                        hovers.push(Hover { place: Spot::Line(places), words: path.words.clone() });
                    }
                }
                Element::Points(marker, colour, points) | Element::Hollow(marker, colour, points) => {
                    let solid = matches!(layer, Element::Points(..));
                    for dot in points.iter().filter(|dot| inside(&dot.at)) {
                        let at = plot.plotting_area().map_coordinate(&dot.at);
                        marker.draw(root, at, layout.marker, *colour, solid)?;
                        hovers.push(Hover { place: Spot::Square(at, layout.marker + 4), words: dot.words.clone() });
                    }
                }
                Element::Band(colour, edges) => {
                    let kept = || edges.iter().filter(|(x, ..)| self.x.contains(*x));
                    let corners: Vec<_> = kept().map(|&(x, low, _)| (x, low)).chain(kept().rev().map(|&(x, _, high)| (x, high))).collect();
                    plot.plotting_area().draw(&Polygon::new(corners, colour.mix(0.16)))?;
                }
                Element::Bars(colour, bars) => {
                    for &(x, low, high) in bars.iter().filter(|(x, low, high)| inside(&(*x, *high)) && low < high) {
                        plot.draw_series(LineSeries::new([(x, low), (x, high)], colour.stroke_width(3)))?;
                    }
                }
                Element::Words(words, at) => {
                    if inside(at) {
                        let style = style(layout.small, HPos::Right).color(&GREY).pos(Pos::new(HPos::Right, VPos::Top));
                        plot.plotting_area().draw(&Text::new(words.clone(), *at, style))?;
                    }
                }
            }
        }
        if let Some(note) = &self.note {
            let (x, y) = ((LEFT + labels + layout.width(column)) as i32 / 2, layout.height as i32 / 2);
            area.draw(&text(note, (x, y), font, HPos::Center))?;
        }
        Ok(())
    }
}

fn text<'a>(words: &str, at: (i32, i32), size: u32, side: HPos) -> Text<'a, (i32, i32), String> {
    // Control characters are not allowed in XML, and mean nothing in a figure.
    let words: String = words.chars().map(|c| if steers(c) { ' ' } else { c }).collect();
    Text::new(words, at, style(size, side))
}

fn style(size: u32, side: HPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size)).color(&BLACK).pos(Pos::new(side, VPos::Center))
}
