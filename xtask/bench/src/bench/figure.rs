//! The results of a run: figures with targets, and details.
//!
//! Invariant: the JSON's top level has only the keys of figures, and `context`.

use std::fmt;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::plot::Chart;
use super::stats::Spread;
use xtask_support::refusal::refuse;

/// A target for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Target {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "<= {}", rounded(*bound)),
            Self::AtLeast(bound) => write!(f, ">= {}", rounded(*bound)),
        }
    }
}

/// One number, under a key and names below it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its path in the JSON.
    pub path: Vec<String>,
    /// What was measured.
    pub value: f64,
    /// The spread over the rounds, if there were several.
    pub spread: Option<Spread>,
    /// Its target, if any.
    pub target: Option<Target>,
}

/// The results of all parts.
#[derive(Debug, Default)]
pub struct Results {
    figures: Vec<Figure>,
    /// Details by part: absolute figures, other allocators, measurements of scripts.
    details: Map<String, Value>,
    /// Skipped measurements, with reasons.
    skipped: Map<String, Value>,
    /// Printed tables, in the order of parts.
    pub tables: Vec<String>,
    /// The plots.
    pub charts: Vec<Chart>,
}

impl Results {
    /// Adds a figure of a single measurement.
    pub fn value(&mut self, path: &[&str], value: f64, target: Option<Target>) {
        self.push(path, value, None, target);
    }

    /// Adds a figure, the median of rounds.
    pub fn rounds(&mut self, path: &[&str], rounds: &[f64], target: Option<Target>) {
        let spread = Spread::of(rounds);
        self.push(path, spread.median, Some(spread), target);
    }

    fn push(&mut self, path: &[&str], value: f64, spread: Option<Spread>, target: Option<Target>) {
        let path = path.iter().map(|&it| it.to_owned()).collect();
        self.figures.push(Figure {
            path,
            value,
            spread,
            target,
        });
    }

    /// Adds details of a part.
    pub fn detail(&mut self, part: &str, value: Value) {
        self.details.insert(part.to_owned(), value);
    }

    /// Records a skipped measurement.
    pub fn skip(&mut self, what: &str, why: &str) {
        self.skipped.insert(what.to_owned(), why.into());
    }

    /// All results as JSON, with `context`.
    pub fn json(&self, mut context: Map<String, Value>) -> Value {
        let mut all = Map::new();
        let mut spreads = Map::new();
        for figure in &self.figures {
            insert(&mut all, &figure.path, rounded(figure.value));
            if let Some(Spread { least, most, .. }) = figure.spread {
                let ends = json!([rounded(least), rounded(most)]);
                insert(&mut spreads, &figure.path, ends);
            }
        }
        if let Some(Value::Object(figures)) = all.remove("context") {
            context.extend(figures);
        }
        context.insert("spread".to_owned(), spreads.into());
        context.insert("skipped".to_owned(), self.skipped.clone().into());
        context.insert("details".to_owned(), self.details.clone().into());
        all.insert("context".to_owned(), context.into());
        all.into()
    }

    /// Whether each figure is a finite number.
    pub fn all_are_positive(&self) -> bool {
        self.figures
            .iter()
            .all(|it| it.value.is_finite() && it.value > 0.0)
    }

    /// Refuses a run that misses a target, or that has no figure with a target.
    pub fn require_targets(&self) -> Result<()> {
        let missed: Vec<_> = self
            .figures
            .iter()
            .filter_map(|it| Some((it, it.target?)))
            .filter(|(it, target)| !target.is_met_by(it.value))
            .map(|(it, target)| format!("{} {:.3}, target {target}", it.path.join(" "), it.value))
            .collect();
        let (judged, _) = self.met();
        let what = match (judged, missed.len()) {
            (0, _) => "the run has no figure with a target".to_owned(),
            (_, 0) => return Ok(()),
            (_, count) => format!("{count} of {judged} figures are out of bounds"),
        };
        Err(refuse(what)
            .found(missed.join("\n"))
            .expected("every target met (--strict)")
            .remedy("cargo xtask bench --only PART, for the part that it comes from, and look at the spread")
            .into())
    }

    /// The number of figures with a target, and how many meet it.
    pub fn met(&self) -> (usize, usize) {
        let judged = self
            .figures
            .iter()
            .filter_map(|it| Some((it.target?, it.value)));
        let met = judged
            .clone()
            .filter(|(target, value)| target.is_met_by(*value));
        (judged.count(), met.count())
    }
}

/// The table of figures with a target, and of skipped measurements.
impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = || self.figures.iter().filter_map(|it| Some((it, it.target?)));
        if judged().next().is_some() {
            let name = |figure: &Figure| figure.path.join(" ");
            let longest = judged().map(|(it, _)| name(it).chars().count()).max();
            let width = longest.unwrap_or(0) + 2;
            writeln!(
                f,
                "{:<width$}{:>9}{:>10}  {:5}spread",
                "", "", "target", "met"
            )?;
            for (figure, target) in judged() {
                let met = if target.is_met_by(figure.value) {
                    "yes"
                } else {
                    "no"
                };
                let spread = figure.spread.map_or_else(String::new, |it| {
                    format!("{:.3} to {:.3}", it.least, it.most)
                });
                let line = format!(
                    "{:<width$}{:>9.3}{:>10}  {met:5}{spread}",
                    name(figure),
                    figure.value,
                    target.to_string()
                );
                writeln!(f, "{}", line.trim_end())?;
            }
            let (judged, met) = self.met();
            writeln!(f, "{met} of {judged} targets met")?;
        }
        for (what, why) in &self.skipped {
            writeln!(f, "left out: {what}: {}", why.as_str().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Four significant digits.
fn rounded(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(if value == 0.0 { Some(0.0) } else { None });
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    json!((value * scale).round() / scale)
}

fn insert(into: &mut Map<String, Value>, path: &[String], value: impl Into<Value>) {
    match path {
        [] => {}
        [last] => {
            into.insert(last.clone(), value.into());
        }
        [first, rest @ ..] => {
            let below = into
                .entry(first.clone())
                .or_insert_with(|| Map::new().into());
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut results = Results::default();
        let hit = Some(Target::AtMost(0.8));
        results.rounds(&["hit_pair_ratio", "8MiB"], &[0.7, 0.9, 0.75], hit);
        results.rounds(&["hit_pair_ratio", "mixed"], &[0.91, 0.89, 0.9], hit);
        let speed = Some(Target::AtLeast(10.0));
        results.value(&["first_iteration_speedup", "ready"], 1234.567, speed);
        results.value(&["pinned_over_requested", "stock", "kv-cache"], 1.98, None);
        results.value(&["build_wheel_s"], 61.23, None);
        results.value(&["context", "slowest_over_fastest"], 1.5, None);
        results.skip("rmm", "its pool asks a real driver");
        results.detail("hit", json!({"stock_ns": 72.0}));
        results
    }

    #[test]
    fn table_and_json() {
        insta::assert_snapshot!("table", results().to_string());
        let mut context = Map::new();
        context.insert("rounds".to_owned(), json!(3));
        let json = serde_json::to_string_pretty(&results().json(context)).unwrap();
        insta::assert_snapshot!("json", json);
    }

    #[test]
    fn a_bound_is_met_by_itself() {
        assert!(Target::AtMost(0.8).is_met_by(0.8) && !Target::AtMost(0.8).is_met_by(0.81));
        assert!(Target::AtLeast(3.0).is_met_by(3.0) && !Target::AtLeast(3.0).is_met_by(2.9));
        assert_eq!(results().met(), (3, 2));
    }

    #[test]
    fn strict_is_every_target_and_at_least_one() {
        insta::assert_snapshot!("strict", results().require_targets().unwrap_err());
        let mut good = Results::default();
        assert!(good.require_targets().is_err(), "nothing was judged");
        good.value(&["miss_ratio"], 2.0, Some(Target::AtMost(3.0)));
        good.require_targets().unwrap();
        // NaN meets no target.
        good.value(&["warmup"], f64::NAN, Some(Target::AtLeast(3.0)));
        assert!(good.require_targets().is_err());
    }

    #[test]
    fn four_digits() {
        for (value, expected) in [(0.123_456, 0.1235), (72.346, 72.35), (12_345.6, 12350.0)] {
            assert_eq!(rounded(value), json!(expected));
        }
        assert_eq!(rounded(0.0), json!(0.0));
        assert_eq!(rounded(f64::INFINITY), Value::Null);
    }
}
