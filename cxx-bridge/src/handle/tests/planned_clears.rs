//! What a clear leaves of a plan's regions.

use pinbuddy_core::WarmUp;

use super::planned::{iterate, layout, on};
use super::*;

/// With the plan of a loop that clears before the request for this slot.
fn clearing_before(slot: u32) -> Tested {
    let mut layout = layout();
    layout.lanes[0].clears = vec![slot];
    on(&layout, WarmUp::Sync, 1 << 20)
}

#[test]
fn a_clear_of_the_loop_leaves_what_the_loop_needs_again() {
    let handle = clearing_before(2);
    for _ in 0..3 {
        let first = [32, 32].map(|mib| handle.request_planned(0, mib * MIB).unwrap());
        first.iter().for_each(|it| handle.release(it.block));
        handle.empty_cache();
        assert_eq!(pinned(handle), [32, 64]);
        let rest = [16, 16].map(|mib| handle.request_planned(0, mib * MIB).unwrap());
        rest.iter().for_each(|it| handle.release(it.block));
    }
    assert_eq!(asked(handle), [64, 32], "each once");
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE, "behind the loop");
}

#[test]
fn a_second_clear_in_a_row_or_one_where_the_machine_is_short_returns_all_that_is_idle() {
    let handle = clearing_before(0);
    for (free, clears, left) in [(96, 1, vec![32, 64]), (96, 2, vec![]), (95, 1, vec![])] {
        iterate(handle);
        numbers(handle).free.set(free * MIB);
        (0..clears).for_each(|_| handle.empty_cache());
        assert_eq!(pinned(handle), left, "{clears} with {free} MiB free");
    }
}
