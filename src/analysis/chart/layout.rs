//! Where a chart's parts stand, and how large they are.

use super::parts::{Chart, Panel};

/// Space left of a panel's vertical title, and right of the panel.
pub const MARGIN: i32 = 14;

/// Width of a figure on a screen, and on a small one, in SVG units: large, since positions are whole units.
const SCREEN: [u32; 2] = [1500, 760];

/// Widths of figures for papers, in inches: of a page and of a column.
pub const INCHES: [f64; 2] = [5.5, 3.3];

/// Text of 8 points in a figure for papers. The height of a line is 1.24 times its em.
const EIGHT_POINTS: u32 = 40;

/// The widths in SVG units with which that text has 8 points: 72 · 5.5 points are so many units as 8 points are 40/1.24.
const PAPER: [u32; 2] = [1597, 958];

/// Width of a letter over the height of its line, about.
const LETTER: f64 = 0.5;

/// A line of a legend over the height of its text.
const LINE: f64 = 1.2;

/// Size, title and place of the legend of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Style {
    /// A title above, the legend at the right.
    ///
    /// For the page. The legend is among what is drawn where there is room, else above it.
    #[default]
    Screen,
    /// 5.5 inches wide, all text of 8 points, no title, the legend below.
    Paper,
}

/// How wide a chart is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// For a page, 5.5 inches of paper.
    #[default]
    Wide,
    /// For a small screen, or a column of paper of 3.3 inches: no title, and fewer panels in a row.
    Narrow,
}

/// Sizes and places in SVG units.
pub struct Layout {
    /// Width and height of the chart.
    pub size: (u32, u32),
    /// Panels in a row.
    pub columns: usize,
    /// Height of the title's area; 0 without a title.
    pub heading: u32,
    /// Height of a row of panels.
    pub height: u32,
    /// The size of text in and beside panels.
    pub font: u32,
    /// The size of words among what is drawn.
    pub small: u32,
    /// Half of a marker's width.
    pub marker: i32,
    /// Width of a line.
    pub line: u32,
    /// Labels of a horizontal and of a vertical axis, about.
    pub ticks: (usize, usize),
    /// The legend.
    pub legend: Legend,
    /// Width of a panel beside its labels.
    plot: u32,
    /// Whether the panels of a row share the labels of the first one's vertical axis.
    shared: bool,
}

/// A legend's text, and where its entries begin.
pub struct Legend {
    /// Size of its text.
    pub font: u32,
    /// A place an entry: its left end, and the middle of its height.
    pub places: Vec<(i32, i32)>,
    /// Upper left and lower right corner of a legend among what is drawn.
    pub area: Option<[(i32, i32); 2]>,
}

impl Layout {
    /// The measures of a chart.
    pub fn new(chart: &Chart, style: Style, width: Width) -> Layout {
        let narrow = usize::from(width == Width::Narrow);
        let full = if style == Style::Screen { SCREEN[narrow] } else { PAPER[narrow] };
        let longest = |title: fn(&Panel) -> &str| chart.panels.iter().map(|panel| letters(title(panel))).max().unwrap_or(0);
        let wanted = match width {
            Width::Wide => in_a_row(chart),
            // Few panels stand below each other.
            Width::Narrow => in_a_row(chart).min(if chart.panels.len() > 4 { 2 } else { 1 }),
        };
        let screen = |columns: usize| match (width, columns) {
            (Width::Narrow, _) => 30,
            (_, 1) => 32,
            (_, 2) => 28,
            (_, 3) => 26,
            _ => 24,
        };
        let font = if style == Style::Screen { screen(wanted) } else { EIGHT_POINTS };
        // No title may be cut.
        let title = (longest(|panel| &panel.title) as f64 * f64::from(font) * LETTER) as u32;
        let has_room = |columns: &usize| title < (full / *columns as u32).saturating_sub(labels(font));
        let columns = (1..=wanted).rev().find(has_room).unwrap_or(1);
        let rows = chart.panels.len().div_ceil(columns).max(1) as u32;
        // Panels of a row with the same vertical axis share its labels.
        let is_shared = |row: &[Panel]| row.windows(2).all(|pair| pair[0].y == pair[1].y);
        let shared = (style == Style::Paper || width == Width::Narrow) && chart.panels.chunks(columns).all(is_shared);
        let (height, marker, line, ticks) = match (style, width, columns) {
            (Style::Screen, Width::Wide, 1) => (820, 11, 4, (15, 15)),
            (Style::Screen, Width::Wide, 2) => (600, 9, 4, (8, 15)),
            (Style::Screen, Width::Wide, 3) => (450, 7, 3, (8, 8)),
            (Style::Screen, Width::Wide, many) => ((full / many as u32 * 9 / 10).max(250), 5, 3, (5, 5)),
            (_, Width::Narrow, 1) => (600, 8, 3, (7, 8)),
            (_, Width::Narrow, _) => (400, 6, 3, (4, 6)),
            (Style::Paper, _, 1) => (860, 10, 4, (12, 12)),
            (Style::Paper, _, 2) => (620, 9, 4, (7, 10)),
            (Style::Paper, _, 3) => (480, 7, 3, (5, 8)),
            (Style::Paper, ..) => (420, 6, 3, (4, 6)),
        };
        // A vertical title stands at the middle of its axis, which is above that of the panel.
        let upright = (longest(|panel| panel.y.title()) as f64 * f64::from(font) * LETTER) as u32 + font * 5 / 4;
        let height = height.max(if style == Style::Paper || width == Width::Narrow { upright } else { 0 });
        let labelled = if shared { 1 } else { columns as u32 };
        let plot = (full.saturating_sub(labelled * labels(font))) / columns as u32;
        let small = if style == Style::Screen { font * 5 / 6 } else { font };
        let heading = if (style, width) == (Style::Screen, Width::Wide) { 70 } else { 0 };
        let marker = if chart.crowded { marker.min(5) } else { marker };
        let legend = Legend { font: if style == Style::Screen { font.min(28) } else { font }, places: Vec::new(), area: None };
        let size = (full, heading + rows * height + 10);
        let layout = Layout { size, columns, heading, height, font, small, marker, line, ticks, legend, plot, shared };
        layout.with_legend(chart, style)
    }

    /// The layout with room for the legend: among what is drawn where a corner of a lone panel is free, else above the panels, or below on paper.
    fn with_legend(mut self, chart: &Chart, style: Style) -> Layout {
        let names: Vec<usize> = chart.legend.iter().map(|entry| letters(&entry.name)).collect();
        if names.is_empty() {
            return self;
        }
        let (wide, line) = (|letters: usize| 108 + 30 + self.letters(letters), (f64::from(self.legend.font) * LINE) as i32 + 6);
        if let ([panel], Style::Screen) = (chart.panels.as_slice(), style) {
            let size = (names.iter().map(|&letters| wide(letters)).max().unwrap_or(0), line * names.len() as i32 + 16);
            if let Some((x, y)) = free_corner(panel, self.frame(0, panel), size) {
                self.legend.places = (0..names.len() as i32).map(|number| (x, y + 8 + line / 2 + line * number)).collect();
                self.legend.area = Some([(x, y), (x + size.0, y + size.1)]);
                return self;
            }
        }
        // Entries follow each other while there is room.
        let below = self.size.1 as i32;
        let first = if style == Style::Paper { below } else { self.heading as i32 } + line / 2;
        let (mut x, mut y) = (0, first);
        let mut places = Vec::new();
        for &letters in &names {
            let wide = wide(letters);
            if x > 0 && x + wide > self.size.0 as i32 {
                (x, y) = (0, y + line);
            }
            places.push((x, y));
            x += wide;
        }
        let taken = (y + line / 2 + 8 - (first - line / 2)) as u32;
        self.size.1 += taken;
        if style == Style::Screen {
            self.heading += taken;
        }
        self.legend.places = places;
        self
    }

    /// The width of so many letters of the legend.
    fn letters(&self, letters: usize) -> i32 {
        (letters as f64 * f64::from(self.legend.font) * LETTER) as i32
    }

    /// The edges of the area between a panel's axes: left, right, top and bottom.
    pub fn frame(&self, number: usize, panel: &Panel) -> [i32; 4] {
        let (row, column) = (number / self.columns, number % self.columns);
        let (from_left, from_top) = (self.left(column) as i32, (self.heading + row as u32 * self.height) as i32);
        let (labels, font) = (self.labels(column) as i32, self.font as i32);
        let above = if panel.title.is_empty() { 10 } else { font + 10 };
        let (left, right) = (from_left + MARGIN + labels, from_left + self.width(column) as i32 - MARGIN - 1);
        [left, right, from_top + above, from_top + self.height as i32 - font * 5 / 2 - 1]
    }

    /// Width of the labels of a column's vertical axes.
    pub fn labels(&self, column: usize) -> u32 {
        if self.shared && column > 0 { 0 } else { labels(self.font) }
    }

    /// Width of a column's panels.
    pub fn width(&self, column: usize) -> u32 {
        self.plot + self.labels(column)
    }

    /// Where a column's panels begin.
    pub fn left(&self, column: usize) -> u32 {
        (0..column).map(|before| self.width(before)).sum::<u32>()
    }
}

/// The upper left corner of a box of this width and height in a corner of the frame in which nothing is drawn; the one at the upper right first.
fn free_corner(panel: &Panel, [left, right, top, bottom]: [i32; 4], (width, height): (i32, i32)) -> Option<(i32, i32)> {
    let place = |&(x, y): &(f64, f64)| (panel.x.place(x, (left, right)), panel.y.place(y, (bottom, top)));
    let drawn: Vec<(i32, i32)> = panel.layers.iter().flat_map(|layer| layer.places(place)).collect();
    let (far_right, far_down) = (right - width - 12, bottom - height - 12);
    let corners = [(far_right, top + 12), (far_right, far_down), (left + 12, far_down), (left + 12, top + 12)];
    let is_free = |&(x, y): &(i32, i32)| {
        let holds = |&(at_x, at_y): &(i32, i32)| (x - 14..=x + width + 14).contains(&at_x) && (y - 14..=y + height + 14).contains(&at_y);
        !drawn.iter().any(holds)
    };
    corners.into_iter().filter(|&(x, y)| x > left && y > top).find(is_free)
}

/// Space for seven digits and the axis's title.
fn labels(font: u32) -> u32 {
    font * 9 / 2
}

/// Panels in a row. Of more than eight none would have room beside its labels: then four stand in a row.
fn in_a_row(chart: &Chart) -> usize {
    if chart.columns > 8 { 4 } else { chart.columns.max(1) }
}

fn letters(words: &str) -> usize {
    words.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::chart::{Axis, Scale};

    #[test]
    fn panels_have_room_however_many_there_are() {
        let panel = |most: usize| {
            Panel::new(
                Axis::around(Scale::Linear, "x", [0.0], (0.0, 1.0)),
                Axis::around(Scale::Linear, "y", [most as f64], (0.0, 1.0)),
                Vec::new(),
            )
        };
        for columns in [0, 1, 4, 8, 9, 14, 200] {
            let chart = Chart::new(String::new(), columns, (0..columns.max(3)).map(panel).collect(), Vec::new());
            for (style, width) in
                [(Style::Screen, Width::Wide), (Style::Screen, Width::Narrow), (Style::Paper, Width::Wide), (Style::Paper, Width::Narrow)]
            {
                let layout = Layout::new(&chart, style, width);
                assert!(layout.plot > 15 && layout.left(layout.columns) <= layout.size.0, "{columns} columns, {style:?}: {}", layout.plot);
            }
        }
    }
}
