//! Figures as data, and their drawing: a chart of panels with one legend beside them.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axes::Axis;
use super::marker::{Drawing, Drawn, Marker};

/// Width of a chart's panels together, in SVG units: large, since plotters rounds positions to whole units.
const WIDTH: u32 = 1480;

/// Space left of a panel's vertical title.
const LEFT: u32 = 14;

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

/// One thing drawn in a panel, in natural units of its axes. Later layers lie above earlier ones.
#[derive(Debug, Clone)]
pub enum Layer {
    /// A line through points; what is outside the axes is left out.
    Line(Stroke, RGBColor, Vec<(f64, f64)>),
    /// A marker at each point.
    Points(Marker, RGBColor, Vec<(f64, f64)>),
    /// The outline of a marker at each point that is a bound.
    Hollow(Marker, RGBColor, Vec<(f64, f64)>),
    /// The area between a lower and an upper value at each x: (x, lower, upper).
    Band(RGBColor, Vec<(f64, f64, f64)>),
    /// A vertical bar from a lower to an upper value at each x: (x, lower, upper).
    Bars(RGBColor, Vec<(f64, f64, f64)>),
    /// A few words in grey, their right end at a point.
    Words(String, (f64, f64)),
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
    pub layers: Vec<Layer>,
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

/// Sizes in SVG units that follow from how many panels share a row.
struct Sizes {
    width: u32,
    height: u32,
    font: u32,
    marker: i32,
    line: u32,
    labels: (usize, usize),
}

impl Sizes {
    fn new(columns: usize) -> Self {
        let width = WIDTH / columns as u32;
        let (height, font, marker, line, labels) = match columns {
            1 => (920, 32, 11, 4, (15, 15)),
            2 => (600, 28, 9, 4, (8, 15)),
            3 => (450, 26, 7, 3, (8, 8)),
            _ => ((width * 9 / 10).max(250), 24, 5, 3, (5, 5)),
        };
        Sizes { width, height, font, marker, line, labels }
    }
}

impl Chart {
    /// The figure as an SVG document.
    ///
    /// # Errors
    /// The library's words, where it cannot draw.
    pub fn svg(&self) -> Result<String, String> {
        let columns = self.columns.max(1);
        let mut sizes = Sizes::new(columns);
        if self.crowded {
            sizes.marker = sizes.marker.min(5);
        }
        let rows = self.panels.len().div_ceil(columns).max(1) as u32;
        let longest = self.legend.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0) as u32;
        let legend = if self.legend.is_empty() { 20 } else { 120 + longest * 15 };
        let heading = 70;
        let size = (sizes.width * columns as u32 + legend, (heading + rows * sizes.height + 10).max(100 + 48 * self.legend.len() as u32));
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = self.draw(&area, &sizes, columns, heading).and_then(|()| area.present());
        drop(area);
        drawn.map_err(|error| error.to_string())?;
        // Screen readers read this title aloud.
        let title: String = self.title.chars().map(|c| if c.is_control() || "<>&".contains(c) { ' ' } else { c }).collect();
        Ok(svg.replacen(">\n", &format!(" role=\"img\">\n<title>{title}</title>\n"), 1))
    }

    fn draw(&self, area: &Drawing, sizes: &Sizes, columns: usize, heading: u32) -> Drawn {
        area.fill(&WHITE)?;
        let (above, below) = area.split_vertically(heading);
        let (width, _) = area.dim_in_pixel();
        above.draw(&text(&self.title, (width as i32 / 2, 36), 32, HPos::Center))?;
        let (left, right) = below.split_horizontally(sizes.width * columns as u32);
        for (number, panel) in self.panels.iter().enumerate() {
            let (row, column) = ((number / columns) as u32, (number % columns) as u32);
            let from = (column * sizes.width, row * sizes.height);
            let below = left.clone().shrink(from, (sizes.width, sizes.height));
            // The axes' titles stand once a column and once a row.
            panel.draw(area, &below, sizes, (number + columns >= self.panels.len(), column == 0))?;
        }
        self.draw_legend(&right)
    }

    fn draw_legend(&self, area: &Drawing) -> Drawn {
        for (number, entry) in self.legend.iter().enumerate() {
            let y = 40 + 48 * number as i32;
            match entry.stroke {
                Some(Stroke::Dashed) => {
                    for from in [16, 38, 60, 82] {
                        area.draw(&PathElement::new([(from, y), (from + 12, y)], entry.colour.stroke_width(2)))?;
                    }
                }
                Some(stroke) => {
                    area.draw(&PathElement::new(
                        [(16, y), (94, y)],
                        entry.colour.stroke_width(if stroke == Stroke::Solid { 4 } else { 1 }),
                    ))?;
                }
                None => {}
            }
            if let Some(marker) = entry.marker {
                marker.draw(area, (55, y), 10, entry.colour, true)?;
            }
            area.draw(&text(&entry.name, (108, y), 30, HPos::Left))?;
        }
        Ok(())
    }
}

impl Panel {
    /// `root` is the whole chart, whose pixels the plot's coordinates are mapped to.
    fn draw(&self, root: &Drawing, area: &Drawing, sizes: &Sizes, (x_title, y_title): (bool, bool)) -> Drawn {
        let font = sizes.font;
        let top = if self.title.is_empty() { 10 } else { font + 10 };
        // For seven digits and the axis's title.
        let labels = font * 9 / 2;
        let mut plot = ChartBuilder::on(area)
            .margin_top(top)
            .margin_left(LEFT)
            .margin_right(14)
            .x_label_area_size(font * 5 / 2)
            .y_label_area_size(labels)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        if !self.title.is_empty() {
            let middle = (LEFT + labels + sizes.width) as i32 / 2;
            area.draw(&text(&self.title, (middle, top as i32 / 2), font, HPos::Center))?;
        }
        let mut mesh = plot.configure_mesh();
        mesh.x_labels(sizes.labels.0)
            .y_labels(sizes.labels.1)
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(228, 228, 228).stroke_width(1))
            .axis_style(BLACK.stroke_width(2))
            .label_style(style(font, HPos::Center))
            .axis_desc_style(style(font, HPos::Center));
        if x_title {
            mesh.x_desc(self.x.title());
        }
        if y_title {
            mesh.y_desc(self.y.title());
        }
        mesh.draw()?;
        let inside = |&(x, y): &(f64, f64)| self.x.contains(x) && self.y.contains(y);
        for layer in &self.layers {
            match layer {
                Layer::Line(stroke, colour, points) => {
                    let width = if *stroke == Stroke::Thin { 1 } else { sizes.line };
                    for run in points.split(|point| !inside(point)).filter(|run| !run.is_empty()) {
                        let run = run.iter().copied();
                        if *stroke == Stroke::Dashed {
                            plot.draw_series(DashedLineSeries::new(run, 12, 10, colour.stroke_width(2)))?;
                        } else {
                            plot.draw_series(LineSeries::new(run, colour.stroke_width(width)))?;
                        }
                    }
                }
                Layer::Points(marker, colour, points) | Layer::Hollow(marker, colour, points) => {
                    let solid = matches!(layer, Layer::Points(..));
                    for &(x, y) in points.iter().filter(|point| inside(point)) {
                        marker.draw(root, plot.plotting_area().map_coordinate(&(x, y)), sizes.marker, *colour, solid)?;
                    }
                }
                Layer::Band(colour, edges) => {
                    let kept = || edges.iter().filter(|(x, ..)| self.x.contains(*x));
                    let corners: Vec<_> = kept().map(|&(x, low, _)| (x, low)).chain(kept().rev().map(|&(x, _, high)| (x, high))).collect();
                    plot.plotting_area().draw(&Polygon::new(corners, colour.mix(0.16)))?;
                }
                Layer::Bars(colour, bars) => {
                    for &(x, low, high) in bars.iter().filter(|(x, low, high)| inside(&(*x, *high)) && low < high) {
                        plot.draw_series(LineSeries::new([(x, low), (x, high)], colour.stroke_width(3)))?;
                    }
                }
                Layer::Words(words, at) => {
                    if inside(at) {
                        let style = style(font * 5 / 6, HPos::Right).color(&GREY).pos(Pos::new(HPos::Right, VPos::Top));
                        plot.plotting_area().draw(&Text::new(words.clone(), *at, style))?;
                    }
                }
            }
        }
        if let Some(note) = &self.note {
            let (x, y) = ((LEFT + labels + sizes.width) as i32 / 2, sizes.height as i32 / 2);
            area.draw(&text(note, (x, y), font, HPos::Center))?;
        }
        Ok(())
    }
}

fn text<'a>(words: &str, at: (i32, i32), size: u32, side: HPos) -> Text<'a, (i32, i32), String> {
    // Control characters are not allowed in XML, and mean nothing in a figure.
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Text::new(words, at, style(size, side))
}

fn style(size: u32, side: HPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size)).color(&BLACK).pos(Pos::new(side, VPos::Center))
}
