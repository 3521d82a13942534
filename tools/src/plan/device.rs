//! `plan` of a device's memory: a plan for each stream, as `BUDDY_DEVICE_PLAN` takes them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use pinbuddy_plan::device::DeviceRecord;

use super::MOST_EVENTS;
use crate::input::{Input, What};

/// What is known of a device's memory after one pass.
pub(super) struct Read {
    /// What plans are made from.
    pub record: DeviceRecord,
    /// How many requests there are of each size, in bytes.
    pub sizes: BTreeMap<u64, u64>,
    /// The most that the run's own allocator had from the driver at once; 0 if the file does not say.
    pub run_peak: u64,
}

/// Reads the memory of this device. A file does not say that the cache was emptied: memory that is given back to the driver
/// piece after piece counts as that.
pub(super) fn read(input: &Input, device: u32) -> Result<Read> {
    let mut record = DeviceRecord::new(MOST_EVENTS);
    let (mut has, mut run_peak) = (0_u64, 0);
    let (mut sizes, mut giving_back) = (BTreeMap::new(), false);
    input.each(&mut |item| {
        let gives_back = matches!(item.what, What::Unpin { .. } | What::Clear);
        match item.what {
            What::Request {
                id,
                bytes,
                stream,
                private: false,
                ..
            } => {
                *sizes.entry(bytes).or_default() += 1;
                record.request((device, stream), id, bytes);
            }
            What::Free {
                id, pending: false, ..
            }
            | What::Safe { id, .. } => record.over(device, id),
            What::Iteration => record.iteration(),
            What::Pin { bytes } => has = has.saturating_add(bytes),
            What::Unpin { bytes } => has = has.saturating_sub(bytes),
            _ => {}
        }
        if gives_back && !giving_back {
            record.cleared(device);
        }
        giving_back = gives_back;
        run_peak = run_peak.max(has);
        Ok(())
    })?;
    if record.is_full() {
        bail!(
            "{} has {MOST_EVENTS} events or more, which is the most that are planned",
            input.name
        );
    }
    Ok(Read {
        record,
        sizes,
        run_peak,
    })
}
