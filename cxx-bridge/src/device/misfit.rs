//! A plan of device memory that does not fit this program, or does harm: what is said of it, and what becomes of its file.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pinbuddy_plan::device::allowance;
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_slots::Served;

use super::process::{on_record, planned, used_here};
use super::tally::device_tally;
use crate::log::{self, Bytes};
use crate::plan::{Fate, Place};

/// So many requests without a place tell whether the plan fits, and twice as many each time.
const TELLS: u64 = 1 << 12;
/// So many tell enough to remove it: of a run that goes on, what comes may have places.
const REMOVES: u64 = 4 * TELLS;

/// Memory is short: plans are not used any more. One that `auto` chose is none for the next run, which may ask in this order, too.
pub(crate) fn device_dropped(device: i8, bytes: usize) {
    let bytes = Bytes(bytes as u64);
    let forget = || {
        let (plan, place) = used_here()?;
        Some(place?.forget(|text| is(plan, text)))
    };
    let then = match catch_unwind(forget).ok().flatten() == Some(true) {
        true => ". The next run is recorded anew",
        false => "",
    };
    log::warn(|| {
        format!("device {device} has no room for {bytes}: its plan is dropped, and what is idle of it given back{then}")
    });
}

/// A request that a plan may have a place for got none. Called under no lock.
pub(crate) fn device_unserved() {
    static UNSERVED: AtomicU64 = AtomicU64::new(0);
    let unserved = UNSERVED.fetch_add(1, Ordering::Relaxed) + 1;
    if unserved >= TELLS && unserved.is_power_of_two() {
        // A panic must not reach C++.
        let _ = catch_unwind(|| judge(false, unserved >= REMOVES));
    }
}

/// The process ends: its record is complete, and so is what the plan has served.
pub(crate) fn device_record_close() {
    let _ = on_record(super::Recording::close);
    let _ = catch_unwind(|| judge(true, true));
}

/// Says once if the plan has served few of the requests that it may have places for; and at the end, if more was reserved than PyTorch's
/// allocator would, as with a smaller batch. Of a whole run, it may fit. `is_sure`: a plan that the last run marked may be removed.
fn judge(is_whole: bool, is_sure: bool) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some((plan, place)) = used_here() else {
        return;
    };
    let counted: Served = planned().map(|(_, plan)| Served::from(plan.counts().0)).sum();
    let may_fit = is_whole && counted.is_fit();
    let why = match counted.is_misfit() {
        true => Some(few(counted)),
        false => may_fit.then(|| too_much(plan, counted)).flatten(),
    };
    if may_fit
        && why.is_none()
        && let Some(place) = place
    {
        place.fits();
    }
    let has_to_wait = !is_sure && place.is_some_and(Place::was_marked);
    let Some(why) = why.filter(|_| !has_to_wait && !SAID.swap(true, Ordering::Relaxed)) else {
        return;
    };
    let fate = place.map_or(Fate::Named, |it| it.unfit(|text| is(plan, text)));
    let name = place.map_or(Path::new(""), |it| &it.path).display();
    log::warn(|| format!("the plan in {name} does not fit this program: {why}: {fate}"));
}

fn few(Served { served, asked }: Served) -> String {
    format!("it had a place for {served} of {asked} requests. The others are PyTorch's, beside the plan's regions")
}

/// Why the plan costs more than it gains, if so: for what was in use, more was reserved than by PyTorch's allocator, were that as
/// efficient as in the recorded run. One that ended before it asked for half of what is planned may have failed early.
fn too_much(plan: &DevicePlan, Served { asked, .. }: Served) -> Option<String> {
    let lanes = plan.plans.iter().flat_map(|(_, plan)| &plan.lanes);
    let planned_steps: usize = lanes.map(|it| it.prologue.len() + it.period.len()).sum();
    let is_early = asked * 2 < planned_steps;
    let recorded = plan.without?;
    let mut devices: Vec<u32> = planned().map(|(it, _)| it.device).collect();
    devices.dedup();
    let [mut in_use, mut reserved] = [0; 2];
    for device in devices {
        let most = device_tally(device as i8).of_run()?;
        in_use += most[0];
        reserved += most[1];
    }
    let without = recorded.for_a_run(in_use);
    (!is_early && reserved > without + allowance(without)).then(|| {
        let [in_use, reserved, then, without] = [in_use, reserved, recorded.in_use, recorded.reserved].map(Bytes);
        format!("{reserved} were reserved for {in_use} in use; in the recorded run, without it, {without} for {then}")
    })
}

/// Whether the text is this plan's.
fn is(plan: &DevicePlan, text: &str) -> bool {
    DevicePlan::read(text).is_ok_and(|it| it == *plan)
}
