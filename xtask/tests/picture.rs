//! The README's picture, drawn from the committed runs: what gains most and least. A bar is a ratio over stock,
//! on a logarithmic axis whose middle line is stock.
//!
//! `PINBUDDY_DRAW=1 cargo test -p xtask --test picture` draws it anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

const PICTURE: &str = "docs/pictures/best-and-worst.svg";
const BENCH: &str = "docs/results/2026-11-22-bench.json";
const PLAN: &str = "docs/results/2026-11-25-plan.json";
const WORST: &str = "docs/results/2026-11-23-worst.json";

/// What a bar stands for: its text, the run, and the figure there; over a second one, if there is one.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: [Row; 11] = [
    (
        "first iteration after a warm-up: time",
        BENCH,
        "1",
        "/first_iteration_speedup/ready",
    ),
    (
        "eight threads, 8 MiB: time of a pair",
        WORST,
        "1",
        "/threads_ratio/8",
    ),
    (
        "allocate + free 8 MiB: time",
        WORST,
        "/hit_pair_ratio/8MiB",
        "",
    ),
    (
        "DataLoader batches: memory pinned",
        PLAN,
        "/pinned_over_requested/pinbuddy/data-loader",
        "/pinned_over_requested/stock/data-loader",
    ),
    (
        "sizes that vary: memory pinned",
        PLAN,
        "/pinned_over_requested/pinbuddy/variable-lengths",
        "/pinned_over_requested/stock/variable-lengths",
    ),
    (
        "cold start, 16 x 129.5 MiB: time",
        WORST,
        "/worst/cold-large/seconds_ratio",
        "",
    ),
    (
        "KV cache: memory pinned",
        PLAN,
        "/pinned_over_requested/pinbuddy/kv-cache",
        "/pinned_over_requested/stock/kv-cache",
    ),
    (
        "a DataLoader that pins little: time",
        WORST,
        "/worst/loader/seconds_ratio",
        "",
    ),
    (
        "a buffer above 1 GiB that grows: pins",
        WORST,
        "/worst/growing-large-new/pins_ratio",
        "",
    ),
    (
        "sizes that never come again: time of a pair",
        WORST,
        "/worst/pairs/never-again",
        "",
    ),
    (
        "fifty sizes in no order: time of a pair",
        WORST,
        "/worst/pairs/50-random",
        "",
    ),
];

/// Pixels: the axis' ends, and a row.
const LEFT: f64 = 380.0;
const RIGHT: f64 = 760.0;
const ROW: f64 = 26.0;
/// Ratios at the axis' ends, and the lines across.
const LEAST: f64 = 0.01;
const MOST: f64 = 10.0;
const LINES: [(f64, &str); 4] = [
    (0.01, "100 times less"),
    (0.1, "10 times less"),
    (1.0, "stock"),
    (10.0, "10 times more"),
];

#[test]
fn the_picture_is_drawn_from_the_committed_runs() {
    let file = root().join(PICTURE);
    let drawn = draw();
    if env::var_os("PINBUDDY_DRAW").is_some() {
        fs::write(&file, &drawn).unwrap();
    }
    let remedy = "PINBUDDY_DRAW=1 cargo test -p xtask --test picture, and look at it";
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        drawn,
        "{PICTURE}: {remedy}"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A row's ratio.
fn ratio((text, file, above, below): Row) -> f64 {
    let run = fs::read_to_string(root().join(file)).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    let number = |at: &str| match at {
        "" | "1" => 1.0,
        at => run
            .pointer(at)
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("{text}: {file} has no {at}")),
    };
    number(above) / number(below)
}

fn place(ratio: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (ratio / LEAST).ln() / (MOST / LEAST).ln()
}

fn draw() -> String {
    let bottom = 70.0 + ROW * ROWS.len() as f64;
    let height = bottom + 34.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 {height}\" role=\"img\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <title>pinbuddy over stock, from what gains most to what gains least</title>\n\
         <style>text{{fill:#1f2328}}.better{{fill:#009e73}}.worse{{fill:#d55e00}}.line{{stroke:#8c959f;stroke-width:1}}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}}}</style>\n\
         <text x=\"12\" y=\"24\" font-size=\"17\" font-weight=\"bold\">pinbuddy over stock: lower is better</text>\n\
         <text x=\"12\" y=\"44\" font-size=\"12\">simulated, no GPU: two cores, pages locked for real</text>\n"
    );
    for (value, text) in LINES {
        let x = place(value);
        writeln!(
            svg,
            "<line class=\"line\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"58\" y2=\"{bottom}\"/>"
        )
        .unwrap();
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{}\" font-size=\"12\" text-anchor=\"middle\">{text}</text>",
            bottom + 18.0
        )
        .unwrap();
    }
    let stock = place(1.0);
    for (row, number) in ROWS.into_iter().zip(0_u32..) {
        let (ratio, y) = (ratio(row), 62.0 + ROW * f64::from(number));
        let (x, class) = (place(ratio), if ratio <= 1.0 { "better" } else { "worse" });
        let (from, width) = (x.min(stock), (x - stock).abs().max(1.0));
        let (at, anchor) = if ratio <= 1.0 {
            (x - 6.0, "end")
        } else {
            (x + 6.0, "start")
        };
        writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\"/>"
        )
        .unwrap();
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"13\">{}</text>",
            LEFT - 62.0,
            y + 14.0,
            row.0
        )
        .unwrap();
        writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"{anchor}\" font-weight=\"bold\" font-size=\"13\">{}</text>", y + 14.0, shown(ratio)).unwrap();
    }
    svg + "</svg>\n"
}

fn shown(ratio: f64) -> String {
    if ratio < 0.1 {
        format!("{ratio:.3}")
    } else {
        format!("{ratio:.2}")
    }
}
