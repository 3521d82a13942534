//! How many requests a file has of which memory: a report or a plan is about one.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use pinbuddy_events::trace::Memory;
use pinbuddy_events::{Op, Whose};
use pinbuddy_snapshot::Snapshot;

use super::open::Readable;
use super::trace::open;

/// How many requests a file has.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// For pinned memory, if that was counted.
    pinned: Option<u64>,
    /// For that of each device that has any.
    devices: BTreeMap<u32, u64>,
}

/// Counts requests, where the header says that there may be some for device memory.
pub(super) fn counts(file: &Readable, memory: Memory) -> Result<Counts> {
    if memory == Memory::Pinned {
        return Ok(Counts::default());
    }
    let (mut pinned, mut devices) = (0, BTreeMap::new());
    for item in open(file)? {
        let event = item?.1;
        match (event.op, event.whose) {
            (Op::Request { .. }, Whose::Host) => pinned += 1,
            (Op::Request { .. }, Whose::Device(device)) => *devices.entry(device).or_default() += 1,
            _ => {}
        }
    }
    let pinned = Some(pinned);
    Ok(Counts { pinned, devices })
}

impl Counts {
    /// The events of a snapshot, which stand for its requests.
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let devices = (0..).zip(&snapshot.devices);
        let devices = devices.filter(|(_, it)| !it.is_empty());
        let pinned = Some(snapshot.host.len() as u64);
        let devices = devices.map(|(device, it)| (device, it.len() as u64));
        let devices = devices.collect();
        Self { pinned, devices }
    }

    /// Whose events are wanted: those of `device`, or else of pinned memory, or of the device with most where there is none.
    pub(super) fn choose(&self, name: &str, device: Option<u32>) -> Result<Whose> {
        match device {
            Some(device) if self.devices.contains_key(&device) => Ok(Whose::Device(device)),
            Some(device) if self.devices.is_empty() => bail!(
                "{name} has no memory of device {device}, only pinned memory: leave out --device, or record device memory \
                 with BUDDY_DEVICE_TRACE=FILE"
            ),
            Some(device) => {
                let pinned = self.pinned.filter(|it| *it > 0);
                let pinned = pinned.map(|_| "pinned memory".to_owned());
                let devices = self.devices.keys().map(u32::to_string);
                let with: Vec<String> = pinned.into_iter().chain(devices).collect();
                bail!("{name} has no memory of device {device}; it has that of: {}", with.join(", "))
            }
            None => {
                let weight = |it: &(&u32, &u64)| (*it.1, u32::MAX - it.0);
                let most = self.devices.iter().max_by_key(weight);
                let most = most.filter(|_| self.pinned == Some(0));
                Ok(most.map_or(Whose::Host, |it| Whose::Device(*it.0)))
            }
        }
    }
}
