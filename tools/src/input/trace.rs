//! Traces as events with small numbers for blocks.
//!
//! A trace that a run recorded says when the streams that used a block were done, and may be cut off; one that was made
//! up has neither.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::Result;
use pinbuddy_snapshot::Whose;
use pinbuddy_trace::checked::{Act, Checker};
use pinbuddy_trace::{Error, Event, Memory, Op, Reader, Unit};
use serde_json::Value;

use super::numbers::Numbers;
use super::open::Readable;
use super::{About, Item, What};

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
    recorded: bool,
    whose: Whose,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<Option<u64>> {
    let mut reader = open(file)?;
    checked(&mut reader, recorded, whose, visit)?;
    Ok(reader.cut_off())
}

/// A block that is live, or freed and not safe yet.
#[derive(Clone, Copy)]
struct Block {
    id: u64,
    number: u32,
    bytes: u64,
    used: bool,
    /// Of a device: traces of it are recorded.
    on_device: bool,
}

/// Checks events, and gives blocks their ids and numbers. In a recorded trace a block that was used lives, for a replay,
/// until it was safe: allocators look at that at the same moments, at requests. Other memory than `whose` is left out.
pub(super) fn checked(
    events: impl Iterator<Item = Result<(u64, Event), Error>>,
    recorded: bool,
    whose: Whose,
    visit: &mut dyn FnMut(Item) -> Result<()>,
) -> Result<()> {
    let (mut checker, mut numbers, mut next) = (Checker::default(), Numbers::default(), 0);
    let mut live: HashMap<u64, Block> = HashMap::new();
    let mut pending: HashMap<u64, Block> = HashMap::new();
    for item in events {
        let (line, event) = item?;
        let step = checker.check(line, event)?;
        let of = |device: u32| whose == Whose::Device(device as usize);
        let what = match event.op {
            Op::Alloc { .. } | Op::Clear if whose != Whose::Host => continue,
            Op::DeviceAlloc { device, .. }
            | Op::SegmentAlloc { device, .. }
            | Op::SegmentFree { device, .. }
                if !of(device) =>
            {
                continue;
            }
            Op::Alloc {
                id: name,
                bytes,
                thread,
                private,
            }
            | Op::DeviceAlloc {
                id: name,
                bytes,
                thread,
                private,
                ..
            } => {
                let (on_device, stream) = match event.op {
                    Op::DeviceAlloc { stream, .. } => (true, stream),
                    _ => (false, 0),
                };
                let it = Block {
                    id: next,
                    number: numbers.take(),
                    bytes,
                    used: false,
                    on_device,
                };
                next += 1;
                live.insert(name, it);
                let (id, block) = (it.id, it.number);
                What::Request {
                    id,
                    block,
                    bytes,
                    thread,
                    private,
                    stream,
                }
            }
            Op::SegmentAlloc { bytes, .. } => What::Pin { bytes },
            Op::SegmentFree { bytes, .. } => What::Unpin { bytes },
            // The checker knows that it lives.
            Op::Free { id: name, .. } => {
                let Some(it) = live.remove(&name) else {
                    continue;
                };
                let waits = it.used && (recorded || it.on_device);
                let block = (!waits).then(|| numbers.give_back(it.number));
                if waits {
                    pending.insert(name, it);
                }
                let Block { id, bytes, .. } = it;
                What::Free {
                    id,
                    block,
                    bytes,
                    pending: waits,
                }
            }
            Op::Event { id: name, stream } => {
                let Some(it) = live.get_mut(&name) else {
                    continue;
                };
                let stream = match step.act {
                    Act::Use { stream, .. } => stream,
                    _ => stream,
                };
                it.used = true;
                let Block {
                    id, number, bytes, ..
                } = *it;
                let block = (!recorded && !it.on_device).then_some(number);
                What::Use {
                    id,
                    block,
                    bytes,
                    stream,
                }
            }
            Op::Safe { id: name } => {
                let Some(it) = pending.remove(&name) else {
                    continue;
                };
                let block = Some(numbers.give_back(it.number));
                let Block { id, bytes, .. } = it;
                What::Safe { id, block, bytes }
            }
            Op::Wait { id, took, thread } => {
                // Of other memory where the block is.
                let known = id.map(|it| live.get(&it));
                if known.is_some_and(|it| it.is_none()) || whose != Whose::Host {
                    continue;
                }
                What::Wait {
                    id: known.flatten().map(|it| it.id),
                    took: took / Unit::Microseconds.nanoseconds(),
                    thread,
                }
            }
            Op::Lost { events } => What::Lost { events },
            Op::Clear => What::Clear,
            Op::Iter => What::Iteration,
        };
        visit(Item {
            line,
            at: step.at,
            what,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens to blocks, with their numbers.
    fn told(recorded: bool) -> Vec<String> {
        let text = r#"{"t":1,"op":"alloc","id":10,"bytes":5}
{"t":2,"op":"event","id":10,"stream":7}
{"t":3,"op":"free","id":10}
{"t":4,"op":"alloc","id":11,"bytes":6}
{"t":5,"op":"safe","id":10}
{"t":6,"op":"alloc","id":12,"bytes":7}
{"t":7,"op":"free","id":11}"#;
        let mut all = Vec::new();
        let say = |name: &str, id, block: Option<u32>| {
            let number = block.map_or_else(|| "-".to_owned(), |it| it.to_string());
            format!("{name} {id}:{number}")
        };
        let reader = Reader::new(text.as_bytes());
        checked(reader, recorded, Whose::Host, &mut |item| {
            all.push(match item.what {
                What::Request { id, block, .. } => say("request", id, Some(block)),
                What::Free { id, block, .. } => say("free", id, block),
                What::Safe { id, block, .. } => say("safe", id, block),
                What::Use { id, block, .. } => say("use", id, block),
                other => format!("{other:?}"),
            });
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn a_recorded_trace_says_when_a_number_is_free_again() {
        let recorded = [
            "request 0:0",
            "use 0:-",
            "free 0:-",
            "request 1:1",
            "safe 0:0",
            "request 2:0",
            "free 1:1",
        ];
        assert_eq!(told(true), recorded);
        let made_up = [
            "request 0:0",
            "use 0:0",
            "free 0:0",
            "request 1:0",
            "request 2:1",
            "free 1:0",
        ];
        assert_eq!(told(false), made_up);
    }
}
