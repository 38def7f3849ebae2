//! The figure of steps-to-result against batch size (Lee et al., ICLR 2021, figure 1).

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Grid, workload_name};
use crate::results::{self, Results};
use crate::{Error, Result};

/// Width and height in SVG units: large, since plotters rounds positions to whole units.
const SIZE: (u32, u32) = (1600, 1040);

/// Width of the legend's column at the right.
const LEGEND_WIDTH: u32 = 350;

const MARKER_RADIUS: i32 = 11;

/// Colours that differ for all common kinds of colour vision (Okabe and Ito, 2008), the lightest left out.
const COLOURS: [RGBColor; 6] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167), RGBColor(0, 0, 0), RGBColor(230, 159, 0)];

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// One sparsity's measured points as (log2 batch size, log2 K*), in runs without a gap.
struct Series {
    name: String,
    colour: RGBColor,
    shape: usize,
    runs: Vec<Vec<(f64, f64)>>,
}

impl Series {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.runs.iter().flatten().copied()
    }
}

/// Draws K* against batch size as an SVG file: both axes in powers of two, a line and a marker shape a sparsity, and, dashed, perfect
/// linear scaling from each sparsity's first measured point. A line is broken at a cell that is unmeasured or reached no goal.
///
/// # Errors
/// [`Error::Results`] where the file cannot be written; an older one is then untouched.
pub fn steps_to_result_plot(results: &Results, path: &Path) -> Result<()> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = draw(results, &area).and_then(|()| area.present());
    drop(area);
    drawn.map_err(|error| Error::Results { path: path.to_owned(), problem: format!("the figure cannot be drawn ({error})") })?;
    results::publish(path, svg.as_bytes())
}

fn draw(results: &Results, area: &Drawing) -> Drawn {
    area.fill(&WHITE)?;
    let grid = Grid::new(results);
    let series = series(&grid);
    let title = format!("{}: steps to validation error ≤ {}", workload_name(results), results.workload.goal_error);
    area.draw(&Text::new(title, (SIZE.0 as i32 / 2, 34), style(32, HPos::Center)))?;
    let (left, right) = area.split_horizontally(SIZE.0 - LEGEND_WIDTH);
    chart(results, &grid, &series, &left)?;
    legend(&series, &right)
}

fn series(grid: &Grid) -> Vec<Series> {
    let named = |(number, &sparsity): (usize, &f64)| {
        let steps = |&batch_size: &u32| {
            let steps = grid.cell(batch_size, sparsity).and_then(|cell| cell.steps_to_result());
            steps.map(|steps| (log2(batch_size), log2(steps)))
        };
        let measured: Vec<Option<(f64, f64)>> = grid.batch_sizes.iter().map(steps).collect();
        let runs = measured.split(Option::is_none).filter(|run| !run.is_empty());
        Series {
            name: format!("sparsity {sparsity}"),
            colour: COLOURS.get(number % COLOURS.len()).copied().unwrap_or(BLACK),
            shape: number,
            runs: runs.map(|run| run.iter().flatten().copied().collect()).collect(),
        }
    };
    grid.sparsities.iter().enumerate().map(named).collect()
}

fn chart(results: &Results, grid: &Grid, series: &[Series], area: &Drawing) -> Drawn {
    let logs = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let mut batches = logs(&mut grid.batch_sizes.iter().map(|&size| log2(size)));
    let mut steps = logs(&mut series.iter().flat_map(Series::points).map(|(_, y)| y));
    let empty = steps.0 > steps.1;
    if empty {
        // Axes of what could have been measured.
        steps = (log2(results.workload.evaluate_every), log2(results.workload.max_steps));
    }
    if batches.0 > batches.1 {
        batches = (0.0, 14.0);
    }
    // Whole powers around the data, with room for the markers.
    let (x, y) = ((batches.0.floor() - 0.4, batches.1.ceil() + 0.4), (steps.0.floor() - 0.3, steps.1.ceil() + 0.3));
    let mut chart = ChartBuilder::on(area)
        .margin_top(90)
        .margin_left(20)
        .margin_bottom(20)
        .x_label_area_size(90)
        .y_label_area_size(120)
        .build_cartesian_2d(Powers(x.0, x.1), Powers(y.0, y.1))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225).stroke_width(2))
        .axis_style(BLACK.stroke_width(2))
        .label_style(style(32, HPos::Center))
        .axis_desc_style(style(34, HPos::Center))
        .x_desc("Batch size (examples)")
        .y_desc("Steps-to-result")
        .draw()?;
    for series in series {
        let Some((first_x, first_y)) = series.points().next() else { continue };
        // Twice the batch, half the steps, as far as there are batch sizes or the axis allows.
        let length = (batches.1 - first_x).min(first_y - y.0);
        let ideal = [(first_x, first_y), (first_x + length, first_y - length)];
        chart.draw_series(DashedLineSeries::new(ideal, 12, 10, series.colour.stroke_width(2)))?;
        for run in &series.runs {
            chart.draw_series(LineSeries::new(run.iter().copied(), series.colour.stroke_width(4)))?;
        }
        match corners(series) {
            None => chart.draw_series(series.points().map(|point| Circle::new(point, MARKER_RADIUS, series.colour.filled())))?,
            Some(corners) => {
                let marker = |point| EmptyElement::at(point) + Polygon::new(corners.clone(), series.colour);
                chart.draw_series(series.points().map(marker))?
            }
        };
    }
    if empty {
        let note = if results.cells.is_empty() { "No cell is finished yet" } else { "No trial has reached the goal" };
        let middle = ((x.0 + x.1) / 2.0, (y.0 + y.1) / 2.0);
        chart.draw_series([Text::new(note, middle, style(32, HPos::Center))])?;
    }
    Ok(())
}

fn legend(series: &[Series], area: &Drawing) -> Drawn {
    let text = |name: String, y: i32| Text::new(name, (120, y), style(30, HPos::Left));
    let mut y = 120;
    for series in series {
        area.draw(&PathElement::new([(20, y), (100, y)], series.colour.stroke_width(4)))?;
        match corners(series) {
            None => area.draw(&Circle::new((60, y), MARKER_RADIUS, series.colour.filled()))?,
            Some(corners) => area.draw(&(EmptyElement::at((60, y)) + Polygon::new(corners, series.colour)))?,
        }
        let reached = if series.runs.is_empty() { " (not reached)" } else { "" };
        area.draw(&text(format!("{}{reached}", series.name), y))?;
        y += 48;
    }
    if series.iter().any(|series| series.points().count() > 1) {
        for from in [20, 42, 64, 86] {
            area.draw(&PathElement::new([(from, y), (from + 12, y)], RGBColor(90, 90, 90).stroke_width(2)))?;
        }
        area.draw(&text("linear scaling".to_owned(), y))?;
    }
    Ok(())
}

/// Corners of a series' marker about its point, or none for a disc. Each shape is told from the others in black and white too.
fn corners(series: &Series) -> Option<Vec<(i32, i32)>> {
    let r = MARKER_RADIUS;
    match series.shape % 6 {
        0 => None,
        1 => Some(vec![(-r + 1, -r + 1), (r - 1, -r + 1), (r - 1, r - 1), (-r + 1, r - 1)]),
        2 => Some(vec![(0, -r - 3), (r + 2, r - 2), (-r - 2, r - 2)]),
        3 => Some(vec![(0, -r - 4), (r + 4, 0), (0, r + 4), (-r - 4, 0)]),
        4 => Some(vec![(0, r + 3), (r + 2, -r + 2), (-r - 2, -r + 2)]),
        _ => Some(vec![(-r - 4, -5), (r + 4, -5), (r + 4, 5), (-r - 4, 5)]),
    }
}

/// The logarithm to base 2; of 0, which no figure on logarithmic axes can show, that of 1.
fn log2(number: u32) -> f64 {
    f64::from(number.max(1)).log2()
}

fn style(size: u32, side: HPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size)).color(&BLACK).pos(Pos::new(side, VPos::Center))
}

/// An axis of logarithms to base 2 between two limits, labelled at whole powers.
struct Powers(f64, f64);

impl Ranged for Powers {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first + ((value - self.0) / (self.1 - self.0) * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        // At most fourteen or so, or the labels would touch.
        let apart = (((self.1 - self.0) / 14.0).ceil() as usize).max(1);
        (self.0.ceil() as i32..=self.1.floor() as i32).step_by(apart).map(f64::from).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.0..self.1
    }
}

impl ValueFormatter<f64> for Powers {
    fn format(power: &f64) -> String {
        power_of_two(*power)
    }
}

/// 2 with an exponent.
fn power_of_two(power: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |digit: char| digit.to_digit(10).and_then(|digit| DIGITS.get(digit as usize).copied()).unwrap_or('⁻');
    ['2'].into_iter().chain(format!("{power:.0}").chars().map(raised)).collect()
}
