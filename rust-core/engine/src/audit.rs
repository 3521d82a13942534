//! A full recheck of the engine's state.
//!
//! Trusts only the records of blocks. Recounts free granules, their runs, every sum in the
//! buddy trees, every count and statistic, with none of the code that maintains them; `indexes` does
//! the same for the indexes. Nothing in production calls it.
//!
//! The engine cannot see what I4 to I7 and I9 are about: the bridge keeps these.

use crate::buddy::BuddyTree;
use crate::engine::Engine;
use crate::error::Violation;
use crate::kind::SegmentKind;
use crate::records::State;
use crate::runs::Runs;
use crate::segment::{Segment, Space, Tally};
use crate::units::SegmentId;

/// See [`Engine::audit`].
pub(crate) fn audit(engine: &Engine) -> Result<(), Violation> {
    for (id, resident) in engine.arena.iter() {
        audit_segment(id, &resident.segment)?;
    }
    indexes::audit(engine)?;
    audit_stats(engine)
}

fn audit_segment(id: SegmentId, segment: &Segment) -> Result<(), Violation> {
    let mut free = free_by_records(id, segment)?;
    match &segment.space {
        Space::Leftmost(tree) => {
            free.resize(tree.span() as usize, false);
            audit_granules(id, tree, &free)?;
            audit_sums(id, tree, &free)
        }
        Space::Shortest(runs) => audit_runs(id, runs, &free),
    }
}

/// Which granules no block holds. I2, and the counts (I8).
fn free_by_records(id: SegmentId, segment: &Segment) -> Result<Vec<bool>, Violation> {
    let granules = segment.granules().get();
    let mut free = vec![true; granules as usize];
    let (mut live, mut pending, mut end) = (Tally::default(), Tally::default(), 0);
    for (start, length, state) in segment.records.iter() {
        let granule = start.get();
        if granule < end {
            return Err(Violation::BlocksOverlap { segment: id, granule, end });
        }
        end = granule + length.get();
        if end > granules {
            return Err(Violation::BlockLeavesSegment { segment: id, end, granules });
        }
        free[granule as usize..end as usize].fill(false);
        match state {
            State::Live => live.add(length),
            State::Pending => pending.add(length),
        }
    }
    for (what, found, expected) in [
        ("live blocks", segment.live.blocks, live.blocks),
        ("live granules", segment.live.granules, live.granules),
        ("pending blocks", segment.pending.blocks, pending.blocks),
        ("pending granules", segment.pending.granules, pending.granules),
    ] {
        if found != expected {
            let (found, expected) = (found.into(), expected.into());
            return Err(Violation::SegmentCount { segment: id, what, found, expected });
        }
    }
    Ok(free)
}

/// The tree holds free the granules that the records leave free (I1).
fn audit_granules(segment: SegmentId, tree: &BuddyTree, free: &[bool]) -> Result<(), Violation> {
    let by_tree = free_by_tree(tree);
    match (0..free.len()).find(|&granule| by_tree[granule] != free[granule]) {
        None => Ok(()),
        Some(granule) => Err(Violation::Ownership {
            segment,
            granule: granule as u32,
            tree: by_tree[granule],
            records: free[granule],
        }),
    }
}

/// The runs by length are those that the records leave free.
fn audit_runs(id: SegmentId, found: &Runs, free: &[bool]) -> Result<(), Violation> {
    let expected: Vec<(u32, u32)> = runs(free).map(|(from, to)| (from, to - from)).collect();
    let found = found.all().unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    Err(Violation::SegmentCount {
        segment: id,
        what: "free runs",
        found: found.len() as u64,
        expected: expected.len() as u64,
    })
}

/// Which granules are free in its topmost plain nodes and in its words.
fn free_by_tree(tree: &BuddyTree) -> Vec<bool> {
    let mut free = vec![false; tree.span() as usize];
    tree.visit(&mut |start, length, node, word| {
        let free = &mut free[start as usize..][..length as usize];
        if let Some(word) = word {
            for (bit, free) in (0_u32..).zip(free) {
                *free = word >> bit & 1 == 1;
            }
        } else if !node.is_mixed() {
            for run in node.plain_runs(length) {
                free[run.start as usize..run.end as usize].fill(true);
            }
        }
    });
    free
}

/// Every node that is not stale sums up its granules, and is mixed only if it must be: two free buddies are one node, which
/// is not mixed (I3).
fn audit_sums(id: SegmentId, tree: &BuddyTree, free: &[bool]) -> Result<(), Violation> {
    let mut result = Ok(());
    tree.visit(&mut |start, length, found, _| {
        let expected = count(&free[start as usize..][..length as usize]);
        for (what, found, expected) in [
            ("longest", found.longest, expected.longest),
            ("prefix", found.prefix, expected.prefix),
            ("suffix", found.suffix, expected.suffix),
            ("mixed", found.is_mixed().into(), expected.mixed.into()),
        ] {
            if result.is_ok() && found != expected {
                let granule = start;
                result = Err(Violation::Summary { segment: id, granule, length, what, found, expected });
            }
        }
    });
    result
}

/// The maximal runs of free granules: start and end of each.
fn runs(free: &[bool]) -> impl Iterator<Item = (u32, u32)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + free[at..].iter().position(|free| *free)?;
        at = free[from..].iter().position(|free| !free).map_or(free.len(), |length| from + length);
        Some((from as u32, at as u32))
    })
}

/// What a node must say of its granules.
#[derive(Debug, PartialEq, Eq)]
struct Sums {
    longest: u32,
    prefix: u32,
    suffix: u32,
    /// Whether free and taken change more than twice: a simpler node needs no children.
    mixed: bool,
}

fn count(free: &[bool]) -> Sums {
    let length = free.len() as u32;
    let longest = runs(free).map(|(from, to)| to - from).max().unwrap_or(0);
    let prefix = runs(free).next().filter(|run| run.0 == 0).map_or(0, |run| run.1);
    let suffix = runs(free).last().filter(|run| run.1 == length).map_or(0, |run| length - run.0);
    let mixed = free.windows(2).filter(|pair| pair[0] != pair[1]).count() > 2;
    Sums { longest, prefix, suffix, mixed }
}

/// The statistics are what the segments add up to, and active + idle = pinned (I8).
fn audit_stats(engine: &Engine) -> Result<(), Violation> {
    let stats = engine.stats();
    let sum = |of: fn(&crate::SegmentView) -> usize| -> u64 { engine.segments().map(|s| of(&s) as u64).sum() };
    // Regions that were let go are still pinned, and idle.
    let leaving = |of: fn(&crate::IdleSegment) -> usize| -> u64 { engine.leaving().iter().map(|s| of(s) as u64).sum() };
    let bytes: fn(&crate::IdleSegment) -> usize = |s| s.region().bytes;
    let pinned = sum(|s| s.bytes) + leaving(bytes);
    let segments = sum(|_| 1) + leaving(|_| 1);
    let active = sum(|s| s.live_bytes + s.pending_bytes);
    let blocks = sum(|s| s.live_blocks + s.pending_blocks);
    let pending = sum(|s| s.pending_bytes);
    let pending_blocks = sum(|s| s.pending_blocks);
    let idle = sum(|s| s.free_bytes + s.tail_bytes) + leaving(bytes);
    let dedicated_segments = sum(|s| match s.kind {
        SegmentKind::Dedicated => s.bytes,
        _ => 0,
    });
    let dedicated_leaving = leaving(|s| match s.is_dedicated() {
        true => s.region().bytes,
        false => 0,
    });
    let dedicated = dedicated_segments + dedicated_leaving;
    same("pinned bytes", stats.pinned_bytes.current, pinned)?;
    same("segments", stats.segments.current, segments)?;
    same("active bytes", stats.active_bytes.current, active)?;
    same("active blocks", stats.active_blocks.current, blocks)?;
    same("pending bytes", stats.pending_bytes.current, pending)?;
    let found = stats.pending_blocks.current;
    same("pending blocks", found, pending_blocks)?;
    same("idle bytes", stats.idle_bytes, idle)?;
    same("dedicated bytes", stats.dedicated_bytes, dedicated)?;
    audit_homes(engine)
}

/// Each home's counts are what its segments add up to (I8).
fn audit_homes(engine: &Engine) -> Result<(), Violation> {
    for (home, demand) in engine.demands.iter() {
        let here = engine.segments().filter(|it| it.home == home);
        let (active, pinned) = here.fold((0, 0), |(active, pinned), it| {
            let blocks = it.live_bytes + it.pending_bytes;
            (active + blocks as u64, pinned + it.bytes as u64)
        });
        let gone = engine.leaving().iter().filter(|it| it.segment.home == home);
        let leaving: u64 = gone.map(|it| it.region().bytes as u64).sum();
        same("active bytes of a home", demand.active, active)?;
        same("pinned bytes of a home", demand.pinned, pinned + leaving)?;
    }
    Ok(())
}

fn same(what: &'static str, found: u64, expected: u64) -> Result<(), Violation> {
    if found == expected {
        return Ok(());
    }
    Err(Violation::Statistic { what, found, expected })
}

mod indexes;

#[cfg(test)]
mod tests;
