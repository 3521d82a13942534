//! Snapshots, whose events are checked as those of traces are.
//!
//! A snapshot does not say when the cache was emptied: memory that is given back to the driver piece after piece, with
//! no request in between, counts as that.

use std::io::BufRead;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use pinbuddy_events::{Checker, Event, Item, MOST_BYTES, Op, Whose};
use pinbuddy_snapshot::Snapshot;

use super::counts::Counts;

/// A snapshot of this name has nothing to read.
pub(crate) fn unrecorded(name: &str) -> Error {
    anyhow!(
        "{name} has no events: the history was not recorded. To do: torch.cuda.memory._record_memory_history() before the steps, \
         torch.cuda.memory._dump_snapshot(FILE) after them"
    )
}

pub(super) fn read(from: impl BufRead, name: &str, is_pickle: bool, device: Option<u32>) -> Result<(Snapshot, Whose)> {
    let snapshot = match is_pickle {
        true => Snapshot::read(from).with_context(|| format!("{name} is no snapshot that can be used"))?,
        false => {
            Snapshot::read_table(from).with_context(|| format!("{name} is no table of events that can be used"))?
        }
    };
    if snapshot.whose().is_none() {
        return Err(unrecorded(name));
    }
    let whose = Counts::of(&snapshot).choose(name, device)?;
    Ok((snapshot, whose))
}

pub(super) fn each(
    snapshot: &Snapshot,
    name: &str,
    mut checker: Checker,
    whose: Whose,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<()> {
    let mut giving_back = false;
    for (line, event) in (1..).zip(snapshot.events(whose)) {
        if let Op::Request { bytes, .. } = event.op
            && bytes > MOST_BYTES
        {
            bail!("{name}, event {line}: expected a request of at most {MOST_BYTES} bytes, found {bytes}");
        }
        let checked = checker.check(line, event);
        let checked = checked.map_err(|why| anyhow!("{name}, event {line}: {}", why.what))?;
        let Some(item) = checked else {
            continue;
        };
        visit(item)?;
        let gives_back = matches!(event.op, Op::SegmentFree { .. });
        if gives_back && !giving_back {
            visit(Item { event: Event { op: Op::Clear, ..event }, bytes: 0, ..item })?;
        }
        giving_back = gives_back;
    }
    Ok(())
}
