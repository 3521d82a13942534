//! The plans of all streams that have asked for memory. None of them goes.

use std::sync::LazyLock;

use pinbuddy_plan::file::device::Stream;

use super::stream::StreamPlan;
use super::tally::device_tally;
use crate::ffi::Counter;
use crate::lock::Lock;

static ALL: LazyLock<Lock<Vec<(Stream, &'static StreamPlan)>>> = LazyLock::new(Lock::default);

pub(super) fn add(stream: Stream, plan: StreamPlan) -> &'static StreamPlan {
    let plan = &*Box::leak(Box::new(plan));
    ALL.lock().push((stream, plan));
    plan
}

/// In the order in which they asked.
pub(super) fn all() -> Vec<(Stream, &'static StreamPlan)> {
    ALL.lock().clone()
}

fn of(device: i8) -> impl Iterator<Item = &'static StreamPlan> {
    let is_own = move |it: &Stream| i64::from(it.device) == i64::from(device);
    let own = all().into_iter().filter(move |(it, _)| is_own(it));
    own.map(|(_, plan)| plan)
}

/// What the plans of a device count, in the order of [`super::tally`].
pub(crate) fn device_counted(device: i8) -> [Counter; 10] {
    let mut sums = [Counter::default(); 10];
    for plan in of(device) {
        for (sum, gauge) in sums.iter_mut().zip(plan.counted().0) {
            sum.current += gauge.current as i64;
            sum.peak += gauge.peak as i64;
            sum.allocated += gauge.allocated as i64;
            sum.freed += gauge.freed as i64;
        }
    }
    sums
}

pub(crate) fn device_reset_peaks(device: i8) {
    device_tally(device).forget();
    of(device).for_each(StreamPlan::reset_peaks);
}

pub(crate) fn device_reset_accumulated(device: i8) {
    device_tally(device).forget_forgiven();
    of(device).for_each(StreamPlan::reset_accumulated);
}

/// Whether a device's plans have regions.
pub(crate) fn device_reserved(device: i8) -> bool {
    of(device).any(|it| it.reserved_bytes() > 0)
}

/// How much of them nobody uses.
pub(crate) fn device_idle(device: i8) -> usize {
    of(device).map(StreamPlan::idle).sum()
}
