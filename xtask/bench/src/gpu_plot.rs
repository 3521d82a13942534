//! Draws the plots of a GPU run from its results.json. Skips what was not measured.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::axis::{Axis, Scale};
use crate::bench::plot::{self, Chart, Line, Series};
use crate::cli::Plot;
use xtask_support::refusal::refuse;

/// Line names by key of the results: stock's and ours.
const STEPS: [&str; 3] = ["stock", "warmed", "defaults"];
const COPIES: [&str; 4] = ["stock", "engine", "engine, 4 KiB", "engine, chunks"];
const PAGES: [&str; 3] = ["4 KiB", "THP", "hugetlb"];

pub fn run(args: &Plot) -> Result<()> {
    let drawn = draw(&args.results, &args.out)?;
    eprintln!("{drawn} plots in {}", args.out.display());
    Ok(())
}

/// Draws into `folder`; returns the number of plots.
pub fn draw(results: &Path, folder: &Path) -> Result<usize> {
    let text =
        fs::read_to_string(results).with_context(|| format!("reading {}", results.display()))?;
    let value: Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is not JSON", results.display()))?;
    let charts = charts(&value);
    if charts.is_empty() {
        return Err(refuse(format!("{} has nothing to draw", results.display()))
            .expected("`measured` with pins, bandwidth, transformer or optimizer")
            .remedy("ci/gpu/run.sh, without --only or with one of these")
            .into());
    }
    for chart in &charts {
        plot::write(chart, folder, &[])?;
    }
    Ok(charts.len())
}

fn charts(results: &Value) -> Vec<Chart> {
    let measured = &results["measured"];
    let simulated = results["simulated"] == true;
    let title = |text: &str| match simulated {
        true => format!("{text} (simulated: no GPU)"),
        false => text.to_owned(),
    };
    let steps = |workload: &str, file, text: &str| {
        let lines = series(&STEPS, |key| {
            by_step(&measured[workload]["first_steps_s"][key])
        });
        chart(
            file,
            title(text),
            Axis::new("step", Scale::Linear),
            Axis::new("seconds", Scale::Linear),
            lines,
        )
    };
    let copies = |direction: &str, file, text: &str| {
        let lines = series(&COPIES, |key| {
            by_size(&measured["bandwidth"]["gb_per_s"][direction], key)
        });
        chart(
            file,
            title(text),
            Axis::new("size of a copy", Scale::Bytes),
            Axis::new("GB/s", Scale::Linear),
            lines,
        )
    };
    let charts = [
        pins(&measured["pins"]["s_per_gib"], title("What pinning costs")),
        copies("h2d", "bandwidth-h2d", "Copies to the GPU"),
        copies("d2h", "bandwidth-d2h", "Copies from the GPU"),
        steps(
            "transformer",
            "steps-transformer",
            "First steps, activations offloaded",
        ),
        steps(
            "optimizer",
            "steps-optimizer",
            "First steps, optimizer offloaded",
        ),
    ];
    charts
        .into_iter()
        .filter(|it| !it.series.is_empty())
        .collect()
}

fn chart(file: &'static str, title: String, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
    Chart {
        file,
        title,
        x,
        y,
        line: Line::Marked,
        series,
    }
}

/// The lines that have points.
fn series(names: &[&'static str], points: impl Fn(&str) -> Vec<(f64, f64)>) -> Vec<Series> {
    let lines = names.iter().map(|name| Series {
        name,
        points: points(name),
    });
    lines.filter(|it| !it.points.is_empty()).collect()
}

/// Seconds per GiB by threads; constant for cudaHostAlloc, which has no such choice.
fn pins(cost: &Value, title: String) -> Chart {
    let median = |name: &str| cost[name]["median"].as_f64();
    let threads = [1.0, 2.0, 4.0, 8.0, 16.0];
    let mut lines = series(&PAGES, |pages| {
        let point = |count: &f64| Some((*count, median(&format!("{pages}, {count}"))?));
        threads.iter().filter_map(point).collect()
    });
    if let Some(stock) = median("cudaHostAlloc").filter(|_| !lines.is_empty()) {
        let measured = threads.iter().filter(|count| {
            lines
                .iter()
                .any(|line| line.points.iter().any(|(at, _)| at == *count))
        });
        let points = measured.map(|count| (*count, stock)).collect();
        lines.push(Series {
            name: "stock",
            points,
        });
    }
    let (x, y) = ("threads", "seconds a GiB");
    chart(
        "pins",
        title,
        Axis::new(x, Scale::Doublings),
        Axis::new(y, Scale::Linear),
        lines,
    )
}

/// The seconds of each step.
fn by_step(seconds: &Value) -> Vec<(f64, f64)> {
    let all = seconds.as_array().into_iter().flatten();
    let numbered = all
        .zip(1_u32..)
        .filter_map(|(it, step)| Some((f64::from(step), it.as_f64()?)));
    numbered.collect()
}

/// The median of `key` for each size, such as `16 MiB`.
fn by_size(sizes: &Value, key: &str) -> Vec<(f64, f64)> {
    let all = sizes.as_object().into_iter().flatten();
    let mut points: Vec<(f64, f64)> = all
        .filter_map(|(size, by)| {
            let mib: f64 = size.strip_suffix(" MiB")?.parse().ok()?;
            Some((mib * f64::from(1 << 20), by[key]["median"].as_f64()?))
        })
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(results: &Value) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("results.json");
        fs::write(&file, results.to_string())?;
        draw(&file, folder.path())?;
        let mut plots: Vec<String> = fs::read_dir(folder.path())?
            .map(|entry| entry.map(|it| it.file_name().to_string_lossy().into_owned()))
            .collect::<std::io::Result<_>>()?;
        plots.retain(|it| it.ends_with(".svg"));
        plots.sort();
        let first = fs::read_to_string(folder.path().join(&plots[0]))?;
        plots.push(first);
        Ok(plots)
    }

    #[test]
    fn what_was_measured_is_drawn_and_nothing_else() {
        let cost = |median: f64| json!({"median": median});
        let results = json!({
            "simulated": true,
            "measured": {
                "pins": {"s_per_gib": {
                    "cudaHostAlloc": cost(0.5), "THP, 1": cost(0.2), "THP, 8": cost(0.05),
                }},
                "transformer": {"first_steps_s": {"stock": [3.0, 1.0], "warmed": [1.0, 1.0]}},
            },
        });
        let drawn = drawn(&results).unwrap();
        assert_eq!(drawn[..2], ["pins.svg", "steps-transformer.svg"]);
        assert!(
            drawn[2].contains("simulated"),
            "nobody takes it for a GPU's"
        );
        let all = charts(&results);
        assert_eq!(all[0].series[1].points, [(1.0, 0.5), (8.0, 0.5)]);
        assert_eq!(all[1].series[0].points, [(1.0, 3.0), (2.0, 1.0)]);
    }

    #[test]
    fn copies_are_in_the_order_of_their_sizes() {
        let sizes = json!({
            "256 MiB": {"stock": {"median": 50.0}},
            "16 MiB": {"stock": {"median": 40.0}},
        });
        let mib = f64::from(1 << 20);
        assert_eq!(
            by_size(&sizes, "stock"),
            [(16.0 * mib, 40.0), (256.0 * mib, 50.0)]
        );
    }

    #[test]
    fn nothing_measured_is_said() {
        let error = drawn(&json!({"measured": {}})).unwrap_err().to_string();
        assert!(error.contains("has nothing to draw"), "{error}");
    }
}
