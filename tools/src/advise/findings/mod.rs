//! What is wrong in a program, one file each.
//!
//! A watch sees every event once, with the world before it. At the end it says what it found, with its evidence: how
//! many, how large, which lines. Invariant: without evidence it is silent.

mod brief;
mod budget;
mod clears;
mod gathered;
mod growth;
mod pieces;
mod powers;
mod slow;
mod small;
mod stuck;
mod unread;

use serde::Serialize;

use super::world::{Counts, World};
use pinbuddy_events::Item;

use crate::input::About;

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name for programs.
    pub id: &'static str,
    /// What is wrong, in a line.
    pub what: &'static str,
    /// How many and how large.
    pub evidence: String,
    /// How many.
    pub count: u64,
    /// How many bytes it is about.
    pub bytes: u64,
    /// Some lines of the trace, or events of the snapshot, that show it.
    pub lines: Vec<u64>,
    /// What to do.
    pub to_do: String,
}

/// Looks for one thing.
pub(super) trait Watch {
    /// The next event, and the world before it.
    fn see(&mut self, item: &Item, world: &World);

    /// What was found, at the end.
    fn finding(&mut self, world: &World) -> Option<Finding>;
}

/// All of them, for a trace with these counts.
pub(super) fn watches(counts: &Counts, about: &About) -> Vec<Box<dyn Watch>> {
    let mut all: Vec<Box<dyn Watch>> = vec![
        Box::new(clears::Clears::default()),
        Box::new(growth::Growth::default()),
        Box::new(small::Small::default()),
        Box::new(budget::Turns::default()),
    ];
    // Rounded sizes are all powers of two, and so are sums of them.
    if about.exact_sizes {
        all.push(Box::new(powers::Powers::default()));
        all.push(Box::new(gathered::Gathered::default()));
    }
    if about.uses && (about.recorded || counts.uses > 0) {
        all.push(Box::new(unread::Unread::default()));
        all.push(Box::new(brief::Brief::default()));
    }
    if about.recorded {
        all.push(Box::new(stuck::Stuck::new(counts.threshold)));
        all.push(Box::new(slow::Slow::new(counts.threshold)));
    }
    let budget = about.budget.map(budget::set);
    let limits = budget.into_iter().chain(about.group_limit.map(budget::of_the_group));
    all.extend(limits.map(|it| Box::new(it) as Box<dyn Watch>));
    all
}

/// Those for a trace of device memory.
pub(super) fn of_a_device() -> Vec<Box<dyn Watch>> {
    vec![Box::new(pieces::Pieces::default()), Box::new(budget::Turns::default())]
}

/// What they found; what weighs most comes first.
pub(super) fn found(watches: &mut [Box<dyn Watch>], world: &World) -> Vec<Finding> {
    let found = watches.iter_mut().filter_map(|it| it.finding(world));
    let mut found: Vec<Finding> = found.collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    found
}

/// What a watch has seen: how often, how many bytes it is about, and some lines that show it.
#[derive(Default)]
struct Seen {
    count: u64,
    bytes: u64,
    lines: Vec<u64>,
}

impl Seen {
    const MOST_LINES: usize = 5;

    fn add(&mut self, line: u64, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.lines.len() < Self::MOST_LINES {
            self.lines.push(line);
        }
    }

    fn found(&self, id: &'static str, what: &'static str, evidence: String, to_do: impl Into<String>) -> Finding {
        Finding {
            id,
            what,
            evidence,
            count: self.count,
            bytes: self.bytes,
            lines: self.lines.clone(),
            to_do: to_do.into(),
        }
    }
}

#[cfg(test)]
mod tests;
