//! Samples for Prometheus, as the node exporter's textfile collector reads them: a file that is replaced as a whole.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use pinbuddy_live::Counters;

use super::row::Row;
use crate::output::Output;

/// A name, its meaning, and a value where there is one. What only grows has a name that ends with `_total`.
type Metric = (&'static str, &'static str, Option<String>);

fn metric(name: &'static str, help: &'static str, number: u64) -> Metric {
    (name, help, Some(number.to_string()))
}

fn seconds(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{seconds}.{rest:09}")
}

fn metrics(of: &Counters) -> [Metric; 14] {
    [
        metric("pinned_bytes", "Pinned host memory.", of.pinned),
        metric(
            "pinned_peak_bytes",
            "The most that was pinned.",
            of.peak_pinned,
        ),
        metric(
            "live_bytes",
            "Pinned memory in blocks that the program holds.",
            of.live,
        ),
        metric(
            "pending_bytes",
            "Pinned memory that was freed and waits for streams.",
            of.pending,
        ),
        metric(
            "idle_bytes",
            "Pinned memory that is neither live nor pending.",
            of.idle(),
        ),
        (
            "budget_bytes",
            "The most that may be pinned, where there is a limit.",
            of.budget.bytes().map(|it| it.to_string()),
        ),
        metric("segments", "Pinned regions.", of.segments),
        metric(
            "retired",
            "1 if the engine met a defect of its own and serves nothing any more.",
            of.retired.into(),
        ),
        metric("requests_total", "Requests that were served.", of.served),
        metric(
            "misses_total",
            "Times that a request found no room and had memory pinned.",
            of.misses,
        ),
        metric(
            "planned_requests_total",
            "Requests that places of a plan served.",
            of.planned,
        ),
        metric(
            "unplanned_requests_total",
            "Requests for which a plan had no place.",
            of.unplanned,
        ),
        metric(
            "waits_total",
            "Requests that waited for memory to be pinned.",
            of.waits,
        ),
        (
            "wait_seconds_total",
            "How long requests waited for memory to be pinned.",
            Some(seconds(of.waited)),
        ),
    ]
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
    let pages: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.pid, row.page()?)))
        .collect();
    let mut text = String::new();
    for (at, (name, help, _)) in metrics(&Counters::default()).into_iter().enumerate() {
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        text += &format!("# HELP pinbuddy_{name} {help}\n# TYPE pinbuddy_{name} {kind}\n");
        for (pid, page) in &pages {
            if let Some(value) = &metrics(&page.counters)[at].2 {
                let rank = page
                    .process
                    .rank
                    .map_or(String::new(), |(rank, _)| rank.to_string());
                let program = escaped(&page.process.program);
                text += &format!(
                    "pinbuddy_{name}{{pid=\"{pid}\",program=\"{program}\",rank=\"{rank}\"}} {value}\n"
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
