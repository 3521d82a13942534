//! What PyTorch's allocator of device memory would have reserved: as it comes, with expandable segments, and behind the plan that
//! `pinbuddy plan` makes.

use anyhow::Result;
use pinbuddy_device::Device;
use pinbuddy_device::replay::Replay;
use pinbuddy_plan::file::device::DevicePlan;

use super::curve::{Curve, FINE};
use super::page::Allocator;
use super::plan;
use super::recording::Recording;
use crate::cli;
use crate::input::Input;
use crate::plan::device::{ALLOCATORS, Read, read};
use crate::plan::search_device;

/// None where the report has not all of the file, since a plan is of all.
pub(super) fn allocators(
    input: &Input,
    device: u32,
    recording: &Recording,
    args: &cli::Report,
) -> Result<Vec<Allocator>> {
    if recording.cut_after.is_some() {
        return Ok(Vec::new());
    }
    let read = read(input, device)?;
    let plan = match &args.plan {
        Some(file) => plan::of_file(file, DevicePlan::read)?,
        None => search_device(&read.record, args.time_limit, args.threads),
    };
    let begin = recording.begin;
    let alone = ALLOCATORS.map(|(name, _, kind)| row(name, kind.model(), &read, begin));
    let mut rows = Vec::from(alone);
    if !plan.plans.is_empty() {
        for (_, name, kind) in ALLOCATORS {
            rows.push(row(name, plan.before(device, kind.model())?, &read, begin));
        }
    }
    Ok(rows)
}

fn row<D: Device>(name: &'static str, model: D, read: &Read, begin: u64) -> Allocator {
    let mut replay = Replay::new(model);
    let mut reserved = Curve::new(FINE);
    reserved.push(0, 0);
    for (act, at) in read.record.acts(read.device).zip(&read.times) {
        replay.step(act);
        reserved.push(at.saturating_sub(begin), replay.model().usage().reserved);
    }
    let outcome = replay.outcome();
    Allocator {
        name,
        pinned: reserved,
        waits: None,
        peak: outcome.peak_reserved,
        waited: None,
        calls: outcome.taken,
        stopped: false,
        map: None,
    }
}
