//! Every `BUDDY_*` variable: its name, its default and what it means, in one table.
//!
//! The README lists it, and misspelt names are compared with it. Knows no value and reads nothing.
//! Invariant: [`super::Config`] reads exactly these (tested).

/// One variable, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default, as text.
    pub default: &'static str,
    /// What it does, for the table in the README.
    pub meaning: &'static str,
}

/// The table: a constant for each variable, and all of them.
macro_rules! variables {
    ($($name:ident: $full:literal, $default:literal, $meaning:literal;)*) => {
        $(pub(super) const $name: Variable = Variable {
            name: $full,
            default: $default,
            meaning: $meaning,
        };)*

        /// All of them, in the order of docs/variables.md.
        pub const VARIABLES: [Variable; 22] = [$($name),*];
    };
}

variables! {
    BLOCK_SIZE_MB: "BUDDY_BLOCK_SIZE_MB", "1024",
        "size of a block pinned ahead, in MiB; any size, not only powers of two";
    BLOCK_COUNT: "BUDDY_BLOCK_COUNT", "as demand shows",
        "how many blocks the warm-up pins; 0: none; unset: part of a block ahead of demand, twice \
         as much each time a request finds no room";
    THRESHOLD_MB: "BUDDY_THRESHOLD_MB", "4",
        "the smallest request that blocks serve, in MiB; 0: all requests";
    WARMUP: "BUDDY_WARMUP", "background",
        "when blocks are pinned ahead; `background`: by a thread, from the first request that \
         finds no room; `sync`: all of them by that request, 8 where `BUDDY_BLOCK_COUNT` is \
         unset; `off`: never";
    GROWTH: "BUDDY_GROWTH", "segment",
        "what is pinned when nothing fits; `segment`: up to a block, as demand shows; `exact`: the \
         request; half as long again, up to a block, once pins are ahead of stock's";
    MAX_MB: "BUDDY_MAX_MB", "half of what is free",
        "the most that the engine pins, in MiB. Unset: half of the least of MemAvailable, what \
         the control group leaves and RLIMIT_MEMLOCK (if binding and above 64 MiB), or a \
         quarter where GPUs use the host's memory. The ranks of a machine share it, and no pin \
         takes more than half of what is free; huge pages set aside come on top";
    IDLE_S: "BUDDY_IDLE_S", "what a clear left",
        "memory that nobody has used for so many seconds is unpinned in the background; 0: at once; -1: never. Unset: \
         only what an emptied cache has left to a plan, after 5 s";
    BACKING: "BUDDY_BACKING", "auto",
        "where blocks come from; `pages`: mapped by pinbuddy and registered with CUDA; `cuda`: allocated \
         by CUDA; `auto`: `pages`, or what is quicker without huge pages";
    HUGE_PAGES: "BUDDY_HUGE_PAGES", "auto",
        "the largest pages of mapped memory: `1G` or `2M` from the system's pool, `thp` \
         (transparent) or `off` (4 KiB), each with the next as its fallback; `auto`: the largest \
         there are";
    FORK: "BUDDY_FORK", "share",
        "what forked children, such as DataLoader workers, find in mapped blocks; `share`: the \
         same memory, as with stock; `hide`: nothing: a child that reads its parent's pinned \
         tensor crashes. `hide` is for kernels that fill shared memory slowly";
    PIN_THREADS: "BUDDY_PIN_THREADS", "min(8, cores / LOCAL_WORLD_SIZE)",
        "how many threads touch a block's pages; the default is one fewer while a program runs \
         beside them";
    NUMA: "BUDDY_NUMA", "off",
        "the NUMA node of the blocks; `auto`: for each request that of its current device, unless there is a plan; a number: this one";
    PLAN: "BUDDY_PLAN", "no file",
        "path of a plan. If the file does not exist, this run is recorded and writes it. If it \
         exists, its memory is pinned when CUDA starts, and requests of all sizes are served \
         from it, or those above `BUDDY_THRESHOLD_MB`, if that is set. A request that comes before waits for that, unless \
         `BUDDY_WARMUP=background`; with `off` the first one pins it. `{rank}` in the name is replaced, and added where several processes lack \
         it. `auto`: a file in `BUDDY_PLAN_DIR`, one for each program and its arguments";
    PLAN_UPDATE: "BUDDY_PLAN_UPDATE", "0",
        "1 replaces a plan that is damaged or was made for another torch, number of processes, rank \
         or threshold, a plan of pinned memory that another program has made, and a file that says that there is no plan";
    PLAN_DIR: "BUDDY_PLAN_DIR", "the user's cache",
        "the absolute path of the folder of plans that `auto` chooses; unset: `$XDG_CACHE_HOME/pinbuddy/plans`, or `~/.cache/pinbuddy/plans`";
    DEVICE_PLAN: "BUDDY_DEVICE_PLAN", "no file",
        "the same as `BUDDY_PLAN` for the GPU's memory, from torch 2.11 on. Small requests are \
         planned only where that reserves less";
    TRACE: "BUDDY_TRACE", "no file",
        "the file to which requests for pinned memory are recorded, for `pinbuddy plan`, `advise` and `report`; `{rank}` and \
         `{pid}` in its name are replaced, and with several ranks the rank is added if it is missing";
    DEVICE_TRACE: "BUDDY_DEVICE_TRACE", "no file",
        "the same as `BUDDY_TRACE` for the GPU's memory: a file of requests, frees, streams and segments, for `pinbuddy plan` and \
         `pinbuddy report`. It may be the same file";
    LIVE: "BUDDY_LIVE", "0",
        "1 shows how pinned memory stands while the program runs, to `pinbuddy top` of the same user";
    LOG: "BUDDY_LOG", "warn",
        "how much is logged to standard error, one line per event, with the rank where there are \
         several: `off`, `warn`, `info` or `debug`";
    GUARD: "BUDDY_GUARD", "0",
        "1 finds writes to freed memory and past a block's end: the program is aborted, and a \
         line names the block and its owners. All requests are served from blocks, and freed \
         memory is filled, which takes time: for debugging";
    DISABLE: "BUDDY_DISABLE", "0",
        "1 leaves PyTorch's own allocator in place, unchanged";
}

/// How every variable's name begins.
const PREFIX: &str = "BUDDY_";

/// A warning for each of `names` that starts like one of our variables and is none.
pub(super) fn misspelt(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .into_iter()
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| VARIABLES.iter().all(|known| known.name != name))
        .collect();
    unknown.sort_unstable();
    unknown.iter().map(|name| unknown_name(name)).collect()
}

/// What to say of a name that is none of ours.
pub(super) fn unknown_name(name: &str) -> String {
    let distance = |known: &str| strsim::damerau_levenshtein(known, name);
    let nearest = VARIABLES.map(|known| known.name).into_iter();
    let advice = match nearest.min_by_key(|known| distance(known)) {
        Some(near) if 2 * distance(near) <= name.len().saturating_sub(PREFIX.len()) => {
            format!("did you mean {near}?")
        }
        // A setting that is gone resembles none.
        _ => "`python -m pinbuddy` lists all".to_owned(),
    };
    format!("{name} is no setting and has no effect; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's table, row by row.
    fn table() -> String {
        let row = |it: &Variable| format!("| `{}` | {} | {} |\n", it.name, it.default, it.meaning);
        VARIABLES.iter().map(row).collect()
    }

    #[test]
    fn the_page_lists_every_variable_as_it_is() {
        let page = include_str!("../../../docs/variables.md");
        assert!(
            page.contains(&table()),
            "docs/variables.md should have these rows:\n{}",
            table()
        );
        let mentioned = page.lines().filter(|line| line.starts_with("| `BUDDY_"));
        assert_eq!(mentioned.count(), VARIABLES.len(), "and no others");
    }

    #[test]
    fn a_misspelt_name_is_shown_with_the_nearest_one() {
        let names = [
            "BUDDY_BLOCKSIZE_MB",
            "BUDDY_LOG",
            "BUDDY_REGISTER_CHUNK_MB",
            "BUDDY_TRESHOLD",
            "PATH",
            "buddy_x",
        ];
        insta::assert_snapshot!(misspelt(names.map(str::to_owned)).join("\n"), @r"
        BUDDY_BLOCKSIZE_MB is no setting and has no effect; did you mean BUDDY_BLOCK_SIZE_MB?
        BUDDY_REGISTER_CHUNK_MB is no setting and has no effect; `python -m pinbuddy` lists all
        BUDDY_TRESHOLD is no setting and has no effect; did you mean BUDDY_THRESHOLD_MB?
        ");
    }
}
