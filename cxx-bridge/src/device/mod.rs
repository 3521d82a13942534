//! Planned device memory: `BUDDY_DEVICE_PLAN`.
//!
//! The rule of two runs is that of pinned memory ([`crate::plan`]); what differs is who serves what no plan foresees:
//! PyTorch's own allocator, which the plan's regions come from as well. C++ stands in front of it (`cpp/device`) and asks
//! here where a request goes, and tells what the allocator does while a run is recorded.
//!
//! Invariant: where the variable is not set, nothing stands in front of PyTorch's allocator.

mod record;

#[cfg(feature = "torch")]
pub(crate) mod process;
#[cfg(feature = "torch")]
mod stream;

use pinbuddy_plan::file::device::DevicePlan;

use crate::config::Config;
use crate::plan::{self, Choice};

pub use record::Recording;

/// Requests from so many bytes on are planned: shorter ones have segments of their own in PyTorch.
pub const THRESHOLD: u64 = (1 << 20) + 1;

/// Decides, for a run with this release of PyTorch; returns a warning if the file cannot be used.
pub fn choose(config: &Config, torch: &str) -> (Choice<DevicePlan>, Option<String>) {
    let Some(name) = &config.device_plan.value else {
        return (Choice::Nothing, None);
    };
    let run = plan::this_run(torch, THRESHOLD);
    plan::decide(name, config, run, |text, run| {
        let plan = DevicePlan::read(text).map_err(|why| why.to_string())?;
        plan.fits(run).map_err(|why| why.to_string())?;
        Ok(plan)
    })
}
