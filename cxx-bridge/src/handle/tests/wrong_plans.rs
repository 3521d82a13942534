//! Random plans that are wrong: whatever they say, no two blocks overlap, and what is counted is what there is.

use std::collections::{BTreeMap, BTreeSet};

use pinbuddy_core::{Block, WarmUp};
use pinbuddy_slots::{GRANULE, Lane, Layout, Slot};
use proptest::collection::vec;
use proptest::prelude::*;

use super::planned::on;
use super::*;

/// Any layout with this many MiB in two regions: slots lie where they like.
fn wrong(granules: usize) -> impl Strategy<Value = Layout> {
    let slot = (1..12_usize, 0..2_u32, 0..granules - 12);
    let slot = slot.prop_map(|(bytes, region, at)| Slot { bytes: bytes * GRANULE, region, offset: at * GRANULE });
    let lane = (vec(0..30_u32, 0..10), vec(0..30_u32, 0..30));
    let comes_once = prop::bool::weighted(0.3);
    (vec(slot, 1..30), vec(lane, 0..3), comes_once).prop_map(move |(slots, lanes, comes_once)| {
        let most = slots.len() as u32;
        let steps = |steps: Vec<u32>| steps.into_iter().map(|it| it % most).collect();
        let lane = |(prologue, period)| Lane {
            prologue: steps(prologue),
            period: steps(if comes_once { Vec::new() } else { period }),
            // Any clear may look foreseen.
            clears: (0..most).step_by(2).collect(),
            turns: 1,
        };
        Layout { regions: vec![granules * GRANULE; 2], slots, lanes: lanes.into_iter().map(lane).collect() }
    })
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// As the allocator asks: the plan first, then the engine.
    Ask(u32, usize),
    Free(usize),
    /// Freed while its events are outstanding, which then are complete, or not for a while.
    Defer(usize),
    Iteration(u32),
    Clear,
    /// So many more pins succeed.
    Left(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (0..4_u32, 1..12_usize).prop_map(|(thread, granules)| Act::Ask(thread, granules)),
        8 => any::<usize>().prop_map(Act::Free),
        4 => any::<usize>().prop_map(Act::Defer),
        1 => (0..4_u32).prop_map(Act::Iteration),
        1 => Just(Act::Clear),
        1 => prop_oneof![Just(0), Just(1), Just(usize::MAX)].prop_map(Act::Left),
    ];
    vec(act, 0..300)
}

/// Bytes that somebody has, by address, and whether they are pending.
#[derive(Default)]
struct Model(BTreeMap<usize, (Block, bool)>);

impl Model {
    fn take(&mut self, grant: Grant, pinned: &[pinbuddy_core::Region]) {
        let end = grant.address + grant.block.bytes;
        if let Some((&other, (block, _))) = self.0.range(..end).next_back() {
            assert!(other + block.bytes <= grant.address, "two have {grant:?}");
        }
        let mut regions = pinned.iter().map(|it| it.base..it.base + it.bytes);
        assert!(regions.any(|it| it.start <= grant.address && end <= it.end), "{grant:?} is not pinned");
        self.0.insert(grant.address, (grant.block, false));
    }

    fn nth(&self, which: usize) -> Option<usize> {
        self.0.keys().nth(which % self.0.len().max(1)).copied()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_plan_makes_blocks_overlap(layout in wrong(60), acts in acts()) {
        let handle = on(&layout, WarmUp::Sync, 1 << 20);
        let memory = numbers(handle);
        let mut model = Model::default();
        for act in acts {
            match act {
                Act::Ask(thread, granules) => {
                    let bytes = granules * GRANULE - 9;
                    let grant = handle.request_planned(thread, bytes);
                    // The allocator has a block for each slot, by its number.
                    prop_assert!(grant.is_none_or(|it| it.block.offset < layout.slots.len()));
                    let beside = || handle.request_beside(bytes, Home::default(), Cached::default());
                    if let Some(grant) = grant.or_else(beside).or_else(|| handle.request(bytes)) {
                        model.take(grant, &memory.pinned.lock().unwrap());
                    }
                }
                Act::Free(which) => {
                    if let Some((block, pending)) = model.nth(which).and_then(|it| model.0.remove(&it)) {
                        if pending {
                            handle.cache(block);
                        }
                        handle.release(block);
                    }
                }
                Act::Defer(which) => {
                    if let Some(at) = model.nth(which) && let Some((block, pending)) = model.0.get_mut(&at)
                        && !std::mem::replace(pending, true)
                    {
                        handle.defer(*block);
                    }
                }
                Act::Iteration(thread) => handle.iteration(thread),
                Act::Clear => handle.empty_cache(),
                Act::Left(pins) => memory.left.set(pins),
            }
            // A worker may be unpinning what was let go.
            settled(handle);
            let taken: usize = model.0.values().map(|(block, _)| block.bytes).sum();
            let stats = handle.stats().unwrap();
            prop_assert_eq!(stats.active_bytes.current as usize, taken);
            let pending = model.0.values().filter(|(_, pending)| *pending);
            let pending: usize = pending.map(|(block, _)| block.bytes).sum();
            prop_assert_eq!(stats.pending_bytes.current as usize, pending);
            let all: usize = memory.pinned.lock().unwrap().iter().map(|it| it.bytes).sum();
            prop_assert_eq!(stats.pinned_bytes.current as usize, all);
            let parts = handle.parts();
            prop_assert_eq!(parts.iter().map(|it| it.bytes).sum::<usize>(), all, "each pinned byte is in one part");
            let shown = parts.iter().filter(|it| it.live || it.pending);
            let shown: BTreeSet<_> = shown.map(|it| (it.address, it.bytes, it.pending)).collect();
            let taken = model.0.iter().map(|(at, (block, pending))| (*at, block.bytes, *pending));
            prop_assert_eq!(shown, taken.collect());
        }
        for (block, _) in model.0.into_values() {
            handle.release(block);
        }
        // The first one may be taken for a clear of the loop.
        handle.empty_cache();
        handle.empty_cache();
        prop_assert!(memory.pinned.lock().unwrap().is_empty());
    }
}
