//! Rechecks the indexes: regions, kinds, the fill order and the dedicated index.
//!
//! Trusts the segments, which are rechecked before. Does not check that a block is of its segment's
//! class: [`Engine::request_anywhere`] may have put it elsewhere.

use crate::arena::{Arena, Indexes};
use crate::dedicated::Fit;
use crate::engine::Engine;
use crate::error::Violation;
use crate::kind::SegmentKind;
use crate::units::Home;

pub(super) fn audit(engine: &Engine) -> Result<(), Violation> {
    audit_regions(&engine.arena)?;
    audit_kinds(engine)?;
    audit_fill_order(&engine.arena)?;
    audit_dedicated(&engine.arena)
}

/// No two overlap (I2).
fn audit_regions(arena: &Arena) -> Result<(), Violation> {
    let mut regions: Vec<_> = arena.iter().map(|(id, resident)| (resident.segment.region(), id)).collect();
    regions.sort_unstable_by_key(|(region, _)| region.base);
    for pair in regions.windows(2) {
        let ((lower, first), (upper, second)) = (pair[0], pair[1]);
        if upper.base - lower.base < lower.bytes {
            return Err(Violation::SegmentsOverlap { first, second });
        }
    }
    Ok(())
}

/// A dedicated region is longer than a segment and has at most one block, at its start. Only a
/// working-set region is longer than a segment without being dedicated. Another segment is `Idle`
/// exactly if it has no block.
fn audit_kinds(engine: &Engine) -> Result<(), Violation> {
    for (segment, resident) in engine.arena.iter() {
        let (kind, granules) = (resident.kind, resident.segment.granules());
        let mut starts = resident.segment.records.iter().map(|block| block.0.get());
        let (first, second) = (starts.next(), starts.next());
        let is_true = match kind {
            SegmentKind::Idle => first.is_none(),
            SegmentKind::Small | SegmentKind::Large => first.is_some(),
            SegmentKind::Dedicated => first.is_none_or(|start| start == 0) && second.is_none(),
        };
        let is_long = engine.policy.is_dedicated(granules);
        let is_placed = match kind {
            SegmentKind::Dedicated => is_long,
            _ => !is_long || engine.is_renewing(),
        };
        if !is_true || !is_placed {
            return Err(Violation::Kind { segment, kind });
        }
    }
    Ok(())
}

fn audit_fill_order(arena: &Arena) -> Result<(), Violation> {
    let wrong = |place, what| Err(Violation::FillOrder { place, what });
    let mut found = 0;
    for (_, indexes) in arena.indexes() {
        let entries = indexes.order.entries();
        for place in 1..entries.len() {
            if !entries[place - 1].comes_before(&entries[place]) {
                return wrong(place, "not sorted");
            }
        }
        found += entries.len();
    }
    // They are strictly sorted, have as many entries as there are segments, and that of its home has each
    // segment's correct entry: so they have nothing else.
    let ordered = || arena.iter().filter(|(_, resident)| !resident.is_dedicated());
    for (id, resident) in ordered() {
        let (home, entry) = (resident.segment.home, resident.entry(id.slot()));
        let mut own = arena.indexes().filter(|(of, _)| *of == home);
        if !own.any(|(_, indexes)| indexes.order.entries().contains(&entry)) {
            return wrong(id.slot(), "a segment has no true entry");
        }
    }
    let segments = ordered().count();
    if found == segments { Ok(()) } else { wrong(segments, "an entry has no segment") }
}

/// Exactly the dedicated regions that have no block, each once, in order.
fn audit_dedicated(arena: &Arena) -> Result<(), Violation> {
    let mut expected: Vec<(Home, Fit)> = arena
        .iter()
        .filter(|(_, resident)| resident.is_dedicated() && resident.segment.is_idle())
        .map(|(id, resident)| (resident.segment.home, resident.fit(id.slot())))
        .collect();
    expected.sort_unstable();
    let wrong = |(_, fit): &(Home, Fit), what| {
        let slot = fit.slot as usize;
        Err(Violation::DedicatedIndex { slot, what })
    };
    let idle =
        |(home, indexes): (Home, &'_ Indexes)| -> Vec<_> { indexes.dedicated.iter().map(|fit| (home, *fit)).collect() };
    let found: Vec<(Home, Fit)> = arena.indexes().flat_map(idle).collect();
    if let Some(fit) = expected.iter().find(|fit| !found.contains(fit)) {
        return wrong(fit, "an idle dedicated region has no true entry");
    }
    // A set: each is in it once.
    if let Some(fit) = found.iter().find(|fit| !expected.contains(fit)) {
        return wrong(fit, "an entry is of no idle dedicated region");
    }
    Ok(())
}
