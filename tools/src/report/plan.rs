//! A plan as one more allocator: its regions from the beginning, and stock for what it leaves out.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use pinbuddy_plan::file::{Error, MOST_TEXT};
use pinbuddy_plan::{Plan, places};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay;
use pinbuddy_store::{MOST_HEAD, body};

use crate::input::open;

use super::curve::{Curve, FINE};
use super::page::Allocator;
use super::recording::Recording;
use super::{map, observe};

/// The plan in a file, of either kind.
pub(super) fn of_file<P>(path: &Path, read: impl FnOnce(&str) -> Result<P, Error>) -> Result<P> {
    let name = path.display();
    let unread = || format!("there is no plan {name} that can be read");
    let mut text = String::new();
    // One byte more than a plan may have behind its key, which says that it is too long.
    let most = (MOST_TEXT + MOST_HEAD) as u64 + 1;
    let file = open::once(path).with_context(unread)?;
    file.take(most).read_to_string(&mut text).with_context(unread)?;
    read(body(&text)).with_context(|| format!("{name} is no plan that can be used"))
}

/// What a plan would have pinned, with stock for requests below the threshold; with a map of `shown`.
pub(super) fn planned(plan: &Plan, recording: &Recording, shown: &[usize]) -> Allocator {
    let places = places(&recording.record, plan);
    let of_rows = served(recording);
    let slots: Vec<_> = of_rows.iter().map(|row| row.and_then(|it| places.get(it).copied().flatten())).collect();
    let mut below = replay::on(Kind::Stock, Settings::default());
    let seen = observe::observe(below.as_mut(), &recording.rest);
    let reserved = plan.reserved();
    let mut pinned = Curve::new(FINE);
    pinned.push(0, reserved);
    for (at, bytes) in seen.pinned.points() {
        pinned.push(at, reserved.saturating_add(bytes));
    }
    let missed = places.iter().filter(|it| it.is_none()).count() as u64;
    let known = !plan.slots.is_empty() || recording.record.is_empty();
    Allocator {
        name: "a plan",
        pinned,
        waits: known.then_some(seen.waits),
        peak: reserved.saturating_add(seen.last.peak),
        waited: known.then_some(missed + seen.last.misses),
        calls: plan.regions.len() as u64 + seen.last.calls,
        stopped: false,
        map: Some(map::of_plan(&plan.regions, &slots, recording, shown)),
    }
}

/// Of each row: which request of the record it is, if it is one.
fn served(recording: &Recording) -> Vec<Option<usize>> {
    let mut next = 0;
    let of = recording.rows.iter().map(|row| {
        (!row.beside).then(|| {
            next += 1;
            next - 1
        })
    });
    of.collect()
}
