//! `plan` of a device's memory: a plan for each stream, as `BUDDY_DEVICE_PLAN` takes them.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, bail};
use pinbuddy_events::Op;
use pinbuddy_plan::device::{DeviceRecord, Kind};
use pinbuddy_snapshot::{Action, Entry};

use super::MOST_EVENTS;
use crate::input::{Input, unrecorded};

/// What is known of a device's memory after one pass.
pub struct Read {
    /// The device.
    pub device: u32,
    /// What plans are made from.
    pub record: DeviceRecord,
    /// When each of its acts was, in microseconds.
    pub times: Vec<u64>,
    /// How many requests there are of each size, in bytes.
    pub sizes: BTreeMap<u64, u64>,
    /// The most that lived at once of what no plan serves, as private pools have.
    pub private: u64,
    /// Bytes of blocks that were there before the record begins, as far as their ends are in it.
    pub live_before: u64,
    /// The most that the run's own allocator had from the driver at once; 0 if the file does not say.
    pub run_peak: u64,
}

/// What no plan serves.
#[derive(Default)]
struct Pools {
    live: HashSet<u64>,
    bytes: u64,
    most: u64,
}

impl Pools {
    fn request(&mut self, id: u64, bytes: u64) {
        self.live.insert(id);
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
    }

    fn over(&mut self, id: u64, bytes: u64) {
        if self.live.remove(&id) {
            self.bytes -= bytes;
        }
    }
}

/// The bytes of what is freed and was not handed out before.
fn live_before(entries: &[Entry]) -> u64 {
    let mut known: HashSet<u64> = HashSet::new();
    let mut bytes = 0_u64;
    for it in entries.iter().filter(|it| !it.private) {
        match it.action {
            Action::Alloc => drop(known.insert(it.address)),
            // A block has both events; it is known from the first on.
            Action::FreeRequested if known.insert(it.address) => {
                bytes = bytes.saturating_add(it.bytes);
            }
            Action::FreeCompleted if !known.remove(&it.address) => {
                bytes = bytes.saturating_add(it.bytes);
            }
            _ => {}
        }
    }
    bytes
}

/// PyTorch's allocators, and a plan in front of each, as they are named.
pub const ALLOCATORS: [(&str, &str, Kind); 2] = [
    ("stock", "plan, stock behind it", Kind::Torch),
    ("expandable segments", "plan, expandable segments behind it", Kind::TorchExpandable),
];

/// Reads the memory of this device. A file does not say that the cache was emptied: memory that is given back to the driver
/// piece after piece counts as that.
pub fn read(input: &Input, device: u32) -> Result<Read> {
    let mut record = DeviceRecord::new(MOST_EVENTS);
    let (mut has, mut run_peak) = (0_u64, 0);
    let mut pools = Pools::default();
    let (mut sizes, mut giving_back) = (BTreeMap::new(), false);
    let mut times = Vec::new();
    input.each(&mut |item| {
        if let Some(id) = item.event.op.over() {
            pools.over(id, item.bytes);
            record.over(device, id);
        }
        let gives_back = matches!(item.event.op, Op::SegmentFree { .. } | Op::Clear);
        match item.event.op {
            Op::Request { id, bytes, stream, private: false, .. } => {
                *sizes.entry(bytes).or_default() += 1;
                record.request((device, stream), id, bytes);
            }
            Op::Request { id, bytes, .. } => pools.request(id, bytes),
            Op::Use { id, stream } => record.used((device, stream), id),
            Op::Free { id, .. } => {
                record.freed(device, id);
            }
            Op::Iteration => record.iteration(),
            Op::SegmentAlloc { bytes } => has = has.saturating_add(bytes),
            Op::SegmentFree { bytes } => has = has.saturating_sub(bytes),
            _ => {}
        }
        if gives_back && !giving_back {
            record.cleared(device);
        }
        giving_back = gives_back;
        times.resize(record.acts_so_far(), item.at());
        run_peak = run_peak.max(has);
        Ok(())
    })?;
    if record.is_full() {
        bail!(
            "{} has {MOST_EVENTS} events or more, which is the most that are planned: record fewer steps",
            input.name
        );
    }
    Ok(Read {
        device,
        live_before: input.entries().map_or(0, live_before),
        record,
        times,
        sizes,
        private: pools.most,
        run_peak,
    })
}

/// The same, if it has requests that are planned.
pub(super) fn read_for_plan(input: &Input, device: u32) -> Result<Read> {
    let read = read(input, device)?;
    input.say_cut_off();
    if read.record.is_empty() {
        let name = &input.name;
        match read.sizes.values().sum::<u64>() {
            0 => return Err(unrecorded(name)),
            smaller => bail!(
                "{name} has no request from 256 KiB on of device {device}'s memory, without which no plan is worth it: it has {smaller} \
                 smaller ones"
            ),
        }
    }
    Ok(read)
}
