//! How many of the kernel's memory areas are ours.
//!
//! The kernel allows a process so many (`vm.max_map_count`, 65,530 by default), and past them it can
//! map nothing: no thread, no library, no large array. So at most half of them are ours. Counts, and
//! knows nothing of what is mapped. Invariant: what is taken is given back when it is unmapped, and
//! only then.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A region, and what nobody can touch behind it; what lies before it is one area with the latter of
/// its neighbour.
const EACH: usize = 2;
/// The kernel's own default.
const DEFAULT: usize = 65_530;
/// One part of so many is for ours.
const PARTS: usize = 2;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Areas(AtomicUsize);

impl Areas {
    /// Takes those of one region, by the limit below `root`; for people where there are no more.
    pub(super) fn take(&self, root: &Path) -> Result<(), String> {
        let limit = fs::read_to_string(root.join("proc/sys/vm/max_map_count"));
        let limit = limit.ok().and_then(|text| text.trim().parse().ok());
        let limit: usize = limit.unwrap_or(DEFAULT);
        let more = |taken: usize| (taken + EACH <= limit / PARTS).then_some(taken + EACH);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match taken {
            Ok(_) => Ok(()),
            Err(taken) => Err(format!(
                "{taken} of this process's {limit} memory areas (vm.max_map_count) are blocks \
                 already, and the other half is left to the program"
            )),
        }
    }

    /// Those of one region are no more.
    pub(super) fn give_back(&self) {
        self.0.fetch_sub(EACH, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::tests::made_up;
    use super::*;

    #[test]
    fn half_of_them_are_left_to_the_program() {
        let (machine, folder) = made_up(&[("proc/sys/vm/max_map_count", "11\n")]);
        let areas = Areas::default();
        assert!(areas.take(&machine.root).is_ok() && areas.take(&machine.root).is_ok());
        assert_eq!(
            areas.take(&machine.root).unwrap_err(),
            "4 of this process's 11 memory areas (vm.max_map_count) are blocks already, and the other \
             half is left to the program"
        );
        areas.give_back();
        assert!(areas.take(&machine.root).is_ok());
        // An administrator may raise it while the program runs.
        fs::write(folder.path().join("proc/sys/vm/max_map_count"), "12").unwrap();
        assert!(areas.take(&machine.root).is_ok());
        assert_eq!(areas.taken(), 6);
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_the_kernels_own() {
        let areas = Areas(AtomicUsize::new(DEFAULT / 2 - 2));
        assert!(areas.take("/nowhere".as_ref()).is_ok());
        assert!(areas.take("/nowhere".as_ref()).is_err());
    }
}
