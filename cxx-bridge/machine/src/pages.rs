//! Huge pages: the pools that an administrator sets aside, and the kernel's transparent ones.

use crate::files::Files;

/// The pools of the whole machine: a folder `hugepages-NkB` for each size.
pub const POOLS: &str = "sys/kernel/mm/hugepages";

/// The kernel's folder with the settings of transparent huge pages.
pub const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";

/// A pool of huge pages of one size, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// All of them.
    pub total: usize,
    /// Neither in use nor reserved.
    pub free: usize,
    /// How many the kernel may add by itself.
    pub more: usize,
}

impl Pool {
    /// The pool in a folder, of the machine or of a node; `None` if the processor or the kernel has none. Only
    /// the machine's pool counts reserved pages.
    pub fn read(files: &Files, folder: &str) -> Option<Self> {
        let number = |name: &str| {
            let number = files.number(&format!("{folder}/{name}"))?;
            usize::try_from(number).ok()
        };
        let or_none = |name| number(name).unwrap_or(0);
        Some(Self {
            total: number("nr_hugepages")?,
            free: number("free_hugepages")?.saturating_sub(or_none("resv_hugepages")),
            more: or_none("nr_overcommit_hugepages").saturating_sub(or_none("surplus_hugepages")),
        })
    }
}

/// The word in brackets in a file below [`TRANSPARENT`]; `None` if there is no such file.
pub fn transparent_mode(files: &Files, name: &str) -> Option<String> {
    let text = files.text(&format!("{TRANSPARENT}/{name}"))?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
