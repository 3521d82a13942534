//! Homes of memory, where it has several: which one a request is of, and where a region is pinned.
//!
//! Knows no nodes: the memory does. Where all memory has one home, nothing is asked here.

use std::collections::BTreeMap;

use pinbuddy_core::{Home, SegmentView};

use super::Handle;
use crate::backing::{Device, Memory, Seen};

/// Pinned memory that serves the devices of a NUMA node, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeUse {
    /// The node's number.
    pub node: u32,
    /// What is pinned, but for a plan's regions, which serve all devices.
    pub pinned: u64,
    /// Of it what is no free block of the engine's: what caches hold is in use.
    pub used: u64,
}

impl<M: Memory> Handle<M> {
    /// What serves the devices of each node, by its number; nothing where all memory has one home. O(segments).
    pub fn nodes(&self) -> Vec<NodeUse> {
        let segments = self.divided().and_then(|_| {
            self.cell.guarded(|| {
                let provisioner = self.cell.provisioner()?;
                let view = provisioner.engine().segments();
                let used = |it: &SegmentView| (it.live_bytes + it.pending_bytes) as u64;
                let all = view.map(|it| (it.home, it.bytes as u64, used(&it)));
                Some(all.collect::<Vec<_>>())
            })
        });
        let mut nodes = BTreeMap::new();
        for (home, bytes, live) in segments.unwrap_or_default() {
            if let Some(node) = self.node_at(home) {
                let none = NodeUse {
                    node,
                    pinned: 0,
                    used: 0,
                };
                let it: &mut NodeUse = nodes.entry(node).or_insert(none);
                it.pinned += bytes;
                it.used += live;
            }
        }
        nodes.into_values().collect()
    }

    /// How many homes requests can be of, a power of two.
    pub fn homes(&self) -> usize {
        self.divided().map_or(1, M::homes)
    }

    /// The home of requests while this is the current device.
    pub fn home_of(&self, device: Device) -> Home {
        self.divided()
            .map_or_else(Home::default, |it| it.home(device))
    }

    /// The home of this thread's requests.
    pub(super) fn home_here(&self) -> Home {
        self.divided()
            .map_or_else(Home::default, |it| it.home(it.device()))
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
