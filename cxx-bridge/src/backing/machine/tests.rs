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

const POOL: &str = "sys/kernel/mm/hugepages/hugepages-2048kB";

#[test]
fn what_is_promised_to_others_is_not_free() {
    let at = |name: &str| format!("{POOL}/{name}");
    let (machine, _folder) = made_up(&[
        (&at("nr_hugepages"), "100\n"),
        (&at("free_hugepages"), "60\n"),
        (&at("resv_hugepages"), "20\n"),
        (&at("nr_overcommit_hugepages"), "8\n"),
        (&at("surplus_hugepages"), "3\n"),
    ]);
    let pool = machine.pool(Pages::Large).unwrap();
    assert_eq!((pool.total, pool.free, pool.more), (100, 40, 5));
    assert_eq!(machine.pool(Pages::Giant), None);
    assert_eq!(machine.pool(Pages::Transparent), None);
}

#[test]
fn the_mode_of_transparent_pages_is_the_word_in_brackets() {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    for (text, expected) in [
        ("always [madvise] never\n", Transparent::Here),
        ("[always] madvise never\n", Transparent::Here),
        ("always madvise [never]\n", Transparent::Never),
    ] {
        assert_eq!(made_up(&[(path, text)]).0.transparent(), expected);
    }
    assert_eq!(made_up(&[]).0.transparent(), Transparent::Absent);
}
