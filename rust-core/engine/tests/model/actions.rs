//! Random actions on the engine: requests around the sizes that matter, and misuse.

use pinbuddy_core::{Config, GRANULE, SMALL};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Ask for so many bytes; if the answer is `Pin` and `pin` is true, adopt a region and ask again.
    Request {
        bytes: usize,
        pin: bool,
    },
    /// Ask for so many bytes, from anywhere.
    RequestAnywhere {
        bytes: usize,
    },
    /// Adopt a region of any size.
    Adopt {
        bytes: usize,
    },
    /// Adopt a region that overlaps the n-th segment.
    AdoptOver {
        segment: prop::sample::Index,
        bytes: usize,
    },
    Defer(prop::sample::Index),
    Release(prop::sample::Index),
    TakeIdle {
        at_least: usize,
    },
    /// Release and defer a block that is gone.
    ReleaseGone(prop::sample::Index),
    /// Release and defer what is not quite the n-th block.
    ReleaseWrong {
        block: prop::sample::Index,
        offset: isize,
        bytes: isize,
    },
}

pub(crate) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let index = any::<prop::sample::Index>;
    // Most requests are of a few granules; some are odd, some around the size that divides the
    // classes, some larger than any segment.
    let bytes = prop_oneof![
        6 => (1usize..40).prop_map(|granules| granules * GRANULE),
        3 => 0usize..40 * GRANULE,
        2 => (40usize..400).prop_map(|granules| granules * GRANULE),
        2 => SMALL - 2 * GRANULE..SMALL + 200 * GRANULE,
        1 => SMALL - 1..SMALL + 2,
        1 => (1usize..4).prop_map(|huge| (huge << 20) + 1),
        1 => (0usize..3).prop_map(|less| usize::MAX - less),
    ];
    let region = prop_oneof![
        4 => GRANULE..300 * GRANULE,
        1 => SMALL..SMALL + 300 * GRANULE,
        1 => 0usize..2 * GRANULE,
    ];
    let at_least = prop_oneof![
        2 => Just(usize::MAX),
        2 => 0usize..2 * SMALL,
        1 => 0usize..3,
    ];
    let action = prop_oneof![
        12 => (bytes.clone(), any::<bool>())
            .prop_map(|(bytes, pin)| Action::Request { bytes, pin }),
        2 => bytes.prop_map(|bytes| Action::RequestAnywhere { bytes }),
        2 => region.clone().prop_map(|bytes| Action::Adopt { bytes }),
        1 => (index(), region).prop_map(|(segment, bytes)| Action::AdoptOver { segment, bytes }),
        3 => index().prop_map(Action::Defer),
        9 => index().prop_map(Action::Release),
        1 => at_least.prop_map(|at_least| Action::TakeIdle { at_least }),
        1 => index().prop_map(Action::ReleaseGone),
        1 => (index(), -5000isize..5000, -5000isize..5000).prop_map(|(block, offset, bytes)| {
            Action::ReleaseWrong { block, offset, bytes }
        }),
    ];
    prop::collection::vec(action, 1..120)
}

/// Segments of some granules, which hold no large block, or of more than the smallest large one.
pub(crate) fn configs() -> impl Strategy<Value = Config> {
    let segment_bytes = prop_oneof![
        // Not only powers of two, nor whole granules.
        2 => 1usize..300 * GRANULE,
        1 => SMALL..SMALL + 1000 * GRANULE,
    ];
    let threshold_bytes = prop_oneof![Just(0), 0usize..8 * GRANULE];
    (segment_bytes, threshold_bytes).prop_map(|(segment_bytes, threshold_bytes)| Config {
        segment_bytes,
        threshold_bytes,
    })
}
