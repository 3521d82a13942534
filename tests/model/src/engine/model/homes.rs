//! Requests served wherever there is room: at the home whose turn it is, or at any other.

use super::{Model, class};
use pinbuddy_core::{Block, Home, SegmentKind};

impl Model {
    pub(super) fn turn_to(&mut self, home: Home) {
        self.home = home;
        self.engine.turn_to(home);
    }

    /// Asks both, the engine first: the homes by number, and never the one whose turn it is.
    pub(super) fn request_elsewhere(&mut self, bytes: usize) {
        let found = self.engine.request_elsewhere(bytes);
        let own = self.home;
        let mut expected = None;
        for home in (0..3).map(Home).filter(|it| *it != own) {
            self.home = home;
            expected = expected.or_else(|| self.anywhere(bytes));
        }
        self.home = own;
        assert_eq!(found, expected);
    }

    /// The block that the home whose turn it is must have handed out, wherever it had room.
    pub(super) fn anywhere(&mut self, bytes: usize) -> Option<Block> {
        let mut expected = None;
        if !self.passes(bytes) && self.is_longer_than_a_segment(bytes) {
            let best = self.smallest_dedicated(bytes);
            expected = best.map(|n| self.take(n, 0, bytes));
        } else if !self.passes(bytes) {
            let own = class(bytes);
            let all = [SegmentKind::Small, SegmentKind::Large];
            let other = all.into_iter().find(|kind| *kind != own).unwrap();
            expected = self.best(bytes, &[own, SegmentKind::Idle, other]).map(|(n, start)| self.take(n, start, bytes));
        }
        expected
    }
}
