//! Samples for Prometheus, as the node exporter's textfile collector reads them: a file that is replaced as a whole.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use pinbuddy_live::Counters;

use super::row::Row;
use crate::output::Output;

/// A metric: its name, its kind, its meaning, and its value where there is one.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Counters) -> Option<String>,
);

const METRICS: [Metric; 14] = [
    ("pinned_bytes", "gauge", "Pinned host memory.", |it| {
        whole(it.pinned)
    }),
    (
        "pinned_peak_bytes",
        "gauge",
        "The most that was pinned.",
        |it| whole(it.peak_pinned),
    ),
    (
        "live_bytes",
        "gauge",
        "Pinned memory in blocks that the program holds.",
        |it| whole(it.live),
    ),
    (
        "pending_bytes",
        "gauge",
        "Pinned memory that was freed and waits for streams.",
        |it| whole(it.pending),
    ),
    (
        "idle_bytes",
        "gauge",
        "Pinned memory that is neither live nor pending.",
        |it| whole(it.idle()),
    ),
    (
        "budget_bytes",
        "gauge",
        "The most that may be pinned, where there is a limit.",
        |it| it.budget.bytes().and_then(whole),
    ),
    ("segments", "gauge", "Pinned regions.", |it| {
        whole(it.segments)
    }),
    (
        "retired",
        "gauge",
        "1 if the engine met a defect of its own and serves nothing any more.",
        |it| whole(it.retired.into()),
    ),
    (
        "requests_total",
        "counter",
        "Requests that were served.",
        |it| whole(it.served),
    ),
    (
        "misses_total",
        "counter",
        "Times that a request found no room and had memory pinned.",
        |it| whole(it.misses),
    ),
    (
        "planned_requests_total",
        "counter",
        "Requests that places of a plan served.",
        |it| whole(it.planned),
    ),
    (
        "unplanned_requests_total",
        "counter",
        "Requests for which a plan had no place.",
        |it| whole(it.unplanned),
    ),
    (
        "waits_total",
        "counter",
        "Requests that waited for memory to be pinned.",
        |it| whole(it.waits),
    ),
    (
        "wait_seconds_total",
        "counter",
        "How long requests waited for memory to be pinned.",
        |it| {
            Some(format!(
                "{}.{:09}",
                it.waited / 1_000_000_000,
                it.waited % 1_000_000_000
            ))
        },
    ),
];

fn whole(number: u64) -> Option<String> {
    Some(number.to_string())
}

/// Refuses a name that nobody would read.
pub(super) fn check_name(file: &Path) -> Result<()> {
    if file.extension().is_some_and(|it| it == "prom") {
        return Ok(());
    }
    bail!(
        "--prometheus {}: expected a name that ends with .prom, since the node exporter reads no other; for instance \
         --prometheus /var/lib/node_exporter/pinbuddy.prom",
        file.display()
    )
}

/// Replaces the file.
pub(super) fn write(file: &Path, rows: &[Row]) -> Result<()> {
    let text = samples(rows);
    Output::new(file, &[])?.write(|to| to.write_all(text.as_bytes()))
}

/// All samples, metric by metric.
fn samples(rows: &[Row]) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in METRICS {
        let _ = write!(
            text,
            "# HELP pinbuddy_{name} {help}\n# TYPE pinbuddy_{name} {kind}\n"
        );
        for row in rows {
            if let Some(page) = row.page()
                && let Some(value) = value(&page.counters)
            {
                let rank = page
                    .process
                    .rank
                    .map_or(String::new(), |(rank, _)| rank.to_string());
                let program = escaped(&page.process.program);
                let _ = writeln!(
                    text,
                    "pinbuddy_{name}{{pid=\"{}\",program=\"{program}\",rank=\"{rank}\"}} {value}",
                    row.pid
                );
            }
        }
    }
    text
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
