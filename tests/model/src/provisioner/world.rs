//! What is really pinned, and which granule of it is whose. Knows nothing of decisions.

use pinbuddy_core::{Block, GRANULE, Home, IdleSegment, Region};

/// A pinned region, and which of its granules are in no block.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) region: Region,
    pub(super) home: Home,
    pub(super) free: Vec<bool>,
}

/// A block, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) block: Block,
    pub(super) address: usize,
    pub(super) pending: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct World {
    pub(super) regions: Vec<Pinned>,
    pub(super) blocks: Vec<Held>,
    next_base: usize,
}

impl World {
    pub(super) fn new() -> Self {
        Self { regions: Vec::new(), blocks: Vec::new(), next_base: 0x1000 }
    }

    pub(super) fn pinned_bytes(&self) -> usize {
        self.regions.iter().map(|it| it.region.bytes).sum()
    }

    /// Where an address lies.
    pub(super) fn home_of(&self, address: usize) -> Home {
        let holds = |it: &&Pinned| (it.region.base..it.region.base + it.region.bytes).contains(&address);
        self.regions.iter().find(holds).expect("it is pinned").home
    }

    /// Pins a region; every other adjoins the one before.
    pub(super) fn pin(&mut self, bytes: usize, home: Home) -> Region {
        let base = self.next_base;
        self.next_base += bytes + self.regions.len() % 2 * GRANULE;
        let region = Region { base, bytes };
        let free = vec![true; bytes / GRANULE];
        self.regions.push(Pinned { region, home, free });
        region
    }

    /// Unpins what the provisioner gave back: each was pinned, and nobody has a byte of it.
    pub(super) fn unpin_all(&mut self, idle: &[IdleSegment]) {
        for segment in idle {
            let region = segment.region();
            let at = self.regions.iter().position(|it| it.region == region);
            let at = at.unwrap_or_else(|| panic!("{region:?} is unpinned, and is not pinned"));
            let pinned = self.regions.swap_remove(at);
            assert!(pinned.free.iter().all(|free| *free), "{region:?} is unpinned while somebody has a block of it");
        }
    }

    /// Somebody has this block now, and nobody had any of it.
    pub(super) fn hand_out(&mut self, block: Block, address: usize, asked: usize) {
        assert_eq!(block.bytes, asked.div_ceil(GRANULE) * GRANULE);
        self.mark(address, block.bytes, false);
        self.blocks.push(Held { block, address, pending: false });
    }

    /// The `n`-th block is nobody's any more.
    pub(super) fn take_back(&mut self, n: usize) -> Block {
        let held = self.blocks.swap_remove(n);
        self.mark(held.address, held.block.bytes, true);
        held.block
    }

    fn mark(&mut self, address: usize, bytes: usize, free: bool) {
        let holds = |it: &&mut Pinned| {
            let Region { base, bytes: length } = it.region;
            base <= address && address + bytes <= base + length
        };
        let pinned = self.regions.iter_mut().find(holds);
        let pinned = pinned.unwrap_or_else(|| panic!("{bytes} bytes at {address:#x} are not pinned"));
        let start = (address - pinned.region.base) / GRANULE;
        let granules = &mut pinned.free[start..start + bytes / GRANULE];
        assert!(granules.iter().all(|it| *it != free), "{bytes} bytes at {address:#x}: somebody has a part of them");
        granules.fill(free);
    }
}
