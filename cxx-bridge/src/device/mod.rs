//! Planned device memory, and its traces: `BUDDY_DEVICE_PLAN`, `BUDDY_DEVICE_TRACE`.
//!
//! The rule of two runs is that of pinned memory ([`crate::plan`]); what differs is who serves what no plan foresees:
//! PyTorch's own allocator, which the plan's regions come from as well. C++ stands in front of it (`cpp/device`) and asks
//! here where a request goes, and tells what the allocator does while a run is recorded.
//!
//! Invariant: where neither variable is set, nothing stands in front of PyTorch's allocator.

mod record;

#[cfg(feature = "torch")]
pub(crate) mod process;
#[cfg(feature = "torch")]
mod stream;

use pinbuddy_plan::device::THRESHOLD;
use pinbuddy_plan::file::device::DevicePlan;

use crate::config::Config;
use crate::plan::{self, Choice};

pub use record::Recording;

/// Decides for the file of this name, in a run with this release of PyTorch; returns a warning if the file cannot be
/// used.
pub fn choose(
    name: Option<&str>,
    config: &Config,
    torch: &str,
) -> (Choice<DevicePlan>, Option<String>) {
    let Some(name) = name else {
        return (Choice::Nothing, None);
    };
    let run = plan::this_run(torch, THRESHOLD);
    plan::decide(name, config, run, |text, run| {
        let plan = DevicePlan::read(text)?;
        plan.fits(run)?;
        Ok(plan)
    })
}
