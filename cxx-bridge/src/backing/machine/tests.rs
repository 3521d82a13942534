//! Made-up machines, for all tests, and what is read from them.

use super::super::pages::tests::KERNELS;
use super::*;
use crate::budget::tests::machine;

/// A machine of these files, with four cores and a current kernel; dropping the folder deletes them.
pub(in crate::backing) fn made_up(files: &[(&str, &str)]) -> (Machine, tempfile::TempDir) {
    let folder = machine(files);
    let machine = Machine {
        root: folder.path().to_owned(),
        sizes: KERNELS[0],
        cores: 4,
        processes: 1,
        populates: true,
        collapses: true,
    };
    (machine, folder)
}

/// The files with the modes of transparent huge pages and with the nodes that have memory; and a mode.
pub(in crate::backing) const ENABLED: &str = "sys/kernel/mm/transparent_hugepage/enabled";
pub(in crate::backing) const SHARED: &str = "sys/kernel/mm/transparent_hugepage/shmem_enabled";
pub(in crate::backing) const HAS_MEMORY: &str = "sys/devices/system/node/has_memory";
pub(in crate::backing) const HERE: &str = "always [madvise] never";

/// A file of the pool whose pages have so many KiB.
pub(in crate::backing) fn pool(kib: usize, name: &str) -> String {
    format!("sys/kernel/mm/hugepages/hugepages-{kib}kB/{name}")
}

/// A machine with these pools, by the KiB of a page: free pages, and pages in use.
pub(in crate::backing) fn with_pools(
    pools: impl IntoIterator<Item = (usize, usize, usize)>,
    mode: &str,
) -> (Machine, tempfile::TempDir) {
    let mut files = vec![(ENABLED.to_owned(), mode.to_owned())];
    for (kib, free, used) in pools {
        files.push((pool(kib, "nr_hugepages"), (free + used).to_string()));
        files.push((pool(kib, "free_hugepages"), free.to_string()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    made_up(&files)
}

#[test]
fn what_is_promised_to_others_is_not_free() {
    let at = |name: &str| pool(2048, name);
    let (machine, _folder) = made_up(&[
        (&at("nr_hugepages"), "100\n"),
        (&at("free_hugepages"), "60\n"),
        (&at("resv_hugepages"), "20\n"),
        (&at("nr_overcommit_hugepages"), "8\n"),
        (&at("surplus_hugepages"), "3\n"),
    ]);
    let pool = machine.pool(Pages::Large).unwrap();
    assert_eq!((pool.total, pool.free, pool.more), (100, 40, 5));
    assert_eq!([Pages::Giant, Pages::Transparent].map(|it| machine.pool(it)), [None; 2]);
}

#[test]
fn the_mode_of_transparent_pages_is_the_word_in_brackets() {
    for (text, expected) in [
        ("always [madvise] never\n", Transparent::Here),
        ("[always] madvise never\n", Transparent::Here),
        ("always madvise [never]\n", Transparent::Never),
    ] {
        assert_eq!(made_up(&[(ENABLED, text)]).0.transparent(), expected, "{text}");
    }
    assert_eq!(made_up(&[]).0.transparent(), Transparent::Absent);
}
