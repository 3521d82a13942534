//! What to set for a program like each workload, as `advise` says it of a trace.

use std::fmt;

use crate::advise::{Advice, Brief, advise};
use crate::input::Input;
use crate::plan::search;
use anyhow::Result;
use pinbuddy_replay::workload::Workload;

use super::Comparison;
use crate::cli;

/// How long a plan is looked for: a hint, not a plan to be used.
const SECONDS: f64 = 0.5;

/// Advice for those of `traces` that are workloads; none where policies were chosen.
pub(super) fn of_workloads(args: &cli::Simulate, traces: &[Comparison]) -> Result<Vec<Advice>> {
    if !args.policies.is_empty() {
        return Ok(Vec::new());
    }
    let made = traces
        .iter()
        .filter_map(|it| Some((Workload::named(&it.trace)?, it.made?)));
    made.map(|(workload, made)| {
        let events = move || -> Box<dyn Iterator<Item = _>> {
            Box::new(workload.events(made.seed, made.steps))
        };
        let input = Input::generated(workload.name, Box::new(events));
        advise(&input, &mut |record| search(record, SECONDS, None))
    })
    .collect()
}

/// For people.
pub(super) struct Text<'a>(pub(super) &'a [Advice]);

impl fmt::Display for Text<'_> {
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
