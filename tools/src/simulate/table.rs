//! The printed table: one row per policy.

use std::fmt;

use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::replay::Outcome;

use super::{Answer, Comparison};
use crate::advise::{Advice, Brief};
use crate::baseline::stopped;

/// One trace's table.
pub(super) struct Table<'a>(pub(super) &'a Comparison, pub(super) &'a [Kind]);

const HEADINGS: [&str; 9] =
    ["pinned", "over live", "after clear", "last clear", "pins", "after step 1", "unpins", "misses", "M requests/s"];

/// With fewer requests and frees, a speed only shows the clock's resolution.
const TIMED: u64 = 10_000;

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(comparison, kinds) = self;
        write!(f, "{}", comparison.trace)?;
        if let Some(made) = comparison.made {
            write!(f, ", {} steps, seed {}", made.steps, made.seed)?;
        }
        let outcomes = &comparison.policies;
        if let Some(outcome) = outcomes.values().next() {
            let live = gib(outcome.largest_live_bytes);
            let requests = outcome.allocations;
            write!(f, ": {requests} requests, at most {live} live")?;
        }
        write!(f, "\n  {:16}", "")?;
        for heading in HEADINGS {
            write!(f, "{heading:>14}")?;
        }
        for kind in *kinds {
            let Some(outcome) = outcomes.get(kind.name()) else {
                continue;
            };
            write!(f, "\n  {:16}", kind.name())?;
            for cell in cells(outcome) {
                write!(f, "{cell:>14}")?;
            }
        }
        Ok(())
    }
}

fn cells(outcome: &Outcome) -> [String; HEADINGS.len()] {
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}"));
    let timed = outcome.allocations + outcome.frees >= TIMED;
    let speed = outcome.requests_per_second.filter(|_| timed);
    [
        gib(outcome.peak_pinned_bytes),
        ratio(outcome.pinned_over_requested),
        ratio(outcome.after_clear_over_live),
        ratio(outcome.after_last_clear_over_live),
        outcome.pins.to_string(),
        outcome.pins_after_first_step.to_string(),
        outcome.unpins.to_string(),
        outcome.misses.to_string(),
        speed.map_or_else(|| "-".to_owned(), |it| format!("{:.1}", it / 1e6)),
    ]
}

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / (1_u64 << 30) as f64)
}

/// What to set for each workload.
pub(super) struct Advised<'a>(pub(super) &'a [Advice]);

impl fmt::Display for Advised<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for advice in self.0 {
            writeln!(f, "{}", advice.trace)?;
            for line in Brief(advice).to_string().lines() {
                writeln!(f, "  {line}")?;
            }
            for finding in &advice.findings {
                writeln!(f, "  {}: {}", finding.what, finding.evidence)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The text below all tables.
pub(super) fn footer(answer: &Answer) -> String {
    let mut text = String::from(
        "pinned: the most at one moment; over live: that over the largest live set. after clear: \
         pinned over live\nright after an empty_cache, the mean of all and the last.\n",
    );
    let events: u64 = answer.traces.iter().map(|it| it.events).sum();
    let reading: f64 = answer.traces.iter().map(|it| it.reading_seconds).sum();
    text += &format!("{events} events read and checked in {reading:.2} s");
    if let Some(bytes) = answer.peak_memory_bytes {
        text += &format!(", in {} MiB of memory at most", bytes >> 20);
    }
    text.push_str(".\n");
    let mut outcomes = answer.traces.iter().flat_map(|it| it.policies.values());
    if outcomes.any(stopped) {
        text.push_str("What pinned more than 2 TiB was replayed no further.\n");
    }
    if !answer.optimized {
        text.push_str(
            "Speeds are of a build that checks itself; `cargo run --release -p pinbuddy-tools -- simulate` is fast.\n",
        );
    }
    text
}
