//! Axes: positions of values, and labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

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

    /// Below it, or beside.
    pub fn label(self) -> &'static str {
        self.label
    }

    /// The axis for a chart of these values.
    pub fn over(self, values: impl Iterator<Item = f64>) -> Places {
        Places {
            axis: self,
            range: self.range(values),
        }
    }

    /// The position of a value: itself on a linear axis, otherwise its logarithm.
    pub fn place(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.log10(),
            Scale::Doublings | Scale::Bytes => value.log2(),
        }
    }

    /// The range, with a margin at both ends.
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

    /// The label at a position.
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

/// An axis whose marks are at whole logarithms, as many as fit.
#[derive(Clone, Debug)]
pub struct Places {
    axis: Axis,
    range: Range<f64>,
}

impl Places {
    /// If there are few powers of ten, also 2 and 5 times each.
    fn ones_twos_and_fives(&self) -> Vec<f64> {
        let tens = self.range.start.floor() as i32..=self.range.end.floor() as i32;
        tens.flat_map(|ten| [1.0, 2.0, 5.0].map(|it| (it * 10_f64.powi(ten)).log10()))
            .filter(|place| self.range.contains(place))
            .collect()
    }
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
        if self.axis.scale == Scale::Logarithmic && self.range.end - self.range.start < 2.5 {
            return self.ones_twos_and_fives();
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
    fn marks_are_enough_and_round() {
        let axis = Axis::new("", Scale::Logarithmic);
        let marks = |values: [f64; 2]| -> Vec<f64> {
            let marks = axis.over(values.into_iter()).key_points(10);
            marks
                .into_iter()
                .map(|it| 10_f64.powf(it).round())
                .collect()
        };
        assert_eq!(marks([40.0, 350.0]), [50.0, 100.0, 200.0]);
        assert_eq!(marks([100.0, 1e6]), [100.0, 1e3, 1e4, 1e5, 1e6]);
    }
}
