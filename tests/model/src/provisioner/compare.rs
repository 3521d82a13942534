//! Everything that can be seen of the provisioner's engine, next to what is really pinned.

use std::collections::BTreeMap;

use super::parties::Parties;
use super::world::Pinned;
use pinbuddy_core::GRANULE;

impl Pinned {
    fn is_idle(&self) -> bool {
        self.free.iter().all(|free| *free)
    }

    /// Its length, if nobody has a block of it.
    pub(super) fn idle_bytes(&self) -> usize {
        if self.is_idle() { self.region.bytes } else { 0 }
    }

    fn free_bytes(&self) -> usize {
        self.free.iter().filter(|free| **free).count() * GRANULE
    }
}

impl Parties {
    /// The engine says what is so, and its audit finds nothing.
    pub(super) fn compare(&self) {
        let engine = self.provisioner.engine();
        assert_eq!(engine.audit(), Ok(()));
        let stats = engine.stats();
        assert_eq!(stats.pinned_bytes.current, self.world.pinned_bytes() as u64);
        assert_eq!(stats.segments.current, self.world.regions.len() as u64);
        let bytes: usize = self.world.blocks.iter().map(|it| it.block.bytes).sum();
        assert_eq!(
            (stats.active_bytes.current, stats.active_blocks.current),
            (bytes as u64, self.world.blocks.len() as u64)
        );
        let pending = self.world.blocks.iter().filter(|it| it.pending);
        assert_eq!(stats.pending_blocks.current, pending.count() as u64);
        let mut seen: BTreeMap<usize, _> = engine.segments().map(|it| (it.base, it)).collect();
        for pinned in &self.world.regions {
            let Some(view) = seen.remove(&pinned.region.base) else {
                // It serves no more, and is unpinned by and by.
                assert!(pinned.is_idle(), "{:?} is unknown", pinned.region);
                continue;
            };
            assert_eq!((view.bytes, view.home), (pinned.region.bytes, pinned.home));
            assert_eq!(view.free_bytes, pinned.free_bytes());
            assert_eq!(view.is_idle(), pinned.is_idle());
        }
        assert!(seen.is_empty(), "not pinned: {seen:?}");
        assert_eq!(self.provisioner.is_at_work(), self.works);
        let progress = self.provisioner.progress();
        assert_eq!(progress.phase == "running", self.works);
    }
}
