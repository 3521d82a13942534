//! Which pages a region is to have: the chain 1 GiB -> 2 MiB -> transparent -> 4 KiB, and why a
//! link of it is left out.
//!
//! A pure function of what is asked for and what the machine offers. Invariant: the chain ends in
//! pages of 4 KiB, which are always to be had.

use super::machine::{Machine, Transparent, pool_folder};
use super::pages::Pages;
use crate::config::memory::HugePages;
use crate::log::Bytes;

/// What to try, in this order, and what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) chain: Vec<Link>,
    /// For people, with what to do about it.
    pub(super) left_out: Vec<String>,
}

/// One thing to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) pages: Pages,
    /// Whether the system has set aside all that it takes.
    pub(super) set_aside: bool,
}

/// What is wanted of one region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) pages: HugePages,
    pub(super) bytes: usize,
    /// What the warm-up wants in all, so that the advice is good for more than one region.
    pub(super) ahead: usize,
    /// Whether transparent huge pages were slower than those of 4 KiB a moment ago.
    pub(super) crawls: bool,
}

/// Rounding up to whole pages may add one part of so many to a region: a small one does not get a
/// page of 1 GiB.
const WASTE: usize = 8;

/// The chain for one region on this machine, now.
pub(super) fn plan(wanted: Wanted, machine: &Machine) -> Plan {
    let mut plan = Plan {
        chain: Vec::new(),
        left_out: Vec::new(),
    };
    for pages in links(wanted.pages) {
        let set_aside = match pages {
            Pages::Giant | Pages::Large if wastes(wanted.bytes, *pages) => continue,
            Pages::Giant | Pages::Large => from_pool(wanted, *pages, machine),
            Pages::Transparent => transparent(wanted, machine).map(|()| false),
            Pages::Small => Ok(false),
        };
        let pages = *pages;
        match set_aside {
            Ok(set_aside) => plan.chain.push(Link { pages, set_aside }),
            Err(why) => plan.left_out.push(why),
        }
    }
    plan
}

/// How many regions of `bytes` bytes the pages that are set aside hold.
pub(super) fn set_aside(asked: HugePages, bytes: usize, machine: &Machine) -> usize {
    let in_pool = |pages: &Pages| {
        let pool = machine.pool(*pages)?;
        let serves = machine.populates && !wastes(bytes, *pages);
        serves.then(|| pool.free / bytes.div_ceil(pages.unit()))
    };
    links(asked).iter().filter_map(in_pool).sum()
}

/// Whether whole pages are much more than the region.
fn wastes(bytes: usize, pages: Pages) -> bool {
    (bytes.next_multiple_of(pages.unit()) - bytes).saturating_mul(WASTE) > bytes
}

fn links(asked: HugePages) -> &'static [Pages] {
    use Pages::{Giant, Large, Small, Transparent};
    match asked {
        HugePages::Auto | HugePages::Giant => &[Giant, Large, Transparent, Small],
        HugePages::Large => &[Large, Transparent, Small],
        HugePages::Transparent => &[Transparent, Small],
        HugePages::Off => &[Small],
    }
}

/// Whether such pages are set aside for the whole region, or why there are none.
fn from_pool(wanted: Wanted, pages: Pages, machine: &Machine) -> Result<bool, String> {
    let size = Bytes(pages.unit() as u64);
    let Some(pool) = machine.pool(pages) else {
        return Err(format!("this machine has no huge pages of {size}"));
    };
    let need = wanted.bytes.div_ceil(pages.unit());
    if pool.free + pool.more < need {
        let ahead = wanted.ahead.div_ceil(pages.unit());
        let all = (ahead * machine.processes).max(need);
        let number = pool.total - pool.free.min(pool.total) + all;
        let command = match pages {
            Pages::Large => format!("sysctl vm.nr_hugepages={number}"),
            _ => {
                let folder = pool_folder(pages).unwrap_or_default();
                format!("echo {number} > /{folder}/nr_hugepages")
            }
        };
        let (free, total) = (pool.free, pool.total);
        return Err(format!(
            "{free} of {total} huge pages of {size} free and {need} needed ({command})"
        ));
    }
    // A control group may refuse a page that the pool has. A kernel that fills memory by itself
    // says so; where a thread has to write to it, the program ends.
    if machine.populates {
        Ok(pool.free >= need)
    } else {
        Err(format!(
            "huge pages of {size} are not used before Linux 5.14 (MADV_POPULATE_WRITE)"
        ))
    }
}

fn transparent(wanted: Wanted, machine: &Machine) -> Result<(), String> {
    match machine.transparent() {
        _ if wanted.crawls => {
            Err("transparent huge pages took longer than pages of 4 KiB a moment ago".to_owned())
        }
        Transparent::Here => Ok(()),
        Transparent::Never => Err("transparent huge pages are turned off \
             (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)"
            .to_owned()),
        Transparent::Absent => Err("this kernel has no transparent huge pages".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::tests::made_up;
    use super::*;

    const GIB: usize = 1 << 30;

    fn wanted(pages: HugePages, bytes: usize) -> Wanted {
        Wanted {
            pages,
            bytes,
            ahead: 8 * GIB,
            crawls: false,
        }
    }

    /// A machine with so many free pages of 1 GiB and 2 MiB, of ten more each, and this mode.
    fn machine(
        giant: Option<usize>,
        large: Option<usize>,
        mode: &str,
    ) -> (Machine, tempfile::TempDir) {
        let mut files = vec![(
            "sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            mode.to_owned(),
        )];
        for (free, size) in [(giant, "1048576"), (large, "2048")] {
            let Some(free) = free else { continue };
            let at = |name: &str| format!("sys/kernel/mm/hugepages/hugepages-{size}kB/{name}");
            files.push((at("nr_hugepages"), (free + 10).to_string()));
            files.push((at("free_hugepages"), free.to_string()));
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
        made_up(&files)
    }

    fn pages(plan: &Plan) -> Vec<Pages> {
        plan.chain.iter().map(|link| link.pages).collect()
    }

    const HERE: &str = "always [madvise] never";
    const NEVER: &str = "always madvise [never]";

    #[test]
    fn each_size_falls_back_to_the_next_and_the_last_is_always_there() {
        use Pages::{Giant, Large, Small, Transparent};
        let (rich, _folder) = machine(Some(4), Some(2048), HERE);
        for (asked, chain) in [
            (HugePages::Auto, vec![Giant, Large, Transparent, Small]),
            (HugePages::Giant, vec![Giant, Large, Transparent, Small]),
            (HugePages::Large, vec![Large, Transparent, Small]),
            (HugePages::Transparent, vec![Transparent, Small]),
            (HugePages::Off, vec![Small]),
        ] {
            let plan = plan(wanted(asked, GIB), &rich);
            assert_eq!(pages(&plan), chain);
            assert_eq!(plan.left_out, [] as [String; 0]);
        }
    }

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let (poor, _folder) = machine(None, Some(3), NEVER);
        let plan = plan(wanted(HugePages::Giant, GIB), &poor);
        assert_eq!(pages(&plan), [Pages::Small]);
        insta::assert_snapshot!(plan.left_out.join("\n"), @r"
        this machine has no huge pages of 1 GiB
        3 of 13 huge pages of 2 MiB free and 512 needed (sysctl vm.nr_hugepages=4106)
        transparent huge pages are turned off (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)
        ");
    }

    #[test]
    fn a_pool_of_giant_pages_that_is_too_small_is_named_by_its_folder() {
        let (machine, _folder) = machine(Some(1), None, HERE);
        let plan = plan(wanted(HugePages::Auto, 2 * GIB), &machine);
        assert_eq!(pages(&plan), [Pages::Transparent, Pages::Small]);
        insta::assert_snapshot!(plan.left_out.join("\n"), @r"
        1 of 11 huge pages of 1 GiB free and 2 needed (echo 18 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)
        this machine has no huge pages of 2 MiB
        ");
    }

    #[test]
    fn a_small_region_does_not_take_a_page_that_it_would_waste() {
        let (machine, _folder) = machine(Some(4), Some(2048), HERE);
        let of = |bytes| plan(wanted(HugePages::Giant, bytes), &machine).chain[0].pages;
        assert_eq!(of(GIB - GIB / 16), Pages::Giant);
        assert_eq!(of(GIB + GIB / 16), Pages::Large);
        assert_eq!(
            of(7 << 20),
            Pages::Transparent,
            "rounding up adds a seventh"
        );
        assert_eq!(of(17 << 20), Pages::Large);
    }

    #[test]
    fn whole_regions_are_what_a_pool_holds() {
        let (machine, _folder) = machine(Some(2), Some(700), HERE);
        let of = |asked, bytes| set_aside(asked, bytes, &machine);
        assert_eq!(of(HugePages::Auto, GIB), 3);
        assert_eq!(of(HugePages::Large, GIB), 1, "700 pages hold 512 once");
        assert_eq!(of(HugePages::Giant, 2 * GIB), 1);
        assert_eq!(of(HugePages::Transparent, GIB), 0);
    }

    #[test]
    fn pages_that_the_kernel_would_make_are_not_set_aside() {
        let at = |name: &str| format!("sys/kernel/mm/hugepages/hugepages-2048kB/{name}");
        let (machine, _folder) = made_up(&[
            (&at("nr_hugepages"), "0"),
            (&at("free_hugepages"), "0"),
            (&at("nr_overcommit_hugepages"), "1000"),
        ]);
        let plan = plan(wanted(HugePages::Large, GIB), &machine);
        assert_eq!(
            plan.chain[0],
            Link {
                pages: Pages::Large,
                set_aside: false
            }
        );
        assert_eq!(set_aside(HugePages::Large, GIB, &machine), 0);
    }

    #[test]
    fn a_pool_is_not_touched_where_a_control_group_could_end_the_program() {
        let (machine, _folder) = machine(None, Some(2048), HERE);
        let old = Machine {
            populates: false,
            ..machine
        };
        let plan = plan(wanted(HugePages::Large, GIB), &old);
        assert_eq!(pages(&plan), [Pages::Transparent, Pages::Small]);
        assert!(plan.left_out[0].contains("5.14"), "{:?}", plan.left_out);
    }

    #[test]
    fn transparent_pages_that_crawled_are_not_tried_again() {
        let (machine, _folder) = machine(None, None, HERE);
        let wanted = Wanted {
            crawls: true,
            ..wanted(HugePages::Transparent, GIB)
        };
        assert_eq!(pages(&plan(wanted, &machine)), [Pages::Small]);
    }
}
