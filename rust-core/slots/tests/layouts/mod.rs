//! Layouts by granules, and slots in regions that are there from the beginning, far from each other.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use pinbuddy_slots::{GRANULE, Lane, Layout, Slot, Slots};

/// Where regions lie: the first one here, the second one at twice that.
pub const BASE: usize = 1 << 40;

/// A slot of the first region, `at` granules behind its begin.
pub fn slot(granules: usize, at: usize) -> Slot {
    Slot { bytes: granules * GRANULE, region: 0, offset: at * GRANULE }
}

/// Slots that come once, and then others again and again.
pub fn lane(prologue: impl IntoIterator<Item = u32>, period: impl IntoIterator<Item = u32>) -> Lane {
    Lane {
        prologue: prologue.into_iter().collect(),
        period: period.into_iter().collect(),
        turns: 1,
        clears: Vec::new(),
    }
}

/// One region of so many granules, and one lane.
pub fn one(granules: usize, slots: Vec<Slot>, lane: Lane) -> Layout {
    Layout { regions: vec![granules * GRANULE], slots, lanes: vec![lane] }
}

/// Slots of these granules, one behind the other, which a lane asks for again and again.
pub fn row(sizes: &[usize]) -> Layout {
    let mut end = 0;
    let slots = sizes.iter().map(|&granules| {
        end += granules;
        slot(granules, end - granules)
    });
    let slots: Vec<Slot> = slots.collect();
    one(end, slots, lane([], 0..sizes.len() as u32))
}

pub fn pinned(layout: &Layout) -> Slots {
    with_memory(layout, Slots::new(layout).unwrap())
}

/// The same, and the lanes learn.
pub fn learning(layout: &Layout) -> Slots {
    with_memory(layout, Slots::learning(layout).unwrap())
}

fn with_memory(layout: &Layout, mut slots: Slots) -> Slots {
    for region in 0..layout.regions.len() {
        slots.pinned(region, BASE * (region + 1));
    }
    slots
}
