//! Which processes are shown: those that were named, all that can be seen, or what a program has started.

use std::collections::HashMap;
use std::fs;

use super::live;
use super::row::{Row, State};

/// Whom to show.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who<'a> {
    /// These, each with a row whatever it is.
    These(&'a [u32]),
    /// All that have a page.
    All,
    /// A process and those below it that have a page.
    Below(u32),
}

impl Who<'_> {
    /// Whether there will be nothing more to see.
    pub(super) fn is_over(self, rows: &[Row]) -> bool {
        let ended = |it: &Row| matches!(it.state, State::Ended);
        matches!(self, Self::These(_)) && rows.iter().all(ended)
    }

    /// What is said where there is no row.
    pub(super) fn nobody(self) -> &'static str {
        match self {
            Self::Below(_) => "no process has pinned memory yet",
            _ => "no process of this user has pinned memory with BUDDY_LIVE=1; start one: pinbuddy top --launch CMD",
        }
    }
}

/// A row for each.
pub(super) fn rows(who: Who<'_>) -> Vec<Row> {
    let pids = match who {
        Who::These(pids) => return pids.iter().map(|pid| live::row(*pid)).collect(),
        Who::All => pids(),
        Who::Below(pid) => below(pid, &parents()),
    };
    let mut rows: Vec<Row> = pids
        .into_iter()
        .filter(|pid| live::has_page(*pid))
        .map(live::row)
        .filter(|it| !matches!(it.state, State::Ended | State::Silent(_)))
        .collect();
    rows.sort_by_key(|it| (it.page().and_then(|page| page.process.rank), it.pid));
    rows
}

fn pids() -> Vec<u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect()
}

/// By process: its parent.
fn parents() -> HashMap<u32, u32> {
    let parent = |pid: u32| Some((pid, stat(pid)?.1));
    pids().into_iter().filter_map(parent).collect()
}

fn below(root: u32, parents: &HashMap<u32, u32>) -> Vec<u32> {
    let is_below = |pid: &u32| {
        let mut at = *pid;
        // Ids are reused, so what was read may even be a circle.
        for _ in 0..64 {
            if at == root {
                return true;
            }
            match parents.get(&at) {
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(is_below).collect()
}

/// The state of a process, and its parent.
pub(super) fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have spaces and brackets.
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_descends_from_a_process_is_below_it() {
        let parents = HashMap::from([(10, 1), (20, 10), (30, 20), (40, 1), (50, 51), (51, 50)]);
        let mut found = below(10, &parents);
        found.sort_unstable();
        assert_eq!(found, [10, 20, 30]);
    }

    #[test]
    fn a_process_knows_its_parent() {
        let (state, parent) = stat(std::process::id()).unwrap();
        assert!("RS".contains(state));
        assert_eq!(parent, std::os::unix::process::parent_id());
    }
}
