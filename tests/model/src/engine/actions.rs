//! What is done to the engine, at random: requests around the sizes that matter, and misuse.

use crate::choices::{Choices, Pick};
use pinbuddy_core::{Config, GRANULE, SMALL};

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Ask for so many bytes; where the answer is `Pin`, adopt that and ask again if so.
    Request {
        bytes: usize,
        pin: bool,
    },
    /// Ask for so many bytes, from anywhere.
    RequestAnywhere {
        bytes: usize,
    },
    /// Ask for so many bytes while blocks are cached: only from a segment in use.
    RequestBeside {
        bytes: usize,
        cached: usize,
    },
    /// Adopt a region of any size.
    Adopt {
        bytes: usize,
    },
    /// Adopt a region that overlaps the n-th segment.
    AdoptOver {
        segment: Pick,
        bytes: usize,
    },
    Defer(Pick),
    /// A pending block becomes a cached one; any other is refused.
    Cache(Pick),
    /// Requests that cached blocks have served.
    Reused {
        blocks: usize,
    },
    Release(Pick),
    TakeIdle {
        at_least: usize,
    },
    /// Release and defer a block that is gone.
    ReleaseGone(Pick),
    /// Release and defer what is not quite the n-th block.
    ReleaseWrong {
        block: Pick,
        offset: isize,
        bytes: isize,
    },
    ResetPeaks,
    /// From now on ask from this home.
    TurnTo(u8),
    /// Ask for so many bytes, from any other home.
    RequestElsewhere {
        bytes: usize,
    },
}

impl Action {
    pub(crate) fn choose(choices: &mut Choices<'_>) -> Self {
        match choices.weighted(&[12, 2, 3, 2, 1, 3, 2, 1, 9, 2, 1, 1, 1, 1, 1]) {
            0 => Self::Request { bytes: bytes(choices), pin: choices.flip() },
            1 => Self::RequestAnywhere { bytes: bytes(choices) },
            2 => Self::RequestBeside { bytes: bytes(choices), cached: choices.below(400) * GRANULE },
            3 => Self::Adopt { bytes: region(choices) },
            4 => Self::AdoptOver { segment: choices.pick(), bytes: region(choices) },
            5 => Self::Defer(choices.pick()),
            6 => Self::Cache(choices.pick()),
            7 => Self::Reused { blocks: choices.below(256) },
            8 => Self::Release(choices.pick()),
            9 => Self::TakeIdle {
                at_least: match choices.weighted(&[2, 2, 1]) {
                    0 => usize::MAX,
                    1 => choices.below(2 * SMALL),
                    _ => choices.below(3),
                },
            },
            10 => Self::ReleaseGone(choices.pick()),
            11 => Self::ReleaseWrong {
                block: choices.pick(),
                offset: choices.below(10_000) as isize - 5000,
                bytes: choices.below(10_000) as isize - 5000,
            },
            12 => Self::ResetPeaks,
            13 => Self::TurnTo(choices.below(3) as u8),
            _ => Self::RequestElsewhere { bytes: bytes(choices) },
        }
    }
}

/// Most requests are of a few granules; some are odd, some around the size that divides the classes,
/// some larger than any segment.
fn bytes(choices: &mut Choices<'_>) -> usize {
    match choices.weighted(&[12, 6, 2, 1, 1, 1, 1]) {
        0 => choices.within(1..40) * GRANULE,
        1 => choices.below(40 * GRANULE),
        2 => choices.within(40..400) * GRANULE,
        3 => choices.within(SMALL - 2 * GRANULE..SMALL + 200 * GRANULE),
        4 => choices.within(SMALL - 1..SMALL + 2),
        5 => (choices.within(1..4) << 20) + 1,
        _ => usize::MAX - choices.below(3),
    }
}

fn region(choices: &mut Choices<'_>) -> usize {
    match choices.weighted(&[8, 1, 2]) {
        0 => choices.within(GRANULE..300 * GRANULE),
        1 => choices.within(SMALL..SMALL + 300 * GRANULE),
        _ => choices.below(2 * GRANULE),
    }
}

/// Segments of some granules, which hold no large block, or of more than the smallest large one; not
/// only powers of two, nor whole granules.
pub(crate) fn config(choices: &mut Choices<'_>) -> Config {
    Config {
        segment_bytes: match choices.weighted(&[9, 1]) {
            0 => choices.within(1..300 * GRANULE),
            _ => choices.within(SMALL..SMALL + 1000 * GRANULE),
        },
        threshold_bytes: if choices.flip() { choices.below(8 * GRANULE) } else { 0 },
    }
}
