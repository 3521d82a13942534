//! Traces, and what their headers say.
//!
//! A trace that a run recorded says when the streams that used a block were done, and may be cut off; one that was made
//! up has neither.

use std::io::BufRead;

use anyhow::Result;
use pinbuddy_events::trace::{Error, Memory, Reader};
use pinbuddy_events::{Checker, Event, Item};
use serde_json::Value;

use super::About;
use super::open::Readable;

/// The first version of the format that has waits.
const FIRST_WITH_WAITS: u64 = 5;

/// One that may be cut off.
pub(super) fn open(file: &Readable) -> Result<Reader<Box<dyn BufRead>>> {
    Ok(Reader::lenient(file.open()?))
}

/// What the header says, and which memory there may be.
pub(super) fn about(file: &Readable) -> Result<(About, Memory)> {
    let mut reader = open(file)?;
    // Reads the header.
    let first = reader.next().transpose();
    let header = reader.header();
    let memory = header.memory;
    let small = |it: Option<u64>| u32::try_from(it?).ok();
    let megabytes = |it: &Value| it.as_u64().or_else(|| it.as_str()?.parse().ok());
    let setting = |name: &str| {
        let megabytes = header.settings.get(name).and_then(megabytes)?;
        megabytes.checked_mul(1 << 20)
    };
    let recorded = header.torch.is_some() || !header.settings.is_empty();
    let about = About {
        torch: header.torch.clone(),
        rank: small(header.rank).zip(small(header.world_size)),
        threshold: setting("BUDDY_THRESHOLD_MB"),
        budget: setting("BUDDY_MAX_MB"),
        group_limit: header.group_limit,
        recorded,
        // Older ones do not, and traces that were made up have none.
        waits: recorded && reader.version() >= FIRST_WITH_WAITS && memory != Memory::Device,
        uses: true,
        exact_sizes: true,
    };
    first?;
    Ok((about, memory))
}

/// Passes over all events of this memory; returns the line at which the file was cut off.
pub(super) fn each(
    file: &Readable,
    checker: Checker,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<Option<u64>> {
    let mut reader = open(file)?;
    checked(&mut reader, checker, visit)?;
    Ok(reader.cut_off())
}

/// Checks events, and passes over those of the checker's memory.
pub(super) fn checked(
    events: impl Iterator<Item = Result<(u64, Event), Error>>,
    mut checker: Checker,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<()> {
    for item in events {
        let (line, event) = item?;
        if let Some(item) = checker.check(line, event)? {
            visit(item)?;
        }
    }
    Ok(())
}
