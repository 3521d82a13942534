//! `plan` of a device's memory: a plan for each stream, as `BUDDY_DEVICE_PLAN` takes them.
//!
//! Streams are numbered as a run with the plan numbers them: in the order of their first requests that a plan could serve.

use std::collections::HashMap;

use anyhow::{Result, bail};
use pinbuddy_plan::Event;
use pinbuddy_plan::device::{DeviceRecord, THRESHOLD};
use pinbuddy_plan::file::GRANULE;
use pinbuddy_plan::file::device::Stream;

use super::MOST_EVENTS;
use crate::flow::Lifetimes;
use crate::input::{Input, What};

/// What is known of a device's memory after one pass.
pub(super) struct Read {
    /// What plans are made from.
    pub record: DeviceRecord,
    /// Requests below the threshold.
    pub left_out: u64,
    /// The most bytes of requests that lived at once on all streams, each rounded up to granules.
    pub peak: u64,
    /// The most that the run's own allocator had from the driver at once; 0 if the file does not say.
    pub run_peak: u64,
}

struct Flow {
    record: DeviceRecord,
    device: u32,
    /// By the file's number.
    numbers: HashMap<u32, u32>,
    /// Requests that live: the stream and the bytes.
    live: HashMap<u64, (Stream, u64)>,
    bytes: u64,
    peak: u64,
    full: bool,
}

impl Flow {
    fn begins(&mut self, id: u64, bytes: u64, stream: u32) {
        // No more than there are numbers.
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(stream).or_insert(next);
        let device = self.device;
        let bytes = bytes.next_multiple_of(GRANULE);
        self.live.insert(id, (Stream { device, number }, bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        self.peak = self.peak.max(self.bytes);
    }

    fn push(&mut self, event: Event) {
        let stream = match event {
            Event::Request { id, .. } => self.live.get(&id).map(|it| it.0),
            Event::Over { id } => self.live.remove(&id).map(|(stream, bytes)| {
                self.bytes -= bytes;
                stream
            }),
            Event::Iteration => {
                self.record.iteration();
                None
            }
            Event::Clear => None,
        };
        if let Some(stream) = stream {
            self.full |= !self.record.push(stream, event);
        }
    }
}

/// Reads the memory of this device.
pub(super) fn read(input: &Input, device: usize) -> Result<Read> {
    let mut flow = Flow {
        record: DeviceRecord::new(MOST_EVENTS),
        device: device as u32,
        numbers: HashMap::new(),
        live: HashMap::new(),
        bytes: 0,
        peak: 0,
        full: false,
    };
    let mut lifetimes = Lifetimes::new(THRESHOLD);
    let (mut has, mut run_peak) = (0_u64, 0);
    input.each(&mut |item| {
        match item.what {
            What::Request {
                id,
                bytes,
                stream,
                private: false,
                ..
            } if bytes >= THRESHOLD => flow.begins(id, bytes, stream),
            What::Pin { bytes } => has = has.saturating_add(bytes),
            What::Unpin { bytes } => has = has.saturating_sub(bytes),
            _ => {}
        }
        run_peak = run_peak.max(has);
        lifetimes.push(&item, &mut |event| flow.push(event));
        Ok(())
    })?;
    lifetimes.end(&mut |event| flow.push(event));
    if flow.full {
        bail!(
            "{} has more than {MOST_EVENTS} events, which is the most that are planned",
            input.name
        );
    }
    Ok(Read {
        record: flow.record,
        left_out: lifetimes.left_out,
        peak: flow.peak,
        run_peak,
    })
}
