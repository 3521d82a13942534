//! Line charts as SVG. Knows nothing of their meaning.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;

use super::axis::Axis;

/// A chart.
#[derive(Debug)]
pub struct Chart {
    /// The file's name, without `.svg`.
    pub file: &'static str,
    /// Title.
    pub title: String,
    /// Label of the x axis.
    pub x: Axis,
    /// Label of the y axis.
    pub y: Axis,
    /// How points are joined.
    pub line: Line,
    /// The lines; the series called `live` is drawn as an area behind them.
    pub series: Vec<Series>,
}

/// How points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Marked points, joined by straight lines.
    Marked,
    /// Steps: a value holds until the next one.
    Steps,
}

/// A line.
#[derive(Debug)]
pub struct Series {
    /// Name in the legend; a name has the same colour in all charts.
    pub name: &'static str,
    /// Points, sorted by x.
    pub points: Vec<(f64, f64)>,
}

/// What is said below the legend of the benchmark's charts, all of which show times or memory.
pub fn notes(simulated: bool) -> Vec<&'static str> {
    let mut notes = vec!["lower is better"];
    if simulated {
        notes.push("simulated, no GPU");
    }
    notes
}

/// A series' name as documents have it.
pub(super) fn shown(name: &str) -> &str {
    match name {
        "stock-tuned" => "stock tuned",
        "reserve" => "reserved",
        "buddy-181094" => "#181094",
        "pinbuddy-exact" => "exact growth",
        "pinbuddy-plan" => "with a plan",
        _ => name,
    }
}

/// Colours that colour-blind readers can distinguish (Okabe and Ito).
fn colour(name: &str) -> RGBColor {
    match name {
        "stock" => RGBColor(0, 0, 0),
        "stock-tuned" => RGBColor(0, 114, 178),
        "reserve" => RGBColor(204, 121, 167),
        "buddy-181094" => RGBColor(230, 159, 0),
        "pinbuddy" | "THP" | "engine" | "warmed" => RGBColor(0, 158, 115),
        "pinbuddy-exact" | "hugetlb" | "defaults" => RGBColor(86, 180, 233),
        "pinbuddy-plan" => RGBColor(213, 94, 0),
        "4 KiB" | "engine, 4 KiB" => RGBColor(213, 94, 0),
        "engine, chunks" => RGBColor(240, 228, 66),
        _ => RGBColor(150, 150, 150),
    }
}

/// Writes `FOLDER/FILE.svg`, with notes below the legend.
pub fn write(chart: &Chart, folder: &Path, notes: &[&str]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let file = folder.join(chart.file).with_extension("svg");
    let text = draw(chart, notes).with_context(|| format!("drawing {}", file.display()))?;
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

fn draw(chart: &Chart, notes: &[&str]) -> Result<String> {
    let mut text = String::new();
    let error = |it: &dyn std::fmt::Display| anyhow!("{it}");
    {
        let root = SVGBackend::with_string(&mut text, (960, 540)).into_drawing_area();
        root.fill(&WHITE).map_err(|it| error(&it))?;
        let values = || chart.series.iter().flat_map(|it| &it.points);
        let x = chart.x.over(values().map(|(x, _)| *x));
        let y = chart.y.over(values().map(|(_, y)| *y));
        let (plot, legend) = root.split_horizontally(800);
        let mut context = ChartBuilder::on(&plot)
            .caption(&chart.title, ("sans-serif", 22))
            .margin(12)
            .margin_right(24)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(|it| error(&it))?;
        context
            .configure_mesh()
            .x_desc(chart.x.label())
            .y_desc(chart.y.label())
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_labels(12)
            .y_labels(10)
            .draw()
            .map_err(|it| error(&it))?;
        // Stock last and dashed, so that lines below it stay visible.
        let mut order: Vec<&Series> = chart.series.iter().collect();
        order.sort_by_key(|it| {
            let width = std::cmp::Reverse(width(it.name));
            (it.name != "live", it.name == "stock", width)
        });
        for series in order {
            let points = points(chart, series);
            let colour = colour(series.name);
            if series.name == "live" {
                let area = AreaSeries::new(points, 0.0, colour.mix(0.35));
                context.draw_series(area).map_err(|it| error(&it))?;
                continue;
            }
            let marks: Vec<_> = points
                .iter()
                .filter(|_| chart.line == Line::Marked)
                .map(|at| Circle::new(*at, 4, colour.filled()))
                .collect();
            if series.name == "stock" {
                let line = DashedLineSeries::new(points, 7, 5, colour.stroke_width(2));
                context.draw_series(line).map_err(|it| error(&it))?;
            } else {
                let line = LineSeries::new(points, colour.stroke_width(width(series.name)));
                context.draw_series(line).map_err(|it| error(&it))?;
            }
            context.draw_series(marks).map_err(|it| error(&it))?;
        }
        draw_legend(chart, notes, &legend).map_err(|it| error(&it))?;
        root.present().map_err(|it| error(&it))?;
    }
    Ok(text)
}

/// The points that a line goes through.
fn points(chart: &Chart, series: &Series) -> Vec<(f64, f64)> {
    let place = |(x, y): &(f64, f64)| (chart.x.place(*x), chart.y.place(*y));
    let points: Vec<_> = series.points.iter().map(place).collect();
    if chart.line == Line::Marked {
        return points;
    }
    let corners = points.windows(2).map(|two| (two[1].0, two[0].1));
    let pairs = points.iter().copied().zip(corners);
    let mut steps: Vec<_> = pairs.flat_map(|(point, corner)| [point, corner]).collect();
    steps.extend(points.last());
    steps
}

/// Later lines are thinner, so that lines below them stay visible.
fn width(name: &str) -> u32 {
    match name {
        "pinbuddy" => 6,
        "reserve" => 4,
        "pinbuddy-exact" => 3,
        _ => 2,
    }
}

/// Draws the legend beside the chart, where it covers no line.
fn draw_legend<B: DrawingBackend>(
    chart: &Chart,
    notes: &[&str],
    area: &DrawingArea<B, plotters::coord::Shift>,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    for (series, row) in chart.series.iter().zip(0..) {
        let y = 64 + 26 * row;
        let colour = colour(series.name);
        if series.name == "live" {
            let block = Rectangle::new([(0, y - 6), (24, y + 6)], colour.mix(0.35).filled());
            area.draw(&block)?;
        } else {
            let pieces: &[(i32, i32)] = if series.name == "stock" {
                &[(0, 7), (12, 19)]
            } else {
                &[(0, 24)]
            };
            for (from, to) in pieces {
                let style = colour.stroke_width(width(series.name));
                area.draw(&PathElement::new([(*from, y), (*to, y)], style))?;
            }
        }
        let text = Text::new(
            shown(series.name),
            (32, y - 8),
            ("sans-serif", 16).into_font(),
        );
        area.draw(&text)?;
    }
    let below = 64 + 26 * i32::try_from(chart.series.len()).unwrap_or(0);
    for (note, row) in notes.iter().zip(0..) {
        let at = (0, below + 6 + 22 * row);
        area.draw(&Text::new(*note, at, ("sans-serif", 15).into_font()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::axis::Scale;
    use super::*;

    #[test]
    fn a_chart_names_its_lines_and_axes() {
        let chart = Chart {
            file: "test",
            title: "A title".to_owned(),
            x: Axis::new("size of the request", Scale::Bytes),
            y: Axis::new("nanoseconds", Scale::Linear),
            line: Line::Steps,
            series: ["pinbuddy", "pinbuddy-plan"]
                .map(|name| Series {
                    name,
                    points: vec![(4096.0, 70.0), (65536.0, 75.0)],
                })
                .into(),
        };
        let text = draw(&chart, &notes(true)).unwrap();
        for part in [
            "A title",
            "size of the request",
            "nanoseconds",
            "pinbuddy",
            "64 KiB",
            "with a plan",
            "lower is better",
            "simulated, no GPU",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.starts_with("<svg"));
        assert!(!draw(&chart, &notes(false)).unwrap().contains("simulated"));
    }

    /// The committed plots are of runs that are not drawn again, so what is written on them is looked at.
    #[test]
    fn committed_plots_say_what_drawn_ones_do() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let mut plots = 0;
        for folder in fs::read_dir(results).unwrap().flatten() {
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let path = file.path();
                if path.extension().is_none_or(|it| it != "svg") {
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                for note in notes(true) {
                    assert!(lines.contains(&note), "{}: {note}", path.display());
                }
                for line in lines {
                    assert_eq!(shown(line), line, "{}", path.display());
                }
                plots += 1;
            }
        }
        assert_eq!(plots, 5);
    }
}
