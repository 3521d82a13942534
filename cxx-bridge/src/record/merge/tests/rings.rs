//! Rings that tests fill, in place of threads'.

use std::sync::Mutex;

use crate::record::source::{Drained, Entry, Lost, Source};
use crate::sync::Dial;

/// Rings that a test fills; their counter is a clock.
#[derive(Default)]
pub(in crate::record) struct Rings {
    filled: Mutex<Vec<(Vec<Entry>, Drained)>>,
    /// What was last asked of them.
    pub(in crate::record) session: Dial<u16>,
    ticks: Dial<usize>,
}

impl Rings {
    pub(in crate::record) fn put(&self, ring: usize, thread: u32, entries: &[Entry]) {
        let mut rings = self.filled.lock().unwrap();
        if rings.len() <= ring {
            rings.resize_with(ring + 1, Default::default);
        }
        rings[ring].0.extend(entries);
        rings[ring].1.thread = thread;
    }

    pub(super) fn lose(&self, ring: usize, lost: Lost) {
        self.put(ring, 0, &[]);
        self.filled.lock().unwrap()[ring].1.lost = lost;
    }
}

impl Source for &Rings {
    fn record(&self, session: u16) {
        self.session.set(session);
    }
    fn ticks(&self) -> u64 {
        self.ticks.add(1) as u64
    }
    fn rings(&self) -> usize {
        self.filled.lock().unwrap().len()
    }
    fn drain(&self, ring: usize, into: &mut Vec<Entry>) -> Drained {
        let (entries, drained) = &mut self.filled.lock().unwrap()[ring];
        into.append(entries);
        let found = *drained;
        drained.lost = Lost::default();
        found
    }
    fn lost(&self) -> Lost {
        Lost::default()
    }
}
