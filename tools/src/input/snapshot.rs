//! Snapshots as events with small numbers for blocks.
//!
//! A snapshot does not say when the cache was emptied: memory that is given back to the driver piece after piece, with
//! no request in between, counts as that.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::{Context as _, Result, bail};
use pinbuddy_snapshot::{Op, Snapshot, Whose};
use pinbuddy_trace::MOST_BYTES;
use pinbuddy_trace::checked::MOST_LIVE;

use super::numbers::Numbers;
use super::{Item, What};

pub(super) fn read(
    from: impl BufRead,
    name: &str,
    is_pickle: bool,
    device: Option<usize>,
) -> Result<(Snapshot, Whose)> {
    let snapshot = match is_pickle {
        true => Snapshot::read(from)
            .with_context(|| format!("{name} is no snapshot that can be used"))?,
        false => Snapshot::read_table(from)
            .with_context(|| format!("{name} is no table of events that can be used"))?,
    };
    if snapshot.whose().is_none() {
        bail!(
            "{name} has no events: the history was not recorded. To do: torch.cuda.memory._record_memory_history() before the \
             steps, torch.cuda.memory._dump_snapshot(FILE) after them"
        );
    }
    let whose = match device {
        Some(device) => Whose::Device(device),
        None => snapshot.whose().unwrap_or(Whose::Host),
    };
    if snapshot.entries(whose).is_empty() {
        let with: Vec<String> = (0..snapshot.devices.len())
            .filter(|it| !snapshot.devices[*it].is_empty())
            .map(|it| it.to_string())
            .collect();
        bail!(
            "{name} has no events of that device; it has those of: {}",
            with.join(", ")
        );
    }
    Ok((snapshot, whose))
}

pub(super) fn each(
    snapshot: &Snapshot,
    whose: Whose,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<()> {
    let mut numbers = Numbers::default();
    // By id: the number and the bytes.
    let mut blocks: HashMap<u64, (u32, u64)> = HashMap::new();
    let mut live = 0_u64;
    let mut giving_back = false;
    for (line, event) in (1..).zip(snapshot.events(whose)) {
        let at = event.at;
        let mut say = |what| visit(Item { line, at, what });
        let gives_back = matches!(event.op, Op::Unpin { .. });
        match event.op {
            Op::Alloc { id, bytes, stream } => {
                live = live.saturating_add(bytes);
                if bytes > MOST_BYTES || live > MOST_LIVE {
                    bail!(
                        "event {line}: expected a request of at most {MOST_BYTES} bytes and {MOST_LIVE} live at once, found \
                         {bytes} and {live}"
                    );
                }
                let block = numbers.take();
                blocks.insert(id, (block, bytes));
                // A snapshot does not say which thread asked.
                let thread = 0;
                say(What::Request {
                    id,
                    block,
                    bytes,
                    thread,
                    private: false,
                    stream,
                })?;
            }
            Op::Free { id } => {
                if let Some((_, bytes)) = blocks.get(&id).copied() {
                    // Nor which streams used it: in a replay it lives until it is safe.
                    let (block, pending) = (None, true);
                    say(What::Free {
                        id,
                        block,
                        bytes,
                        pending,
                    })?;
                }
            }
            Op::Safe { id } => {
                if let Some((block, bytes)) = blocks.remove(&id) {
                    live -= bytes;
                    let block = Some(numbers.give_back(block));
                    say(What::Safe { id, block, bytes })?;
                }
            }
            Op::Pin { bytes } => say(What::Pin { bytes })?,
            Op::Unpin { bytes } => {
                say(What::Unpin { bytes })?;
                if !giving_back {
                    say(What::Clear)?;
                }
            }
            Op::Iteration => say(What::Iteration)?,
        }
        giving_back = gives_back;
    }
    Ok(())
}
