//! Homes of memory, where it has several: which one a request is of, and where a region is pinned.
//!
//! Knows no nodes: the memory does. Where all memory has one home, nothing is asked here.

use pinbuddy_core::Home;

use super::Handle;
use crate::backing::{Device, Memory, Seen};

impl<M: Memory> Handle<M> {
    /// How many homes requests can be of, a power of two.
    pub fn homes(&self) -> usize {
        if self.is_divided {
            self.pinner.memory.homes()
        } else {
            1
        }
    }

    /// The home of requests while this is the current device.
    pub fn home_of(&self, device: Device) -> Home {
        if self.is_divided {
            self.pinner.memory.home(device)
        } else {
            Home::default()
        }
    }

    /// The home of this thread's requests.
    pub(super) fn home_here(&self) -> Home {
        if self.is_divided {
            self.home_of(self.pinner.memory.device())
        } else {
            Home::default()
        }
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
        let memory = self.is_divided.then_some(&self.pinner.memory)?;
        memory.at_home(home)
    }
}
