//! Planned device memory, and its traces: `BUDDY_DEVICE_PLAN`, `BUDDY_DEVICE_TRACE`.
//!
//! The rule of two runs is that of pinned memory ([`crate::plan`]); what differs is who serves what no plan foresees:
//! PyTorch's own allocator, which the plan's regions come from as well. C++ stands in front of it (`cpp/device`) and asks
//! here where a request goes, and tells what the allocator does while a run is recorded.
//!
//! Invariant: where neither variable is set, nothing stands in front of PyTorch's allocator.

#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(crate) mod moves;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(crate) mod places;
mod record;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
#[doc(hidden)]
pub mod stream;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(crate) mod tally;

#[cfg(feature = "torch")]
pub(crate) mod all;
#[cfg(feature = "torch")]
pub(crate) mod bridged;
#[cfg(feature = "torch")]
pub(crate) mod misfit;
#[cfg(feature = "torch")]
pub(crate) mod process;

use pinbuddy_plan::device::THRESHOLDS;
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_store::Memory;

use crate::config::Config;
use crate::log;
use crate::plan::{self, Choice, Decided, Place};

pub use record::Recording;

/// Decides for the file of this name, in a run with this release of PyTorch.
pub fn choose(name: Option<&str>, config: &Config, torch: &str) -> Decided<DevicePlan> {
    let place = Place::of(name, Memory::Device, config, torch);
    plan::at(place, |place| choose_at(place, config, torch))
}

fn choose_at(place: &Place, config: &Config, torch: &str) -> (Choice<DevicePlan>, Option<String>) {
    let pinned = config.plan.value.as_deref().filter(|_| !place.is_kept());
    if let Some(name) = pinned.filter(|it| crate::record::place::path(it) == place.path) {
        let why = format!(
            "BUDDY_PLAN and BUDDY_DEVICE_PLAN name the same file, {name}: device memory is not planned. Each of the two \
             needs a file of its own"
        );
        return (Choice::Nothing, Some(why));
    }
    let run = plan::this_run(torch, THRESHOLDS[0]);
    let (choice, said) = plan::decide(place, config, run.clone(), |text, run| {
        let plan = DevicePlan::read(text)?;
        plan.fits(run)?;
        Ok(plan)
    });
    match choice {
        // Of a run of few requests in which nothing came again, perhaps since it failed in its first step. It plans nothing, so this
        // one may be the first.
        Choice::Use(none) if none.plans.is_empty() => plan::to_be_recorded(place, run, said),
        Choice::Use(plan) => {
            // The line of `auto` names the file.
            if !place.is_kept() {
                log::info(|| format!("device memory has places as the plan in {} says", place.path.display()));
            }
            (Choice::Use(plan), said)
        }
        choice => (choice, said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_other_plan_is_not_written_over() {
        let named = |name: &str| matches!(name, "BUDDY_PLAN").then(|| "run.plan".into());
        let (config, _) = Config::read(named);
        let (choice, _, said) = choose(Some("run.plan"), &config, "2.15.0");
        assert!(matches!(choice, Choice::Nothing));
        assert!(said.unwrap().contains("name the same file, run.plan"));
        let (choice, _, said) = choose(Some("device.plan"), &config, "2.15.0");
        assert!(matches!(choice, Choice::Record { .. }) && said.is_none());
    }

    #[test]
    fn a_file_without_a_plan_does_not_keep_later_runs_from_being_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.plan");
        let mut text = Vec::new();
        DevicePlan::default().write(&mut text).unwrap();
        std::fs::write(&path, text).unwrap();
        let (config, _) = Config::read(|_| None);
        let (choice, _, said) = choose(path.to_str(), &config, "2.15.0");
        assert!(said.is_none());
        assert!(matches!(choice, Choice::Record(it) if it.place.path == path));
    }
}
