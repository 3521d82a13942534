//! Homes of memory, where it has several: which one a request is of, and where a region is pinned.
//!
//! Knows no nodes: the memory does. Where all memory has one home, nothing is asked here.

use pinbuddy_core::Home;

use super::Handle;
use crate::backing::{Device, Memory, Seen};

impl<M: Memory> Handle<M> {
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
