//! What PyTorch's allocator of device memory would have reserved for a file's requests: as it comes, with expandable
//! segments, and behind the plan.
//!
//! The models are those that the plan was chosen with (`pinbuddy_device`). All requests count, small ones too; those for
//! pools of graphs and of users are left out, since the models have none.

use std::time::Instant;

use anyhow::{Result, anyhow};
use pinbuddy_device::replay::{Outcome, Replay};
use pinbuddy_device::{Device, Kind};
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_plan::file::device::DevicePlan;

use crate::baseline::Baseline;
use crate::effort::gap_percent;

/// What the models came to.
#[derive(Debug)]
pub(super) struct Models {
    pub(super) stock: Baseline,
    pub(super) expandable: Baseline,
    /// The plan in front of each; none if there is no plan.
    pub(super) plan: Option<[Baseline; 2]>,
    /// The most bytes that were requested and not freed at one moment.
    pub(super) peak_requested: u64,
}

/// Replays a device's record on all models.
pub(super) fn replay(record: &DeviceRecord, device: u32, plan: &DevicePlan) -> Result<Models> {
    let planned = |kind: Kind| {
        let model = plan.before(device, kind.model());
        model.map_err(|why| anyhow!("the plan cannot be used: {why}"))
    };
    let with_plan = match plan.plans.is_empty() {
        true => None,
        false => {
            Some([run(record, device, planned(Kind::Torch)?).0, run(record, device, planned(Kind::TorchExpandable)?).0])
        }
    };
    let (stock, outcome) = run(record, device, Kind::Torch.model());
    Ok(Models {
        stock,
        expandable: run(record, device, Kind::TorchExpandable.model()).0,
        plan: with_plan,
        peak_requested: outcome.peak_requested,
    })
}

/// Each segment, or page of an expandable one, is a call to the driver, for which a request waits.
fn run<D: Device>(record: &DeviceRecord, device: u32, model: D) -> (Baseline, Outcome) {
    let begun = Instant::now();
    let mut replay = Replay::new(model);
    record.acts(device).for_each(|act| replay.step(act));
    let outcome = replay.outcome();
    let baseline = Baseline {
        peak: outcome.peak_reserved,
        gap_percent: gap_percent(outcome.peak_reserved, outcome.bound),
        efficiency: outcome.efficiency.unwrap_or(1.0),
        seconds: begun.elapsed().as_secs_f64(),
        pins: outcome.taken,
        waits: outcome.taken,
        stopped: false,
    };
    (baseline, outcome)
}
