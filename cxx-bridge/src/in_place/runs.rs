//! Which pages are registered for which pins. Decides, and acts on nothing.
//!
//! A run is what one call of the driver registers; a pin is what a caller asked for. Both are whole pages. Pins may overlap:
//! views of one storage, parts of one file, two storages that share a page. Invariants: runs are disjoint, since the driver
//! refuses to register a page twice; each page of a run belongs to a pin, since memory that no pin holds may be unmapped;
//! each page of a pin lies in a run.

use std::collections::BTreeMap;
use std::ops::Range;

pub(super) type Pages = Range<usize>;

/// What the driver was told about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct How {
    /// Devices may not write to it.
    pub(super) read_only: bool,
    /// How many processes have it in common: each counts its part.
    pub(super) processes: usize,
}

impl How {
    /// How much of so many bytes counts for this process.
    pub(super) fn counted(self, bytes: usize) -> usize {
        bytes.div_ceil(self.processes)
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By start: end, and how.
    runs: BTreeMap<usize, (usize, How)>,
    pins: BTreeMap<u64, Pages>,
    last: u64,
}

/// What the driver is to do when a pin ends: unregister these runs, then register those.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trim {
    pub(super) unregister: Vec<(Pages, How)>,
    pub(super) register: Vec<(Pages, How)>,
    /// Other pins in these runs.
    pub(super) others: Vec<u64>,
}

impl Runs {
    /// The parts of `pages` that no run covers.
    pub(super) fn gaps(&self, pages: &Pages) -> Vec<Pages> {
        let mut gaps = Vec::new();
        let mut from = pages.start;
        for (run, _) in self.touching(pages) {
            if from < run.start {
                gaps.push(from..run.start);
            }
            from = from.max(run.end);
        }
        if from < pages.end {
            gaps.push(from..pages.end);
        }
        gaps
    }

    /// The runs that have a page of `pages`, by start.
    pub(super) fn touching(&self, pages: &Pages) -> impl Iterator<Item = (Pages, How)> {
        let before = self.runs.range(..=pages.start).next_back();
        let first = before.map_or(pages.start, |(start, _)| *start);
        let start = pages.start;
        self.runs
            .range(first..pages.end.max(first))
            .map(|(start, (end, how))| (*start..*end, *how))
            .filter(move |(run, _)| run.end > start)
    }

    /// `pages`, and all of the runs that have a page of it.
    pub(super) fn reach(&self, pages: &Pages) -> Pages {
        let hull =
            |all: Pages, (run, _): (Pages, How)| all.start.min(run.start)..all.end.max(run.end);
        self.touching(pages).fold(pages.clone(), hull)
    }

    /// A new pin of `pages`, whose gaps were registered as `registered`. Returns its number, which is not 0.
    pub(super) fn add(&mut self, pages: Pages, registered: &[(Pages, How)]) -> u64 {
        self.insert(registered);
        self.last += 1;
        self.pins.insert(self.last, pages);
        self.last
    }

    /// The pages of a pin.
    pub(super) fn pages_of(&self, pin: u64) -> Option<Pages> {
        self.pins.get(&pin).cloned()
    }

    /// Ends a pin; `None` if it has ended. What is registered again is in place from now on; [`Self::lose`] says that it could
    /// not be.
    pub(super) fn end(&mut self, pin: u64) -> Option<Trim> {
        let pages = self.pins.remove(&pin)?;
        let mut trim = Trim::default();
        for (run, how) in self.touching(&pages).collect::<Vec<_>>() {
            let used = self.used(&run);
            if used == [run.clone()] {
                continue;
            }
            self.runs.remove(&run.start);
            let others = self.pins.iter().filter(|(_, it)| overlap(it, &run));
            trim.others.extend(others.map(|(pin, _)| *pin));
            trim.register.extend(used.into_iter().map(|it| (it, how)));
            trim.unregister.push((run, how));
        }
        self.insert(&trim.register);
        Some(trim)
    }

    /// A run could not be registered again.
    pub(super) fn lose(&mut self, run: &Pages) {
        self.runs.remove(&run.start);
    }

    /// All runs, and pins, which are forgotten.
    pub(super) fn take_all(&mut self) -> (Vec<(Pages, How)>, Vec<u64>) {
        let runs = std::mem::take(&mut self.runs).into_iter();
        let pins = std::mem::take(&mut self.pins).into_keys();
        (
            runs.map(|(start, (end, how))| (start..end, how)).collect(),
            pins.collect(),
        )
    }

    pub(super) fn count(&self) -> usize {
        self.pins.len()
    }

    fn insert(&mut self, registered: &[(Pages, How)]) {
        let entry = |(run, how): &(Pages, How)| (run.start, (run.end, *how));
        self.runs.extend(registered.iter().map(entry));
    }

    /// The parts of a run that pins have, joined where they touch.
    fn used(&self, run: &Pages) -> Vec<Pages> {
        let inside = |it: &Pages| it.start.max(run.start)..it.end.min(run.end);
        let mut parts: Vec<Pages> = self
            .pins
            .values()
            .filter(|it| overlap(it, run))
            .map(inside)
            .collect();
        parts.sort_by_key(|it| it.start);
        let mut joined: Vec<Pages> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => joined.push(part),
            }
        }
        joined
    }
}

fn overlap(one: &Pages, other: &Pages) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOW: How = How {
        read_only: false,
        processes: 1,
    };

    fn pin(runs: &mut Runs, pages: Pages) -> u64 {
        let gaps: Vec<_> = runs.gaps(&pages).into_iter().map(|it| (it, HOW)).collect();
        runs.add(pages, &gaps)
    }

    fn registered(runs: &Runs) -> Vec<Pages> {
        runs.touching(&(0..usize::MAX)).map(|(it, _)| it).collect()
    }

    #[test]
    fn a_part_of_what_is_pinned_needs_no_run_and_outlives_the_whole() {
        let mut runs = Runs::default();
        let whole = pin(&mut runs, 10..20);
        assert!(runs.gaps(&(12..14)).is_empty());
        let part = pin(&mut runs, 12..14);
        let trim = runs.end(whole).unwrap();
        assert_eq!(trim.unregister, [(10..20, HOW)]);
        assert_eq!(
            (trim.register, trim.others),
            (vec![(12..14, HOW)], vec![part])
        );
        assert_eq!(runs.end(part).unwrap().unregister, [(12..14, HOW)]);
        assert_eq!(runs.end(part), None, "once");
    }

    #[test]
    fn a_page_shared_with_a_neighbour_stays_as_long_as_either() {
        let mut runs = Runs::default();
        let (one, other) = (pin(&mut runs, 1..4), pin(&mut runs, 3..6));
        assert_eq!(registered(&runs), [1..4, 4..6]);
        assert_eq!(runs.reach(&(5..9)), 4..9);
        runs.end(one).unwrap();
        assert_eq!(registered(&runs), [3..4, 4..6]);
        assert_eq!(runs.end(other).unwrap().unregister.len(), 2);
    }

    proptest! {
        /// Beside a count of pins for each page.
        #[test]
        fn pages_are_registered_while_a_pin_has_them_and_once(steps in prop::collection::vec((0_usize..40, 1_usize..12, any::<bool>()), 1..60)) {
            let mut runs = Runs::default();
            let mut driver = [0_i32; 64];
            let mut live: Vec<(u64, Pages)> = Vec::new();
            for (start, length, ends) in steps {
                if ends && !live.is_empty() {
                    let (id, _) = live.swap_remove(start % live.len());
                    let trim = runs.end(id).unwrap();
                    trim.unregister.iter().flat_map(|(it, _)| it.clone()).for_each(|it| driver[it] -= 1);
                    trim.register.iter().flat_map(|(it, _)| it.clone()).for_each(|it| driver[it] += 1);
                } else {
                    let pages = start..start + length;
                    runs.gaps(&pages).into_iter().flatten().for_each(|it| driver[it] += 1);
                    live.push((pin(&mut runs, pages.clone()), pages));
                }
                for (page, registered) in driver.iter().enumerate() {
                    let wanted = live.iter().any(|(_, it)| it.contains(&page));
                    prop_assert_eq!(*registered, i32::from(wanted), "page {}", page);
                }
            }
        }
    }
}
