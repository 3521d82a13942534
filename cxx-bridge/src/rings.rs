//! The rings of the C++ side, as the recorder's source. Translates between the bridge's types and the recorder's.

use crate::ffi;
use crate::record::{Drained, Entry, Lost, Source};

/// The rings of `cpp/rings.h`.
#[derive(Debug)]
pub(crate) struct Rings;

/// Entries that one call of C++ moves at most.
const AT_ONCE: usize = 1024;
/// Calls for one ring: what a ring holds.
const MOST_AT_ONCE: usize = 32;

impl Source for Rings {
    fn record(&self, session: u16) {
        ffi::record(session);
    }

    fn ticks(&self) -> u64 {
        ffi::record_ticks()
    }

    fn rings(&self) -> usize {
        ffi::record_rings()
    }

    fn drain(&self, ring: usize, into: &mut Vec<Entry>) -> Drained {
        let mut all = Drained::default();
        let mut found = [ffi::Entry::default(); AT_ONCE];
        // A ring that is filled meanwhile is left after so many.
        for _ in 0..MOST_AT_ONCE {
            let drained = ffi::record_drain(ring, &mut found);
            all.lost += lost(&drained.lost);
            if drained.count == 0 {
                break;
            }
            all.thread = drained.thread;
            let entry = |it: &ffi::Entry| Entry::of(it.ticks, it.allocation, it.what);
            into.extend(found[..drained.count].iter().filter_map(entry));
            if drained.count < AT_ONCE {
                break;
            }
        }
        all
    }

    fn lost(&self) -> Lost {
        lost(&ffi::record_lost())
    }
}

fn lost(it: &ffi::Lost) -> Lost {
    let &ffi::Lost { pinned, device } = it;
    Lost { pinned, device }
}
