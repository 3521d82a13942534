//! Chains on made-up machines.

use super::super::machine::tests::{ENABLED, HERE, SHARED, made_up, pool, with_pools};
use super::super::pages::tests::KERNELS;
use super::*;

const GIB: usize = 1 << 30;

fn wanted(pages: HugePages, bytes: usize) -> Wanted {
    Wanted { pages, fork: Fork::Hide, bytes, ahead: 8 * GIB, stalls: false }
}

/// A machine with so many free pages of 1 GiB and 2 MiB, ten more of each in use, and this mode.
fn machine(giant: Option<usize>, large: Option<usize>, mode: &str) -> (Machine, tempfile::TempDir) {
    let pools = [(1 << 20, giant), (2048, large)];
    let there = |(kib, free)| Option::map(free, |free| (kib, free, 10));
    with_pools(pools.into_iter().filter_map(there), mode)
}

fn pages(plan: &Plan) -> Vec<Pages> {
    plan.chain.iter().map(|link| link.pages).collect()
}

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
        let stalls = Wanted { stalls: true, ..wanted(asked, GIB) };
        let without: Vec<Pages> = chain.iter().copied().filter(|it| *it != Transparent).collect();
        assert_eq!(pages(&plan(stalls, &rich)), without, "transparent pages that stalled are not tried again");
        let plan = plan(wanted(asked, GIB), &rich);
        assert_eq!(pages(&plan), chain);
        assert_eq!(plan.left_out, [] as [String; 0]);
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let left_out = |giant, large, mode, asked, bytes, chain: &[Pages]| {
        let (machine, _folder) = machine(giant, large, mode);
        let plan = plan(wanted(asked, bytes), &machine);
        assert_eq!(pages(&plan), chain);
        plan.left_out.join("\n")
    };
    insta::assert_snapshot!(left_out(None, Some(3), NEVER, HugePages::Giant, GIB, &[Pages::Small]), @r"
    this machine has no huge pages of 1 GiB
    3 of 13 huge pages of 2 MiB free and 512 needed (sysctl vm.nr_hugepages=4106)
    transparent huge pages are turned off (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)
    ");
    let chain = [Pages::Transparent, Pages::Small];
    insta::assert_snapshot!(left_out(Some(1), None, HERE, HugePages::Auto, 2 * GIB, &chain), @r"
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
    assert_eq!(of(7 << 20), Pages::Transparent, "rounding up adds a seventh");
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
    let files = ["nr_hugepages", "free_hugepages", "nr_overcommit_hugepages"].map(|name| pool(2048, name));
    let (machine, _folder) = made_up(&[(&files[0], "0"), (&files[1], "0"), (&files[2], "1000")]);
    let plan = plan(wanted(HugePages::Large, GIB), &machine);
    assert_eq!(plan.chain[0], Link { pages: Pages::Large, set_aside: false });
    assert_eq!(set_aside(HugePages::Large, GIB, &machine), 0);
}

#[test]
fn a_pool_is_not_touched_where_a_control_group_could_end_the_program() {
    let (machine, _folder) = machine(None, Some(2048), HERE);
    let old = Machine { populates: false, ..machine };
    let plan = plan(wanted(HugePages::Large, GIB), &old);
    assert_eq!(pages(&plan), [Pages::Transparent, Pages::Small]);
    assert!(plan.left_out[0].contains("5.14"), "{:?}", plan.left_out);
}

#[test]
fn shared_memory_has_huge_pages_as_the_kernel_can() {
    let chain = |mode: Option<&str>, collapses| {
        let mode = mode.map(|word| format!("always [{word}]"));
        let mut files = vec![(ENABLED, HERE)];
        files.extend(mode.as_deref().map(|it| (SHARED, it)));
        let (machine, _folder) = made_up(&files);
        let machine = Machine { collapses, ..machine };
        let fork = Fork::Share;
        let wanted = Wanted { fork, ..wanted(HugePages::Transparent, GIB) };
        let plan = plan(wanted, &machine);
        (pages(&plan), plan.left_out.join("\n"))
    };
    use Pages::{Collapsed, Small, Transparent};
    let none = String::new();
    for mode in [None, Some("never")] {
        assert_eq!(chain(mode, true), (vec![Collapsed, Small], none.clone()));
        let (pages, why) = chain(mode, false);
        assert_eq!(pages, [Small]);
        assert_eq!(
            why,
            "before Linux 6.1 shared memory has huge pages only where they are turned on (echo \
             advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled; or, where no forked \
             child reads pinned memory, BUDDY_FORK=hide)"
        );
    }
    for collapses in [true, false] {
        let advised = chain(Some("advise"), collapses);
        assert_eq!(advised, (vec![Transparent, Small], none.clone()));
        let (pages, why) = chain(Some("deny"), collapses);
        assert_eq!(pages, [Small]);
        assert_eq!(
            why,
            "huge pages of shared memory are turned off (echo advise > \
             /sys/kernel/mm/transparent_hugepage/shmem_enabled)"
        );
    }
}

/// Where a huge page has 512 MiB, or 32, few regions can have one without waste.
#[test]
fn a_pool_of_2_mib_serves_where_the_machines_huge_pages_are_larger() {
    use Pages::{Large, Medium, Small, Transparent};
    for sizes in KERNELS {
        let of = |bytes: usize, own: usize, other: usize| {
            // The later of two with one size counts.
            let pools = [(2048, other, 0), (sizes.large >> 10, own, 0)];
            let (machine, _folder) = with_pools(pools, HERE);
            let machine = Machine { sizes, ..machine };
            let plan = plan(wanted(HugePages::Large, bytes), &machine);
            let regions = set_aside(HugePages::Large, bytes, &machine);
            (pages(&plan), plan.left_out, regions)
        };
        let none: Vec<String> = Vec::new();
        let (whole, ragged) = (2 * sizes.large, 2 * sizes.large + sizes.large / 2);
        if sizes == KERNELS[0] {
            let once = (vec![Large, Transparent, Small], none, 32);
            assert_eq!(of(whole, 64, 64), once);
            continue;
        }
        let both = (vec![Large, Medium, Transparent, Small], none.clone(), 32 + 1);
        assert_eq!(of(whole, 64, whole >> 21), both, "{sizes:?}");
        let one = (vec![Medium, Transparent, Small], none.clone(), 1);
        assert_eq!(of(ragged, 64, ragged >> 21), one, "{sizes:?}");
        // An empty pool is nobody's choice; one that is too small is said.
        let empty = (vec![Large, Transparent, Small], none, 32);
        assert_eq!(of(whole, 64, 0), empty, "{sizes:?}");
        let (_, left_out, _) = of(whole, 64, 3);
        assert!(
            left_out[0].starts_with("3 of 3 huge pages of 2 MiB free and")
                && left_out[0].ends_with("> /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)"),
            "{left_out:?}"
        );
    }
}

#[test]
fn a_region_that_is_smaller_than_a_huge_page_of_the_machine_takes_none() {
    for sizes in KERNELS {
        let (machine, _folder) = with_pools([(sizes.large >> 10, 64, 0)], HERE);
        let machine = Machine { sizes, ..machine };
        let of = |bytes| pages(&plan(wanted(HugePages::Large, bytes), &machine));
        use Pages::{Large, Small, Transparent};
        assert_eq!(of(sizes.large / 8), [Small], "{sizes:?}");
        assert_eq!(of(sizes.large - sizes.page), [Large, Small], "{sizes:?}");
        assert_eq!(of(sizes.large + sizes.page), [Transparent, Small], "{sizes:?}");
        assert_eq!(of(2 * sizes.large), [Large, Transparent, Small], "{sizes:?}");
        assert_eq!(set_aside(HugePages::Large, 2 * sizes.large, &machine), 32);
        assert_eq!(set_aside(HugePages::Large, sizes.large / 8, &machine), 0);
    }
}
