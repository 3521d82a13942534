//! Homes of memory, where it has several: which one a request is of, and where a region is pinned.
//!
//! Knows no nodes: the memory does. Where all memory has one home, nothing is asked here.

use std::collections::BTreeMap;

use pinbuddy_core::Home;
use pinbuddy_live::NodeUse;

use super::Handle;
use crate::backing::{Device, Memory, Seen};

impl<M: Memory> Handle<M> {
    /// What serves the devices of each node, by its number; nothing where all memory has one home, and `None` where the engine
    /// cannot be asked. O(segments).
    pub fn nodes(&self) -> Option<Vec<NodeUse>> {
        if self.divided().is_none() {
            return Some(Vec::new());
        }
        let mut homes: BTreeMap<Home, (u64, u64)> = BTreeMap::new();
        self.cell.guarded(|| {
            for it in self.cell.even_if_retired()?.engine().segments() {
                let (pinned, used) = homes.entry(it.home).or_default();
                *pinned += it.bytes as u64;
                *used += (it.live_bytes + it.pending_bytes) as u64;
            }
            Some(())
        })?;
        // Homes of one node are that node's.
        let mut nodes: BTreeMap<u32, NodeUse> = BTreeMap::new();
        for (home, (pinned, used)) in homes {
            let Some(node) = self.node_at(home) else {
                continue;
            };
            let it = nodes.entry(node).or_default();
            it.node = node;
            it.pinned += pinned;
            it.used += used;
        }
        Some(nodes.into_values().collect())
    }

    /// How many homes requests can be of, a power of two.
    pub fn homes(&self) -> usize {
        self.divided().map_or(1, M::homes)
    }

    /// The home of requests while this is the current device.
    pub fn home_of(&self, device: Device) -> Home {
        self.divided().map_or_else(Home::default, |it| it.home(device))
    }

    /// The home of this thread's requests.
    pub(super) fn home_here(&self) -> Home {
        self.divided().map_or_else(Home::default, |it| it.home(it.device()))
    }

    /// A device for which memory is pinned at this home; `None` where that makes no difference.
    pub(super) fn device_at(&self, home: Home) -> Option<Device> {
        Some(self.seen_at(home)?.device)
    }

    /// The NUMA node whose devices are served from this home; `None` if that is not known, or memory serves all.
    pub(super) fn node_at(&self, home: Home) -> Option<u32> {
        self.seen_at(home)?.node
    }

    fn seen_at(&self, home: Home) -> Option<Seen> {
        self.divided()?.at_home(home)
    }

    /// The memory, where it has several homes.
    fn divided(&self) -> Option<&M> {
        self.is_divided.then_some(&self.pinner.memory)
    }
}
