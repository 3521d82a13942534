//! What is done to the provisioner, at random, and what it is told when it is made.

use super::parties::Parties;
use crate::choices::Choices;
use pinbuddy_core::{GRANULE, Growth, SMALL, Settings, WarmUp};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Most segments are short, so that much happens in them; some are so long that memory is pinned ahead
/// of demand.
pub(super) fn settings(choices: &mut Choices<'_>) -> Settings {
    Settings {
        segment_bytes: match choices.weighted(&[20, 2, 1]) {
            0 => choices.within(1..300 * GRANULE),
            1 => choices.within(SMALL..SMALL + 1000 * GRANULE),
            _ => choices.within(16..48) * MIB,
        },
        threshold_bytes: if choices.flip() { choices.below(8 * GRANULE) } else { 0 },
        growth: [Growth::Segment, Growth::Exact][choices.below(2)],
        warm_up: [WarmUp::Background, WarmUp::Sync, WarmUp::Off][choices.weighted(&[4, 1, 1])],
        count: choices.flip().then(|| choices.below(4)),
        idle: choices.flip().then(|| Duration::from_micros(1 << choices.below(22))),
    }
}

/// A request: mostly a fraction of a segment, and now and then one that is longer or absurd.
pub(super) fn request(choices: &mut Choices<'_>, segment_bytes: usize) -> usize {
    match choices.weighted(&[6, 4, 2, 1, 1]) {
        0 => choices.within(1..40) * GRANULE,
        1 => segment_bytes / choices.within(1..9) + choices.below(3),
        2 => choices.below(segment_bytes + 1),
        3 => segment_bytes + choices.below(segment_bytes + 4 * GRANULE),
        _ => [0, 1, SMALL - 1, SMALL, usize::MAX][choices.below(5)],
    }
}

impl Parties {
    /// One action of one of them.
    pub(super) fn act(&mut self, choices: &mut Choices<'_>) {
        match choices.weighted(&[14, 20, 12, 14, 3, 3, 3, 10, 2, 1, 1, 4, 1, 1, 3, 1]) {
            0 => {
                let bytes = request(choices, self.settings.segment_bytes);
                let home = self.home(choices);
                self.begin_request(bytes, home);
            }
            1 => self.step_a_request(choices.pick(), choices),
            2 => self.end_a_pin(choices.pick(), choices),
            3 => self.release(choices.pick()),
            4 => self.defer(choices.pick()),
            5 => self.cache(choices.pick()),
            6 => {
                let bytes = request(choices, self.settings.segment_bytes);
                let cached = choices.below(64) * GRANULE;
                let home = self.home(choices);
                self.request_beside(bytes, cached, home);
            }
            7 => self.step_the_worker(),
            8 => self.clear(),
            9 => {
                let bytes = request(choices, self.settings.segment_bytes);
                self.give_way(bytes, choices.flip());
            }
            10 => {
                let home = self.home(choices);
                self.urge(choices.below(4), home);
            }
            11 => self.now += Duration::from_micros(1 << choices.below(22)),
            12 => self.worker_dies(),
            13 => self.capacity = choices.below(16) * self.settings.segment_bytes,
            14 => self.look_for_unused(),
            _ => {
                // The process ends once, and late.
                if choices.once_in(8) {
                    self.close();
                }
            }
        }
    }
}
