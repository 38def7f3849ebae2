//! Where a chart's parts stand, and how large they are.

use super::parts::{Chart, Panel};

/// Width of the panels together on a screen, in SVG units: large, since positions are whole units.
const SCREEN: u32 = 1480;

/// Width of a figure for papers, in inches.
pub const INCHES: f64 = 5.5;

/// Text of 8 points in a figure for papers. The height of a line is 1.24 times its em.
const EIGHT_POINTS: u32 = 40;

/// The width in SVG units with which that text has 8 points: 72 · 5.5 points are so many units as 8 points are 40/1.24.
const PAPER: u32 = 1597;

/// Width of a letter of that text, about.
const LETTER: usize = 20;

/// Between the lines of a legend.
const LINE: i32 = 48;

/// What a chart looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// For the page: a title above the panels, the legend at their right.
    #[default]
    Screen,
    /// For papers: 5.5 inches wide, all text of 8 points, no title, the legend below the panels.
    Paper,
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
}

impl Layout {
    /// The measures of a chart.
    pub fn new(chart: &Chart, style: Style) -> Layout {
        let names: Vec<usize> = chart.legend.iter().map(|entry| letters(&entry.name)).collect();
        let layout = match style {
            Style::Screen => Layout::screen(chart, &names),
            Style::Paper => Layout::paper(chart, &names),
        };
        Layout { marker: if chart.crowded { layout.marker.min(5) } else { layout.marker }, ..layout }
    }

    fn screen(chart: &Chart, names: &[usize]) -> Layout {
        let (columns, entries) = (in_a_row(chart), names.len());
        let rows = chart.panels.len().div_ceil(columns).max(1) as u32;
        let width = SCREEN / columns as u32;
        let (height, font, marker, line, ticks) = match columns {
            1 => (920, 32, 11, 4, (15, 15)),
            2 => (600, 28, 9, 4, (8, 15)),
            3 => (450, 26, 7, 3, (8, 8)),
            _ => ((width * 9 / 10).max(250), 24, 5, 3, (5, 5)),
        };
        let longest = names.iter().max().map(|&letters| letters as u32);
        let legend = longest.map_or(20, |letters| 120 + letters * 15);
        let heading = 70;
        let left = width * columns as u32;
        let places = (0..entries).map(|number| (left as i32, heading as i32 + 40 + LINE * number as i32)).collect();
        let size = (left + legend, (heading + rows * height + 10).max(100 + LINE as u32 * entries as u32));
        let legend = Legend { font: 30, places };
        let plot = width - labels(font);
        Layout { size, columns, heading, height, font, small: font * 5 / 6, marker, line, ticks, legend, plot, shared: false }
    }

    fn paper(chart: &Chart, names: &[usize]) -> Layout {
        let longest = |title: fn(&Panel) -> &str| chart.panels.iter().map(|panel| letters(title(panel))).max().unwrap_or(0);
        // No title may be cut.
        let wanted = in_a_row(chart);
        let columns = wanted.min(PAPER as usize / (longest(|panel| &panel.title) * LETTER).max(1)).max(1);
        let rows = chart.panels.len().div_ceil(columns).max(1) as u32;
        // Panels of a row with the same vertical axis share its labels.
        let is_shared = |row: &[Panel]| row.windows(2).all(|pair| pair[0].y == pair[1].y);
        let shared = columns == wanted && chart.panels.chunks(columns).all(is_shared);
        let (height, marker, line, ticks) = match columns {
            1 => (860, 10, 4, (12, 12)),
            2 => (620, 9, 4, (7, 10)),
            3 => (480, 7, 3, (5, 8)),
            _ => (420, 6, 3, (4, 6)),
        };
        // A vertical title stands at the middle of its axis, which is above that of the panel.
        let height = height.max((longest(|panel| panel.y.title()) * LETTER) as u32 + EIGHT_POINTS * 5 / 4);
        let labelled = if shared { 1 } else { columns as u32 };
        let plot = (PAPER - labelled * labels(EIGHT_POINTS)) / columns as u32;
        let above = rows * height + 10;
        // Entries follow each other while there is room.
        let (mut x, mut y) = (0, above as i32 + LINE / 2);
        let mut places = Vec::new();
        for &letters in names {
            let wide = 108 + 30 + (letters * LETTER) as i32;
            if x > 0 && x + wide > PAPER as i32 {
                (x, y) = (0, y + LINE);
            }
            places.push((x, y));
            x += wide;
        }
        let below = if places.is_empty() { above as i32 } else { y + LINE / 2 + 8 };
        let legend = Legend { font: EIGHT_POINTS, places };
        let size = (PAPER, below as u32);
        let (font, small) = (EIGHT_POINTS, EIGHT_POINTS);
        Layout { size, columns, heading: 0, height, font, small, marker, line, ticks, legend, plot, shared }
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
            for style in [Style::Screen, Style::Paper] {
                let layout = Layout::new(&chart, style);
                assert!(layout.plot > 15 && layout.left(layout.columns) <= layout.size.0, "{columns} columns, {style:?}: {}", layout.plot);
            }
        }
    }
}
