//! Makes a region's memory: mapped with the best pages available, on its node, shared with children or
//! hidden from them, and filled.
//!
//! Combines the files beside it. Knows no CUDA: the result is ordinary memory whose pages are all
//! present. Invariant: if a step fails, its mapping is unmapped.

mod fill;

use std::io;
use std::time::{Duration, Instant};

use super::areas::Areas;
use super::compaction::Stalls;
use super::huge::{self, Link, Plan, Wanted};
use super::machine::Machine;
use super::mapping::Mapping;
use super::numa::{self, Choice};
use super::pages::Pages;
use super::refusal::Refusal;
use super::said::Said;
use super::tally::Tally;
use super::touch::{self, Toucher, Unfilled};
use super::{Control, Source};
use crate::config::memory::{Fork, HugePages, Memory, Numa};
use crate::lock::{self, Lock};
use crate::log::{self, Bytes};
use pinbuddy_machine::{Limits, LockLimit};

/// Makes regions as the settings ask, on this machine.
#[derive(Debug)]
pub(super) struct Maker {
    settings: Memory,
    machine: Machine,
    /// Bytes that the warm-up wants in all.
    ahead: usize,
    areas: Areas,
    stalls: Stalls,
    /// When the pool last had no pages for a region.
    nothing_since: Lock<Option<Instant>>,
    said: Said,
}

/// A region's memory, all of it present, and the time that it took, without waits and rests.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) mapping: Mapping,
    pub(super) taken: Duration,
    /// Huge pages were not tried, and the time tells how fast others are filled.
    pub(super) is_small: bool,
}

/// Why it is not filled.
fn unfilled(why: &Unfilled, pages: Pages) -> Refusal {
    let why = match why {
        Unfilled::Stopped => return Refusal::Stopped,
        Unfilled::Failed(why) => why,
    };
    match why.raw_os_error() {
        Some(libc::ENOMEM) => Refusal::Short(why.to_string()),
        // The pool has the pages, or the mapping would have failed.
        Some(libc::EFAULT) if pages.are_of_a_pool() => {
            Refusal::NotThis("the control group's limit (hugetlb) refuses them".to_owned())
        }
        _ => Refusal::NotThis(why.to_string()),
    }
}

/// How long it is remembered that the pool has no pages.
const MOMENT: Duration = Duration::from_secs(1);

/// The machine must have one part of so many of a region left beside it.
const SPARE: u64 = 16;

impl Maker {
    pub(super) fn new(settings: Memory, ahead: usize, machine: Machine) -> Self {
        Self {
            settings,
            machine,
            ahead,
            areas: Areas::default(),
            stalls: Stalls::default(),
            nothing_since: Lock::default(),
            said: Said::default(),
        }
    }

    /// Makes `bytes` bytes of memory, all present, as long as `control` lets it; `pci_address` is that of
    /// the device in use.
    pub(super) fn make(
        &self,
        bytes: usize,
        source: Source,
        control: &dyn Control,
        pci_address: impl FnOnce() -> Option<String>,
    ) -> Result<Made, Refusal> {
        lock::assert_none_held("mapping");
        let start = Instant::now();
        self.areas.take(&self.machine.root).map_err(Refusal::Short)?;
        let tally = Tally::default();
        let (mapping, pages) = self.map(bytes, source, control, &tally, pci_address).inspect_err(|_| {
            self.areas.put();
        })?;
        let taken = start.elapsed().saturating_sub(tally.idle());
        let is_small = pages == Pages::Small && self.tells(bytes);
        Ok(Made { mapping, taken, is_small })
    }

    /// Whether a region would be as CUDA's are: of small pages, wherever the kernel puts them, and shared with children. False
    /// where the machine has no memory for it.
    pub(super) fn is_as_cudas(&self, bytes: usize) -> bool {
        self.settings.fork.value == Fork::Share
            && self.settings.numa.value == Numa::Off
            && self.tells(bytes)
            && self.plan(bytes).chain[0].pages == Pages::Small
            && self.is_there(bytes).is_ok()
    }

    /// Whether a region is as long as one that all threads fill at once: a shorter one takes longer a byte.
    fn tells(&self, bytes: usize) -> bool {
        bytes >= self.machine.sizes.large.max(touch::SLICE * self.threads())
    }

    /// The machine's smallest page, in bytes.
    pub(super) fn page(&self) -> usize {
        self.machine.sizes.page
    }

    /// Whether its memory is hidden from children.
    pub(super) fn hides(&self) -> bool {
        self.settings.fork.value == Fork::Hide
    }

    /// Unmaps a region that is registered with no device any more.
    pub(super) fn unmap(&self, mapping: Mapping) {
        if unmap(mapping) {
            self.areas.put();
        }
    }

    #[cfg(test)]
    pub(super) fn areas_taken(&self) -> usize {
        self.areas.taken()
    }

    fn map(
        &self,
        bytes: usize,
        source: Source,
        control: &dyn Control,
        tally: &Tally,
        pci_address: impl FnOnce() -> Option<String>,
    ) -> Result<(Mapping, Pages), Refusal> {
        let mut plan = self.plan(bytes);
        if source == Source::SetAside {
            plan.chain.retain(|link| link.set_aside);
        }
        let node = self.node(pci_address);
        let mut left_out = plan.left_out;
        let mut refusal = Refusal::NotThis(format!("no pages for {}", Bytes(bytes as u64)));
        for link in plan.chain {
            let pages = link.pages;
            let toucher = self.toucher(control, tally);
            match self.try_with(bytes, link, node, toucher) {
                Ok(mapping) => {
                    self.say_pages(bytes, pages, &left_out);
                    return Ok((mapping, pages));
                }
                Err(why) => {
                    let (Refusal::Short(text) | Refusal::NotThis(text)) = &why else {
                        return Err(why);
                    };
                    left_out.push(format!("{}: {text}", self.name(pages)));
                    refusal = why;
                }
            }
        }
        Err(refusal)
    }

    fn plan(&self, bytes: usize) -> Plan {
        let wanted = Wanted {
            pages: self.settings.huge_pages.value,
            fork: self.settings.fork.value,
            bytes,
            ahead: self.ahead,
            stalls: self.stalls.was_just_seen(),
        };
        huge::plan(wanted, &self.machine)
    }

    /// Which memory the next region of `bytes` bytes can take.
    pub(super) fn source(&self, bytes: usize) -> Source {
        // Reads files, and once memory is used up every request may ask.
        if self.nothing_since.lock().is_some_and(|it| it.elapsed() < MOMENT) {
            return Source::Ordinary;
        }
        if self.plan(bytes).chain.iter().any(|link| link.set_aside) {
            return Source::SetAside;
        }
        self.nothing_is_set_aside();
        Source::Ordinary
    }

    /// The pool has no pages: it is not read again for a moment.
    pub(super) fn nothing_is_set_aside(&self) {
        *self.nothing_since.lock() = Some(Instant::now());
    }

    /// This process's share of the pages set aside, in regions of `bytes` bytes.
    pub(super) fn set_aside(&self, bytes: usize) -> usize {
        let regions = huge::set_aside(self.settings.huge_pages.value, bytes, &self.machine);
        regions / self.machine.processes * bytes
    }

    fn try_with(&self, bytes: usize, link: Link, node: Option<u32>, toucher: Toucher<'_>) -> Result<Mapping, Refusal> {
        if !link.set_aside {
            self.is_there(bytes)?;
        }
        let failed = |why: io::Error| Refusal::NotThis(why.to_string());
        let fork = self.settings.fork.value;
        let mapping = Mapping::new(bytes, link.pages, fork).map_err(failed)?;
        if let Err(why) = self.fill(&mapping, link.pages, node, toucher) {
            unmap(mapping);
            return Err(unfilled(&why, link.pages));
        }
        Ok(mapping)
    }

    /// Checks that the machine and the control group leave so much. The driver would return an error, but
    /// touching absent pages wakes the OOM killer.
    fn is_there(&self, bytes: usize) -> Result<(), Refusal> {
        let limits = Limits {
            // Only the driver knows whether the lock limit counts.
            lock: LockLimit::default(),
            ..Limits::read(&self.machine.files())
        };
        let wanted = bytes as u64 + bytes as u64 / SPARE;
        match limits.least() {
            Some(limit) if limit.bytes < wanted => {
                Err(Refusal::Short(format!("{} is left of {}", Bytes(limit.bytes), limit.name)))
            }
            _ => Ok(()),
        }
    }

    /// The node for the region, if one is to be chosen.
    fn node(&self, pci_address: impl FnOnce() -> Option<String>) -> Option<u32> {
        match numa::choose(self.settings.numa.value, &self.machine, pci_address) {
            Choice::Node(node) => return Some(node),
            Choice::Leave => {}
            Choice::Nothing(why) => {
                let line = || format!("BUDDY_NUMA: {why}; nothing changes");
                self.said.numa.say(false, line);
            }
            Choice::Cannot(why) => self.said.misplaced(|| why),
        }
        None
    }

    /// Whether larger pages were asked for by name.
    fn is_asked_for(&self) -> bool {
        self.settings.huge_pages.value != HugePages::Auto
    }

    /// Their name for people.
    fn name(&self, pages: Pages) -> String {
        let size = Bytes(pages.unit(self.machine.sizes) as u64);
        match pages {
            Pages::Giant | Pages::Large | Pages::Medium => format!("huge pages of {size}"),
            Pages::Transparent | Pages::Collapsed => "transparent huge pages".to_owned(),
            Pages::Small => format!("pages of {size}"),
        }
    }

    fn say_pages(&self, bytes: usize, got: Pages, left_out: &[String]) {
        if left_out.is_empty() {
            return;
        }
        self.said.pages.say(self.is_asked_for(), || {
            let size = Bytes(bytes as u64);
            format!("BUDDY_HUGE_PAGES: {}. A region of {size} has {} instead", left_out.join("; "), self.name(got))
        });
    }
}

/// Unmaps it; returns whether that succeeded.
fn unmap(mapping: Mapping) -> bool {
    let bytes = Bytes(mapping.len() as u64);
    let unmapped = mapping.unmap();
    if let Err(why) = &unmapped {
        // The kernel limits areas, and unmapping can split one in two.
        log::warn(|| format!("{bytes} of memory stay mapped: {why}"));
    }
    unmapped.is_ok()
}

#[cfg(test)]
mod tests;
