//! Every `BUDDY_*` variable: its name, its default and what it means, in one table.
//!
//! What the README lists and what a misspelt name is compared with. Knows no value and reads
//! nothing. Invariant: [`super::Config`] reads exactly these (tested).

/// One variable, as its readers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// What people set.
    pub name: &'static str,
    /// What stands in where it is not set, as text.
    pub default: &'static str,
    /// What it does, for the table in the README.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable {
        name,
        default,
        meaning,
    }
}

pub(super) const BLOCK_SIZE_MB: Variable = variable(
    "BUDDY_BLOCK_SIZE_MB",
    "1024",
    "size of a block pinned ahead, in MiB; any size, not only powers of two",
);
pub(super) const BLOCK_COUNT: Variable = variable(
    "BUDDY_BLOCK_COUNT",
    "as demand shows",
    "how many of them the warm-up pins; 0 pins none ahead; unset, a part of one ahead of demand, which \
     doubles each time that a request finds no room",
);
pub(super) const THRESHOLD_MB: Variable = variable(
    "BUDDY_THRESHOLD_MB",
    "4",
    "the smallest request that is served from them, in MiB; 0 means all",
);
pub(super) const WARMUP: Variable = variable(
    "BUDDY_WARMUP",
    "background",
    "`background`: a thread pins ahead, from the first request on that finds no room; `sync`: that \
     request pins all blocks, 8 where nobody said how many; `off`: nothing is pinned ahead",
);
pub(super) const GROWTH: Variable = variable(
    "BUDDY_GROWTH",
    "segment",
    "what is pinned when nothing fits: more than the request as demand shows, up to a block \
     (`segment`), or no more than it (`exact`)",
);
pub(super) const MAX_MB: Variable = variable(
    "BUDDY_MAX_MB",
    "half of what is free",
    "the most that the engine pins, in MiB; unset, half of the least of MemAvailable, what the \
     cgroup leaves and RLIMIT_MEMLOCK (if more than 64 MiB, and binding), shared by the processes \
     that torchrun, MPI or Slurm started here, and never more than half of what is free at the \
     time; huge pages that the system has set aside come on top",
);
pub(super) const BACKING: Variable = variable(
    "BUDDY_BACKING",
    "auto",
    "where blocks come from: mapped here and registered with CUDA (`pages`), or allocated by CUDA \
     as stock does (`cuda`); `auto`: `pages` where that works",
);
pub(super) const HUGE_PAGES: Variable = variable(
    "BUDDY_HUGE_PAGES",
    "auto",
    "the largest pages of mapped memory: `1G` or `2M` from the system's pool, `thp` (transparent), \
     `off` (4 KiB); each falls back to the next; `auto`: the largest there are",
);
pub(super) const FORK: Variable = variable(
    "BUDDY_FORK",
    "share",
    "what forked children, such as workers of a DataLoader, have of blocks that are mapped here: the \
     same memory, as with stock (`share`), or nothing, so that one that reads a pinned tensor of its \
     parent's crashes (`hide`); only for kernels that fill shared memory slowly, which `cargo xtask \
     doctor` tells",
);
pub(super) const PIN_THREADS: Variable = variable(
    "BUDDY_PIN_THREADS",
    "min(8, cores / LOCAL_WORLD_SIZE)",
    "how many threads touch a block's pages; by default one fewer behind a program that goes on",
);
pub(super) const NUMA: Variable = variable(
    "BUDDY_NUMA",
    "off",
    "the NUMA node that blocks are put on: that of the device in use (`auto`), or this one (a number)",
);
pub(super) const REGISTER_CHUNK_MB: Variable = variable(
    "BUDDY_REGISTER_CHUNK_MB",
    "0",
    "register blocks in pieces of so many MiB, below 512; 0: whole. Not tried on a real GPU yet",
);
pub(super) const LOG: Variable = variable(
    "BUDDY_LOG",
    "warn",
    "what is said on standard error, one line per event, with the rank where there are several: \
     `off`, `warn`, `info` or `debug`",
);
pub(super) const DISABLE: Variable = variable(
    "BUDDY_DISABLE",
    "0",
    "1 leaves PyTorch's own allocator in place, unchanged",
);

/// All of them, in the order in which people read about them.
pub const VARIABLES: [Variable; 14] = [
    BLOCK_SIZE_MB,
    BLOCK_COUNT,
    THRESHOLD_MB,
    WARMUP,
    GROWTH,
    MAX_MB,
    BACKING,
    HUGE_PAGES,
    FORK,
    PIN_THREADS,
    NUMA,
    REGISTER_CHUNK_MB,
    LOG,
    DISABLE,
];

/// What to say about each of `names` that starts like a variable of ours and is none.
pub(super) fn misspelt(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .into_iter()
        .filter(|name| name.starts_with("BUDDY_"))
        .filter(|name| VARIABLES.iter().all(|known| known.name != name))
        .collect();
    unknown.sort_unstable();
    let warning = |name: &String| {
        let nearest = VARIABLES
            .iter()
            .min_by_key(|known| strsim::damerau_levenshtein(known.name, name))
            .map_or("", |known| known.name);
        format!("{name} is no setting and has no effect; did you mean {nearest}?")
    };
    unknown.iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The README's table, row by row.
    fn table() -> String {
        let row = |it: &Variable| format!("| `{}` | {} | {} |\n", it.name, it.default, it.meaning);
        VARIABLES.iter().map(row).collect()
    }

    #[test]
    fn the_readme_lists_every_variable_as_it_is() {
        let readme = include_str!("../../../README.md");
        assert!(
            readme.contains(&table()),
            "README.md should have these rows under \"Settings\":\n{}",
            table()
        );
        let mentioned = readme.lines().filter(|line| line.starts_with("| `BUDDY_"));
        assert_eq!(mentioned.count(), VARIABLES.len(), "and no others");
    }

    #[test]
    fn a_misspelt_name_is_shown_with_the_nearest_one() {
        let names = [
            "BUDDY_BLOCKSIZE_MB",
            "BUDDY_LOG",
            "BUDDY_TRESHOLD",
            "PATH",
            "buddy_x",
        ];
        insta::assert_snapshot!(misspelt(names.map(str::to_owned)).join("\n"), @r"
        BUDDY_BLOCKSIZE_MB is no setting and has no effect; did you mean BUDDY_BLOCK_SIZE_MB?
        BUDDY_TRESHOLD is no setting and has no effect; did you mean BUDDY_THRESHOLD_MB?
        ");
    }
}
