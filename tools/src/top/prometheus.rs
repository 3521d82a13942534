//! Samples for Prometheus, as the node exporter's textfile collector reads them: a file that is replaced as a whole.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use pinbuddy_live::Counters;

use super::row::Row;
use crate::output::Output;

/// A name and its meaning in each line. What only grows has a name that ends with `_total`.
const METRICS: &str = "\
pinned_bytes Pinned host memory.
pinned_peak_bytes The most that was pinned.
live_bytes Pinned memory in blocks that the program holds.
pending_bytes Pinned memory that was freed and waits for streams.
idle_bytes Pinned memory that is neither live nor pending.
budget_bytes The most that may be pinned, where there is a limit.
segments Pinned regions.
retired 1 if the engine met a defect of its own and serves nothing any more.
requests_total Requests that were served.
misses_total Times that a request found no room and had memory pinned.
planned_requests_total Requests that places of a plan served.
unplanned_requests_total Requests for which a plan had no place.
waits_total Requests that waited for memory to be pinned.
wait_seconds_total How long requests waited for memory to be pinned.
";

fn seconds(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    format!("{seconds}.{rest:09}")
}

/// Values of [`METRICS`], where there is one.
fn values(of: &Counters) -> [Option<String>; 14] {
    let number = |it: u64| Some(it.to_string());
    [
        number(of.pinned),
        number(of.peak_pinned),
        number(of.live),
        number(of.pending),
        number(of.idle()),
        of.budget.bytes().and_then(number),
        number(of.segments),
        number(of.retired.into()),
        number(of.served),
        number(of.misses),
        number(of.planned),
        number(of.unplanned),
        number(of.waits),
        Some(seconds(of.waited)),
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
    let mut text = String::new();
    for (at, line) in METRICS.lines().enumerate() {
        let (name, help) = line.split_once(' ').unwrap_or_default();
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        text += &format!("# HELP pinbuddy_{name} {help}\n# TYPE pinbuddy_{name} {kind}\n");
        for row in rows {
            let (pid, Some(page)) = (row.pid, row.page()) else {
                continue;
            };
            let process = &page.process;
            if let Some(value) = &values(&page.counters)[at] {
                let rank = process.rank.map_or(String::new(), |it| it.0.to_string());
                let program = escaped(&process.program);
                let labels = format!("{{pid=\"{pid}\",program=\"{program}\",rank=\"{rank}\"}}");
                text += &format!("pinbuddy_{name}{labels} {value}\n");
            }
        }
    }
    text
}

fn escaped(label: &str) -> String {
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    label.replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
