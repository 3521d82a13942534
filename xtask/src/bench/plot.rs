//! Charts of lines, as SVG. Knows nothing of what they show.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// Lines over one pair of axes.
#[derive(Debug)]
pub struct Chart {
    /// The file's name, without what says that it is an SVG.
    pub file: &'static str,
    /// Above it.
    pub title: &'static str,
    /// Below.
    pub x: Axis,
    /// To the left.
    pub y: Axis,
    /// One line each; what is called `live` is an area behind them.
    pub series: Vec<Series>,
}

/// A line, by its name.
#[derive(Debug)]
pub struct Series {
    /// In the legend; the same name has the same colour everywhere.
    pub name: &'static str,
    /// In the order of x.
    pub points: Vec<(f64, f64)>,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    label: &'static str,
    scale: Scale,
}

/// How values lie on an axis, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From nothing on.
    Linear,
    /// By powers of ten.
    Logarithmic,
    /// By powers of two.
    Doublings,
    /// By powers of two, in bytes.
    Bytes,
}

impl Axis {
    /// With its unit in the label.
    pub const fn new(label: &'static str, scale: Scale) -> Self {
        Self { label, scale }
    }

    /// Where a value lies: plain on a linear axis, its logarithm on others.
    fn place(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
            Scale::Doublings | Scale::Bytes => value.log2(),
        }
    }

    /// From where to where, with a margin at the ends.
    fn range(self, values: impl Iterator<Item = f64>) -> Range<f64> {
        let (least, most) = values
            .map(|it| self.place(it))
            .filter(|it| it.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| {
                (least.min(it), most.max(it))
            });
        if least > most {
            return 0.0..1.0;
        }
        match self.scale {
            Scale::Linear => 0.0..if most > 0.0 { most * 1.08 } else { 1.0 },
            Scale::Logarithmic => (least - 0.15)..(most + 0.15),
            Scale::Doublings | Scale::Bytes => (least - 0.2)..(most + 0.2),
        }
    }

    /// What stands at a place.
    fn write(self, place: f64) -> String {
        match self.scale {
            Scale::Linear if place == place.round() => format!("{place:.0}"),
            Scale::Linear => format!("{place:.1}"),
            Scale::Logarithmic => shorten(10_f64.powf(place).round()),
            Scale::Doublings => format!("{:.0}", place.exp2()),
            Scale::Bytes => bytes(place.exp2()),
        }
    }
}

/// `1 thousand` and `1 million` are easier to read than their zeros.
fn shorten(value: f64) -> String {
    for (unit, name) in [(1e6, " M"), (1e3, " k")] {
        if value >= unit {
            return format!("{}{name}", value / unit);
        }
    }
    format!("{value}")
}

fn bytes(value: f64) -> String {
    for (unit, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = f64::from(1_u32 << unit);
        if value >= unit * 0.99 {
            return format!("{:.0} {name}", value / unit);
        }
    }
    format!("{value:.0} B")
}

/// An axis whose marks are at whole places where it has logarithms, as many as there is room for.
#[derive(Clone)]
struct Places {
    axis: Axis,
    range: Range<f64>,
}

impl Ranged for Places {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let most = hint.max_num_points();
        if self.axis.scale == Scale::Linear {
            return RangedCoordf64::from(self.range.clone()).key_points(most);
        }
        let places = self.range.start.ceil() as i64..=self.range.end.floor() as i64;
        let count = places.clone().count();
        let every = count.div_ceil(most.max(1)).max(1);
        places.step_by(every).map(|it| it as f64).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Places {
    fn format_ext(&self, value: &f64) -> String {
        self.axis.write(*value)
    }
}

/// Told apart also by those who do not see all colours (after Okabe and Ito).
fn colour(name: &str) -> RGBColor {
    match name {
        "stock" => RGBColor(0, 0, 0),
        "stock-tuned" => RGBColor(0, 114, 178),
        "reserve" => RGBColor(204, 121, 167),
        "buddy-181094" => RGBColor(230, 159, 0),
        "pinbuddy" => RGBColor(0, 158, 115),
        "pinbuddy-exact" => RGBColor(86, 180, 233),
        _ => RGBColor(150, 150, 150),
    }
}

/// Writes `FOLDER/FILE.svg`.
pub fn write(chart: &Chart, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let file = folder.join(chart.file).with_extension("svg");
    let text = draw(chart).with_context(|| format!("drawing {}", file.display()))?;
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

fn draw(chart: &Chart) -> Result<String> {
    let mut text = String::new();
    let error = |it: &dyn std::fmt::Display| anyhow!("{it}");
    {
        let root = SVGBackend::with_string(&mut text, (960, 540)).into_drawing_area();
        root.fill(&WHITE).map_err(|it| error(&it))?;
        let values = || chart.series.iter().flat_map(|it| &it.points);
        let places = |axis: Axis, range| Places { axis, range };
        let x = places(chart.x, chart.x.range(values().map(|(x, _)| *x)));
        let y = places(chart.y, chart.y.range(values().map(|(_, y)| *y)));
        let (plot, legend) = root.split_horizontally(800);
        let mut context = ChartBuilder::on(&plot)
            .caption(chart.title, ("sans-serif", 22))
            .margin(12)
            .margin_right(24)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)
            .map_err(|it| error(&it))?;
        context
            .configure_mesh()
            .x_desc(chart.x.label)
            .y_desc(chart.y.label)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .light_line_style(TRANSPARENT)
            .bold_line_style(RGBColor(225, 225, 225))
            .x_labels(12)
            .y_labels(10)
            .draw()
            .map_err(|it| error(&it))?;
        for series in &chart.series {
            let points: Vec<(f64, f64)> = series
                .points
                .iter()
                .map(|(x, y)| (chart.x.place(*x), chart.y.place(*y)))
                .collect();
            let colour = colour(series.name);
            if series.name == "live" {
                let area = AreaSeries::new(points, 0.0, colour.mix(0.35));
                context.draw_series(area).map_err(|it| error(&it))?;
                continue;
            }
            let width = if series.name.starts_with("pinbuddy") {
                3
            } else {
                2
            };
            let marks = points.len() <= 20;
            let dots: Vec<_> = points
                .iter()
                .filter(|_| marks)
                .map(|at| Circle::new(*at, 4, colour.filled()))
                .collect();
            let line = LineSeries::new(points, colour.stroke_width(width));
            context.draw_series(line).map_err(|it| error(&it))?;
            context.draw_series(dots).map_err(|it| error(&it))?;
        }
        draw_legend(chart, &legend).map_err(|it| error(&it))?;
        root.present().map_err(|it| error(&it))?;
    }
    Ok(text)
}

/// Beside the chart, where it covers no line.
fn draw_legend<B: DrawingBackend>(
    chart: &Chart,
    area: &DrawingArea<B, plotters::coord::Shift>,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    for (series, row) in chart.series.iter().zip(0..) {
        let y = 64 + 26 * row;
        let colour = colour(series.name);
        if series.name == "live" {
            let block = Rectangle::new([(0, y - 6), (24, y + 6)], colour.mix(0.35).filled());
            area.draw(&block)?;
        } else {
            let line = PathElement::new([(0, y), (24, y)], colour.stroke_width(3));
            area.draw(&line)?;
        }
        let text = Text::new(series.name, (32, y - 8), ("sans-serif", 16).into_font());
        area.draw(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_what_stands_there() {
        let size = Axis::new("size", Scale::Bytes);
        assert_eq!(size.write(size.place(4096.0)), "4 KiB");
        assert_eq!(size.write(29.0), "512 MiB");
        assert_eq!(size.write(30.0), "1 GiB");
        let count = Axis::new("blocks", Scale::Logarithmic);
        for (value, text) in [(100.0, "100"), (10_000.0, "10 k"), (1e6, "1 M")] {
            assert_eq!(count.write(count.place(value)), text);
        }
        let linear = Axis::new("ns", Scale::Linear);
        assert_eq!(
            (linear.write(80.0), linear.write(2.5)),
            ("80".into(), "2.5".into())
        );
    }

    #[test]
    fn every_value_is_within_the_range() {
        for scale in [Scale::Linear, Scale::Logarithmic, Scale::Doublings] {
            let axis = Axis::new("", scale);
            let range = axis.range([1.0, 80.0, 3.5].into_iter());
            assert!(
                [1.0, 80.0, 3.5]
                    .iter()
                    .all(|it| range.contains(&axis.place(*it)))
            );
            assert!(!axis.range(std::iter::empty()).is_empty());
        }
    }

    #[test]
    fn a_chart_names_its_lines_and_axes() {
        let chart = Chart {
            file: "test",
            title: "A title",
            x: Axis::new("size of the request", Scale::Bytes),
            y: Axis::new("nanoseconds", Scale::Linear),
            series: vec![Series {
                name: "pinbuddy",
                points: vec![(4096.0, 70.0), (65536.0, 75.0)],
            }],
        };
        let text = draw(&chart).unwrap();
        for part in [
            "A title",
            "size of the request",
            "nanoseconds",
            "pinbuddy",
            "64 KiB",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.starts_with("<svg"));
    }
}
