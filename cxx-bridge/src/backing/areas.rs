//! Counts the kernel memory areas that regions take.
//!
//! The kernel limits a process's areas (`vm.max_map_count`, 65,530 by default). Beyond the limit a
//! process can map nothing: no thread, no library, no large array. So regions take at most half of them.
//! Knows nothing of what is mapped. Invariant: areas are put back when their region is unmapped, and
//! only then.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A region takes three areas: the page registered before it, itself and the guard page behind it. What lies before them is one
/// area with their neighbour's guard page.
const EACH: usize = 3;
/// The kernel's default limit.
const DEFAULT: usize = 65_530;
/// Regions take at most one part of so many.
const PARTS: usize = 2;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Areas(AtomicUsize);

impl Areas {
    /// Takes one region's areas, if the limit below `root` allows it; the error is for people.
    pub(super) fn take(&self, root: &Path) -> Result<(), String> {
        let limit = fs::read_to_string(root.join("proc/sys/vm/max_map_count"));
        let limit = limit.ok().and_then(|text| text.trim().parse().ok());
        let limit: usize = limit.unwrap_or(DEFAULT);
        let more = |taken: usize| (taken + EACH <= limit / PARTS).then_some(taken + EACH);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match taken {
            Ok(_) => Ok(()),
            Err(taken) => Err(format!(
                "{taken} of this process's {limit} memory areas (vm.max_map_count) are blocks \
                 already, and the other half is left to the program"
            )),
        }
    }

    /// Puts one region's areas back.
    pub(super) fn put(&self) {
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
    fn half_of_them_are_left_to_the_program_and_a_limit_that_cannot_be_read_is_the_kernels_own() {
        let (machine, folder) = made_up(&[("proc/sys/vm/max_map_count", "13\n")]);
        let areas = Areas::default();
        assert!(areas.take(&machine.root).is_ok() && areas.take(&machine.root).is_ok());
        assert_eq!(
            areas.take(&machine.root).unwrap_err(),
            "6 of this process's 13 memory areas (vm.max_map_count) are blocks already, and the other \
             half is left to the program"
        );
        areas.put();
        assert!(areas.take(&machine.root).is_ok());
        // An administrator may raise it while the program runs.
        fs::write(folder.path().join("proc/sys/vm/max_map_count"), "18").unwrap();
        assert!(areas.take(&machine.root).is_ok());
        assert_eq!(areas.taken(), 9);
        let unknown = Areas(AtomicUsize::new(DEFAULT / 2 - EACH));
        assert!(unknown.take("/nowhere".as_ref()).is_ok());
        assert!(unknown.take("/nowhere".as_ref()).is_err());
    }
}
