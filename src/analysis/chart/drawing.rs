//! How a chart is drawn: panels in rows, with one legend beside or below them.

use super::layout::{INCHES, Layout, Legend, MARGIN, Style, Width};
use super::parts::{Chart, Element, Panel, Stroke};
use super::svg::{Anchor, BLACK, Colour, GREY, Place, Svg, WHITE};
use crate::{Result, results};

/// Length of the strokes at an axis's labels.
const TICK: i32 = 5;

/// The colour of the lines at labels.
const MESH: Colour = Colour(228, 228, 228);

impl Chart {
    /// Writes the figure for a screen as an SVG file.
    ///
    /// # Errors
    /// [`crate::Error::Results`] where it cannot be written; an older file is then untouched.
    pub fn publish(&self, path: &std::path::Path) -> Result<()> {
        results::publish(path, self.svg(Style::Screen, Width::Wide).as_bytes())
    }

    /// The figure as an SVG document.
    pub fn svg(&self, style: Style, across: Width) -> String {
        let layout = Layout::new(self, style, across);
        let (width, height) = layout.size;
        let inches = INCHES[usize::from(across == Width::Narrow)];
        let inches = (style == Style::Paper).then(|| (inches, inches * f64::from(height) / f64::from(width)));
        let mut svg = Svg::new(layout.size, inches, &self.title);
        if (style, across) == (Style::Screen, Width::Wide) {
            svg.text(&self.title, (width as i32 / 2, 36), 32, BLACK, Anchor::Middle);
        }
        for (number, panel) in self.panels.iter().enumerate() {
            // The axes' titles stand once a column and once a row.
            panel.draw(&mut svg, &layout, number, number + layout.columns >= self.panels.len());
        }
        self.draw_legend(&mut svg, &layout.legend);
        svg.finished(across == Width::Wide)
    }

    fn draw_legend(&self, svg: &mut Svg, legend: &Legend) {
        if let Some([(left, top), (right, bottom)]) = legend.area {
            svg.area(&[(left, top), (right, top), (right, bottom), (left, bottom)], WHITE, 0.85);
        }
        for (entry, &(x, y)) in self.legend.iter().zip(&legend.places) {
            let sample = [(x + 16, y), (x + 94, y)];
            if let Some(stroke) = entry.stroke {
                stroke.draw(svg, &sample, entry.colour, 4);
            }
            if let Some(marker) = entry.marker {
                marker.draw(svg, (x + 55, y), 10, entry.colour, true);
            }
            svg.text(&entry.name, (x + 108, y), legend.font, BLACK, Anchor::Left);
        }
    }
}

impl Stroke {
    /// A line through places; `width` is that of a solid one, in SVG units.
    fn draw(self, svg: &mut Svg, places: &[Place], colour: Colour, width: u32) {
        match self {
            Stroke::Solid => svg.line(places, colour, width),
            Stroke::Dashed => svg.dashes(places, colour),
            Stroke::Thin => svg.line(places, colour, 1),
        }
    }
}

impl Panel {
    /// The panel with this number; `x_title` says whether the horizontal axis's title stands here.
    fn draw(&self, svg: &mut Svg, layout: &Layout, number: usize, x_title: bool) {
        let (row, column) = (number / layout.columns, number % layout.columns);
        let (from_left, from_top) = (layout.left(column) as i32, (layout.heading + row as u32 * layout.height) as i32);
        let (width, height) = (layout.width(column) as i32, layout.height as i32);
        let labels = layout.labels(column) as i32;
        let [left, right, top, bottom] = layout.frame(number, self);
        let above = top - from_top;
        let middle = from_left + (MARGIN + labels + width) / 2;
        if !self.title.is_empty() {
            svg.text(&self.title, (middle, from_top + above / 2), layout.font, BLACK, Anchor::Middle);
        }
        let frame = Frame { panel: self, left, right, top, bottom };
        if column == 0 {
            let side = (from_left + MARGIN, (top + bottom + 1) / 2);
            svg.text(self.y.title(), side, layout.font, BLACK, Anchor::Upwards);
        }
        if x_title {
            svg.text(self.x.title(), ((left + right + 1) / 2, from_top + height), layout.font, BLACK, Anchor::Bottom);
        }
        frame.axes(svg, layout, labels > 0);
        let mut words = Vec::new();
        for layer in &self.layers {
            frame.layer(svg, layout, layer, &mut words);
        }
        if let Some(note) = &self.note {
            svg.text(note, (middle, from_top + height / 2), layout.font, BLACK, Anchor::Middle);
        }
    }
}

/// A panel with the edges of the area between its axes, in SVG units.
struct Frame<'a> {
    panel: &'a Panel,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> i32 {
        self.panel.x.place(value, (self.left, self.right))
    }

    fn y(&self, value: f64) -> i32 {
        self.panel.y.place(value, (self.bottom, self.top))
    }

    fn place(&self, &(x, y): &(f64, f64)) -> Place {
        (self.x(x), self.y(y))
    }

    fn holds(&self, &(x, y): &(f64, f64)) -> bool {
        self.panel.x.contains(x) && self.panel.y.contains(y)
    }

    /// The axes with their labels, and a line at each; a vertical axis without labels has only the lines.
    fn axes(&self, svg: &mut Svg, layout: &Layout, labelled: bool) {
        let Frame { panel, left, right, top, bottom } = *self;
        let (xs, ys) = (panel.x.ticks(layout.ticks.0), panel.y.ticks(layout.ticks.1));
        xs.iter().for_each(|&x| svg.rule((self.x(x), bottom), (self.x(x), top), MESH));
        ys.iter().for_each(|&y| svg.rule((left, self.y(y)), (right, self.y(y)), MESH));
        if labelled {
            svg.line(&[(left - 1, top), (left - 1, bottom)], BLACK, 2);
            for value in ys {
                let y = self.y(value);
                svg.text(&panel.y.label(value), (left - 2 * TICK, y), layout.font, BLACK, Anchor::Right);
                svg.line(&[(left - 1 - TICK, y), (left - 1, y)], BLACK, 2);
            }
        }
        svg.line(&[(left, bottom + 1), (right, bottom + 1)], BLACK, 2);
        // A label that would run into the one before is left out.
        let mut free = i32::MIN;
        for value in xs {
            let (x, label) = (self.x(value), panel.x.label(value));
            let half = label.chars().count() as i32 * layout.font as i32 * 3 / 10;
            if x - half >= free {
                svg.text(&label, (x, bottom + 1 + 2 * TICK), layout.font, BLACK, Anchor::Top);
                free = x + half + layout.font as i32 / 4;
            }
            svg.line(&[(x, bottom + 1), (x, bottom + 1 + TICK)], BLACK, 2);
        }
    }

    /// Draws a layer. `taken` are the boxes of words that are drawn, each its left, right, top and bottom: words that would run into others are left
    /// out.
    fn layer(&self, svg: &mut Svg, layout: &Layout, layer: &Element, taken: &mut Vec<[i32; 4]>) {
        let places = |points: &[(f64, f64)]| points.iter().map(|point| self.place(point)).collect::<Vec<_>>();
        match layer {
            Element::Line(stroke, colour, points) => {
                for run in points.split(|point| !self.holds(point)).filter(|run| !run.is_empty()) {
                    stroke.draw(svg, &places(run), *colour, layout.line);
                }
            }
            Element::Paths(stroke, colour, paths) => {
                // Paths are wider than other lines, so that a reader can tell the colours of the paths apart.
                let width = if *stroke == Stroke::Thin { 2 } else { layout.line + 2 };
                for path in paths {
                    let places = places(&path.points);
                    svg.line(&places, *colour, width);
                    svg.hover_over_line(&places, &path.words);
                }
            }
            Element::Points(marker, colour, points) | Element::Hollow(marker, colour, points) => {
                let solid = matches!(layer, Element::Points(..));
                let half = layout.marker + 4;
                for dot in points.iter().filter(|dot| self.holds(&dot.at)) {
                    let (x, y) = self.place(&dot.at);
                    marker.draw(svg, (x, y), layout.marker, *colour, solid);
                    svg.hover_over((x - half, y - half), (2 * half, 2 * half), &dot.words);
                }
            }
            Element::Band(colour, edges) => {
                let kept = || edges.iter().filter(|(x, ..)| self.panel.x.contains(*x));
                let corners: Vec<(f64, f64)> =
                    kept().map(|&(x, low, _)| (x, low)).chain(kept().rev().map(|&(x, _, high)| (x, high))).collect();
                svg.area(&places(&corners), *colour, 0.16);
            }
            Element::Bars(colour, bars) => {
                for &(x, low, high) in bars.iter().filter(|(x, low, high)| self.holds(&(*x, *high)) && low < high) {
                    svg.line(&places(&[(x, low), (x, high)]), *colour, 3);
                }
            }
            Element::Tiles(tiles) => {
                for tile in tiles {
                    let [(left, bottom), (right, top)] = [self.place(&tile.from), self.place(&tile.to)];
                    svg.area(&[(left, bottom), (right, bottom), (right, top), (left, top)], tile.colour, 1.0);
                    svg.hover_over((left, top), (right - left, bottom - top), &tile.words);
                }
            }
            Element::Words(words, at) if self.holds(at) => {
                let ((x, y), small) = (self.place(at), layout.small as i32);
                let area = [x - words.chars().count() as i32 * small * 2 / 3, x, y, y + small];
                let [left, right, top, bottom] = area;
                let is_apart = |other: &[i32; 4]| right <= other[0] || other[1] <= left || bottom <= other[2] || other[3] <= top;
                if taken.iter().all(is_apart) {
                    svg.text(words, (x, y), layout.small, GREY, Anchor::UpperRight);
                    taken.push(area);
                }
            }
            Element::Words(..) => {}
        }
    }
}
