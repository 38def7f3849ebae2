//! Values of a figure as a table: every point, line, interval and bar that it draws, so that it can be drawn again elsewhere.

use super::rows::optional;
use super::table::Table;
use crate::analysis::chart::{Chart, Colour, Element, Entry, GREY, Marker, Stroke};

/// Columns: the panel's title, the legend's name for the series, what is drawn, its coordinates in units of the axes (for an interval or a bar its
/// lower and upper end in place of y), and the words shown where a mouse is over it.
const COLUMNS: [&str; 8] = ["panel", "series", "drawn", "x", "y", "low", "high", "words"];

/// The table of a chart, in the order in which it is drawn.
pub fn values(chart: &Chart) -> Table {
    let mut rows = Vec::new();
    for panel in &chart.panels {
        for layer in &panel.layers {
            let mut row = |series: &str, drawn: &str, numbers: [f64; 4], words: &str| {
                let numbers = numbers.map(|number| optional(Some(number).filter(|number| number.is_finite())));
                let texts = [&panel.title, series, drawn].map(str::to_owned);
                rows.push(texts.into_iter().chain(numbers).chain([words.to_owned()]).collect::<Vec<_>>());
            };
            let at = |(x, y): (f64, f64)| [x, y, f64::NAN, f64::NAN];
            let name = |colour, stroke, marker| series(&chart.legend, colour, stroke, marker);
            match layer {
                Element::Line(stroke, colour, points) => {
                    let name = name(*colour, Some(*stroke), None);
                    points.iter().for_each(|&point| row(name, "line", at(point), ""));
                }
                Element::Paths(stroke, colour, paths) => {
                    let name = name(*colour, Some(*stroke), None);
                    for path in paths {
                        path.points.iter().for_each(|&point| row(name, "line", at(point), &path.words));
                    }
                }
                Element::Points(marker, colour, dots) | Element::Hollow(marker, colour, dots) => {
                    let drawn = match (layer, marker) {
                        (_, Marker::Arrow(..)) => "goes on",
                        (Element::Hollow(..), _) => "bound",
                        _ => "point",
                    };
                    let name = name(*colour, None, Some(*marker));
                    dots.iter().for_each(|dot| row(name, drawn, at(dot.at), &dot.words));
                }
                Element::Band(colour, edges) | Element::Bars(colour, edges) => {
                    let drawn = if matches!(layer, Element::Band(..)) { "interval" } else { "bar" };
                    let name = name(*colour, None, None);
                    edges.iter().for_each(|&(x, low, high)| row(name, drawn, [x, f64::NAN, low, high], ""));
                }
                Element::Tiles(tiles) => {
                    tiles.iter().for_each(|tile| row(name(tile.colour, None, Some(Marker::Square)), "tile", at(tile.at), &tile.words));
                }
                Element::Words(words, point) => row("", "words", at(*point), words),
            }
        }
    }
    Table { name: "figure", keys: 1, heading: COLUMNS.map(str::to_owned).to_vec(), rows }
}

/// The legend's name for a colour: of several entries, the one with the same stroke or marker, else that of the shape; empty where it has none.
fn series(legend: &[Entry], colour: Colour, stroke: Option<Stroke>, marker: Option<Marker>) -> &str {
    let mut of_colour = legend.iter().filter(|entry| entry.colour == colour);
    let looks_so = |entry: &&Entry| {
        stroke.is_none_or(|stroke| entry.stroke == Some(stroke)) && marker.is_none_or(|marker| entry.marker == Some(marker))
    };
    // A grey entry names a shape, whatever its colour is.
    let of_shape = legend.iter().find(|entry| entry.colour == GREY && marker.is_some() && entry.marker == marker);
    let best = of_colour.clone().find(looks_so).or(of_shape).or_else(|| of_colour.next());
    best.map_or("", |entry| &entry.name)
}
