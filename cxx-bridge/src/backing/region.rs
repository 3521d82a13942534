//! Makes a region's memory: mapped with the best pages to be had, on its node, kept from children,
//! and filled.
//!
//! Puts together what the files beside it decide and do. Knows no CUDA: what comes out is ordinary
//! memory that is all there. Invariant: where a step fails, what was mapped for it is unmapped.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::background;
use super::crawl::{Filled, Pace};
use super::huge::{self, Plan, Wanted};
use super::machine::Machine;
use super::numa::{self, Choice};
use super::pages::{Mapping, Pages};
use super::said::Said;
use super::touch::{self, Toucher};
use crate::budget::Limits;
use crate::config::memory::{HugePages, Memory};
use crate::lock;
use crate::log::{self, Bytes};

/// Makes regions as the settings ask, on this machine.
#[derive(Debug)]
pub(super) struct Maker {
    settings: Memory,
    machine: Machine,
    /// What the warm-up wants in all.
    ahead: usize,
    crawls: AtomicBool,
    pace: Pace,
    said: Said,
}

/// Why there is no such memory, for people.
#[derive(Debug)]
pub(super) enum Unmade {
    /// The machine or the control group has no more.
    Short(String),
    /// Another reason.
    Failed(String),
}

impl Unmade {
    fn short(why: io::Error) -> Self {
        Self::Short(why.to_string())
    }

    fn text(&self) -> &str {
        match self {
            Self::Short(why) | Self::Failed(why) => why,
        }
    }
}

/// One part of so many of a region is to be left beside it.
const SPARE: u64 = 16;

impl Maker {
    pub(super) fn new(settings: Memory, ahead: usize, machine: Machine) -> Self {
        Self {
            settings,
            machine,
            ahead,
            crawls: AtomicBool::new(false),
            pace: Pace::default(),
            said: Said::default(),
        }
    }

    /// `bytes` bytes of memory that is all there; `pci_address` is that of the device in use.
    pub(super) fn make(
        &self,
        bytes: usize,
        pci_address: impl FnOnce() -> Option<String>,
    ) -> Result<Mapping, Unmade> {
        lock::assert_none_held("mapping");
        let plan = self.plan(bytes);
        let node = self.node(pci_address);
        let mut left_out = plan.left_out;
        let mut refusal = Unmade::Failed(format!("no pages for {}", Bytes(bytes as u64)));
        for pages in plan.chain {
            match self.try_with(bytes, pages, node) {
                Ok(mapping) => {
                    self.say_pages(bytes, pages, &left_out);
                    return Ok(mapping);
                }
                Err(why) => {
                    left_out.push(format!("{}: {}", name(pages), why.text()));
                    refusal = why;
                }
            }
        }
        Err(refusal)
    }

    fn plan(&self, bytes: usize) -> Plan {
        let wanted = Wanted {
            pages: self.settings.huge_pages.value,
            bytes,
            ahead: self.ahead,
            crawls: self.crawls.load(Ordering::Relaxed),
        };
        huge::plan(wanted, &self.machine)
    }

    /// Whether the next region of `bytes` bytes would come from one of the system's pools.
    pub(super) fn is_set_aside(&self, bytes: usize) -> bool {
        let first = self.plan(bytes).chain.first().copied();
        first.is_some_and(Pages::are_of_a_pool)
    }

    /// How much the system's pools hold in regions of `bytes` bytes.
    pub(super) fn set_aside(&self, bytes: usize) -> u64 {
        huge::set_aside(self.settings.huge_pages.value, bytes, &self.machine)
    }

    fn try_with(&self, bytes: usize, pages: Pages, node: Option<u32>) -> Result<Mapping, Unmade> {
        if !pages.are_of_a_pool() {
            self.is_there(bytes)?;
        }
        let failed = |why: io::Error| Unmade::Failed(why.to_string());
        let mapping = Mapping::new(bytes, pages).map_err(failed)?;
        let filled = mapping
            .keep_from_children()
            .map_err(failed)
            .and_then(|()| self.fill(&mapping, pages, node).map_err(Unmade::short));
        if let Err(why) = filled {
            // It was mapped just now, whole, so that nothing can keep it from being unmapped.
            let _ = mapping.unmap();
            return Err(why);
        }
        Ok(mapping)
    }

    /// Whether the machine and the control group leave so much: the driver would be told that they
    /// do not, but who touches memory that is not there is ended by the kernel.
    fn is_there(&self, bytes: usize) -> Result<(), Unmade> {
        let limits = Limits {
            // Of locked memory only the driver knows whether it counts.
            locked: None,
            ..Limits::read(&self.machine.root)
        };
        let wanted = bytes as u64 + bytes as u64 / SPARE;
        match limits.least() {
            Some(limit) if limit.bytes < wanted => Err(Unmade::Short(format!(
                "{} is left of {}",
                Bytes(limit.bytes),
                limit.name
            ))),
            _ => Ok(()),
        }
    }

    fn fill(&self, mapping: &Mapping, pages: Pages, node: Option<u32>) -> io::Result<()> {
        if let Some(node) = node
            && let Err(why) = numa::bind(mapping, node)
        {
            self.said.numa(|| why);
        }
        let (cores, processes) = (self.machine.cores, self.machine.processes);
        let behind = background::entered();
        let toucher = Toucher {
            threads: touch::threads(self.settings.pin_threads.value, cores, processes, behind),
            populates: self.machine.populates,
            rests: touch::rests(cores, processes, behind),
        };
        if pages == Pages::Transparent {
            self.fill_transparent(mapping, toucher)?;
        } else {
            toucher.touch(mapping, 0..mapping.len(), pages.unit())?;
        }
        if let Some(node) = node {
            self.see_where_it_lies(mapping, node);
        }
        Ok(())
    }

    fn fill_transparent(&self, mapping: &Mapping, toucher: Toucher) -> io::Result<()> {
        let stalls = || self.machine.compaction_stalls();
        if let Filled::Crawled { until, huge, small } = self.pace.fill(mapping, toucher, stalls)? {
            self.crawls.store(true, Ordering::Relaxed);
            self.said.crawls(self.is_asked_for(), || {
                format!(
                    "transparent huge pages took {huge:.1?} where pages of 4 KiB take {small:.1?}: \
                     this memory is fragmented. Pages of 4 KiB from now on"
                )
            });
            mapping.only_small(until);
            toucher.touch(mapping, until..mapping.len(), Pages::Small.unit())?;
        }
        Ok(())
    }

    /// The node that the region is to lie on, if there is one to be chosen.
    fn node(&self, pci_address: impl FnOnce() -> Option<String>) -> Option<u32> {
        match numa::choose(self.settings.numa.value, &self.machine, pci_address) {
            Choice::Node(node) => return Some(node),
            Choice::Leave => {}
            Choice::Nothing(why) => self.said.nothing_to_choose(why),
            Choice::Cannot(why) => self.said.numa(|| why),
        }
        None
    }

    fn see_where_it_lies(&self, mapping: &Mapping, wanted: u32) {
        let Some(lies) = numa::where_it_lies(mapping.base(), mapping.len()) else {
            return;
        };
        if lies.node != wanted || lies.percent < 100 {
            self.said.numa(|| {
                let size = Bytes(mapping.len() as u64);
                let (percent, node) = (lies.percent, lies.node);
                format!(
                    "{percent} % of a region of {size} came to lie on node {node}, not {wanted}"
                )
            });
        } else {
            log::debug(|| format!("all of a region lies on node {wanted}"));
        }
    }

    /// Whether larger pages were asked for by name.
    fn is_asked_for(&self) -> bool {
        self.settings.huge_pages.value != HugePages::Auto
    }

    fn say_pages(&self, bytes: usize, got: Pages, left_out: &[String]) {
        if left_out.is_empty() {
            return;
        }
        self.said.pages(self.is_asked_for(), || {
            let size = Bytes(bytes as u64);
            format!(
                "{}. A region of {size} has {} instead",
                left_out.join("; "),
                name(got)
            )
        });
    }
}

/// What people call them.
fn name(pages: Pages) -> &'static str {
    match pages {
        Pages::Giant => "huge pages of 1 GiB",
        Pages::Large => "huge pages of 2 MiB",
        Pages::Transparent => "transparent huge pages",
        Pages::Small => "pages of 4 KiB",
    }
}

#[cfg(test)]
mod tests;
