//! Which pages to try for a region: the chain 1 GiB -> huge -> 2 MiB -> transparent -> small, and why a link is
//! left out. Memory shared with children gets transparent huge pages by other means than private memory.
//!
//! A pure function of the settings and the machine. Invariant: the chain ends in small pages, which are
//! always available.

use pinbuddy_machine::Shared;

use super::machine::{Machine, Transparent};
use super::pages::Pages;
use crate::config::memory::{Fork, HugePages};
use crate::log::Bytes;

/// The attempts in order, and what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) chain: Vec<Link>,
    /// Why links were left out, for people, with what to do about it.
    pub(super) left_out: Vec<String>,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) pages: Pages,
    /// Whether the system has set aside all the pages that it takes.
    pub(super) set_aside: bool,
}

/// What a region needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) pages: HugePages,
    pub(super) fork: Fork,
    pub(super) bytes: usize,
    /// Bytes that the warm-up wants in all, so that the advice covers more than one region.
    pub(super) ahead: usize,
    /// Whether compaction has just stalled transparent huge pages.
    pub(super) stalls: bool,
}

/// Rounding up to whole pages may add at most one part of so many: a small region gets no page of 1 GiB.
const WASTE: usize = 8;

/// The chain for one region on this machine, now.
pub(super) fn plan(wanted: Wanted, machine: &Machine) -> Plan {
    let mut plan = Plan { chain: Vec::new(), left_out: Vec::new() };
    for pages in links(wanted.pages, machine) {
        let ordinary = |pages| Link { pages, set_aside: false };
        let link = match pages {
            Pages::Giant | Pages::Large | Pages::Medium if wastes(wanted.bytes, pages, machine) => {
                continue;
            }
            Pages::Giant | Pages::Large | Pages::Medium => {
                from_pool(wanted, pages, machine).map(|set_aside| Link { pages, set_aside })
            }
            // None would fit into it.
            Pages::Transparent | Pages::Collapsed if wanted.bytes < machine.sizes.large => continue,
            Pages::Transparent | Pages::Collapsed => transparent(wanted, machine).map(ordinary),
            Pages::Small => Ok(ordinary(pages)),
        };
        match link {
            Ok(link) => plan.chain.push(link),
            Err(why) => plan.left_out.push(why),
        }
    }
    plan
}

/// How many regions of `bytes` bytes fit into the pages that are set aside.
pub(super) fn set_aside(asked: HugePages, bytes: usize, machine: &Machine) -> usize {
    let in_pool = |pages: Pages| {
        let pool = machine.pool(pages)?;
        let serves = machine.populates && !wastes(bytes, pages, machine);
        serves.then(|| pool.free / bytes.div_ceil(pages.unit(machine.sizes)))
    };
    links(asked, machine).filter_map(in_pool).sum()
}

/// Whether rounding up to whole pages wastes too much.
fn wastes(bytes: usize, pages: Pages, machine: &Machine) -> bool {
    (bytes.next_multiple_of(pages.unit(machine.sizes)) - bytes).saturating_mul(WASTE) > bytes
}

/// Whether somebody has set up the pool of 2 MiB on a machine whose own huge pages are larger. A pool without pages is no
/// reason for a message of a region: the doctor advises it.
fn has_more_of(pages: Pages, machine: &Machine) -> bool {
    let is_another = pages.unit(machine.sizes) < machine.sizes.large;
    is_another && machine.pool(pages).is_some_and(|it| it.total + it.more > 0)
}

/// The pages to try in turn.
fn links(asked: HugePages, machine: &Machine) -> impl Iterator<Item = Pages> {
    use Pages::{Giant, Large, Medium, Small, Transparent};
    let all: &[Pages] = match asked {
        HugePages::Auto | HugePages::Giant => &[Giant, Large, Medium, Transparent, Small],
        HugePages::Large => &[Large, Medium, Transparent, Small],
        HugePages::Transparent => &[Transparent, Small],
        HugePages::Off => &[Small],
    };
    let all = all.iter().copied();
    all.filter(|&it| it != Medium || has_more_of(it, machine))
}

/// Whether such pages are set aside for the whole region, or why there are none.
fn from_pool(wanted: Wanted, pages: Pages, machine: &Machine) -> Result<bool, String> {
    let unit = pages.unit(machine.sizes);
    let size = Bytes(unit as u64);
    let Some(pool) = machine.pool(pages) else {
        return Err(format!("this machine has no huge pages of {size}"));
    };
    let need = wanted.bytes.div_ceil(unit);
    if pool.free + pool.more < need {
        let ahead = wanted.ahead.div_ceil(unit);
        let all = (ahead * machine.processes).max(need);
        let number = pool.total - pool.free.min(pool.total) + all;
        let command = match pages {
            Pages::Large => format!("sysctl vm.nr_hugepages={number}"),
            _ => {
                let folder = machine.pool_folder(pages).unwrap_or_default();
                format!("echo {number} > /{folder}/nr_hugepages")
            }
        };
        let (free, total) = (pool.free, pool.total);
        return Err(format!("{free} of {total} huge pages of {size} free and {need} needed ({command})"));
    }
    // A control group may refuse a page that the pool has. MADV_POPULATE_WRITE reports that; a write
    // to the page would end the program.
    if machine.populates {
        Ok(pool.free >= need)
    } else {
        Err(format!("huge pages of {size} are not used before Linux 5.14 (MADV_POPULATE_WRITE)"))
    }
}

/// The kind of transparent huge pages for such memory, or why it gets none.
fn transparent(wanted: Wanted, machine: &Machine) -> Result<Pages, String> {
    if wanted.stalls {
        let small = Bytes(machine.sizes.page as u64);
        return Err(format!("transparent huge pages took longer than pages of {small} a moment ago"));
    }
    match machine.transparent() {
        Transparent::Here => {}
        Transparent::Never => {
            return Err("transparent huge pages are turned off \
                 (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)"
                .to_owned());
        }
        Transparent::Absent => {
            return Err("this kernel has no transparent huge pages".to_owned());
        }
    }
    match (wanted.fork, machine.shared()) {
        (Fork::Hide, _) | (Fork::Share, Shared::Touched) => Ok(Pages::Transparent),
        (Fork::Share, Shared::Collapsed) => Ok(Pages::Collapsed),
        (Fork::Share, Shared::Denied) => Err(format!("huge pages of shared memory are turned off ({ALLOW_SHARED})")),
        (Fork::Share, Shared::TooOld) => Err(format!(
            "before Linux 6.1 shared memory has huge pages only where they are turned on \
             ({ALLOW_SHARED}; or, where no forked child reads pinned memory, BUDDY_FORK=hide)"
        )),
    }
}

const ALLOW_SHARED: &str = "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";

#[cfg(test)]
mod tests;
