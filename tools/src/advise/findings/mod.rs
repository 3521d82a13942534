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
        Box::new(clears::Clears::new(counts)),
        Box::new(growth::Growth::new(counts)),
        Box::new(small::Small::new(counts)),
        Box::new(budget::Turns::default()),
    ];
    // Rounded sizes are all powers of two, and so are sums of them.
    if about.exact_sizes {
        all.push(Box::new(powers::Powers::new(counts)));
        all.push(Box::new(gathered::Gathered::default()));
    }
    if about.uses && (about.recorded || counts.uses > 0) {
        all.push(Box::new(unread::Unread::new(counts)));
        all.push(Box::new(brief::Brief::new(counts)));
    }
    if about.recorded {
        all.push(Box::new(stuck::Stuck::new(counts)));
        all.push(Box::new(slow::Slow::new(counts)));
    }
    let budget = about.budget.map(budget::set);
    let limits = budget
        .into_iter()
        .chain(about.group_limit.map(budget::of_the_group));
    all.extend(limits.map(|it| Box::new(it) as Box<dyn Watch>));
    all
}

/// Those for a trace of device memory.
pub(super) fn of_a_device() -> Vec<Box<dyn Watch>> {
    vec![
        Box::new(pieces::Pieces::default()),
        Box::new(budget::Turns::default()),
    ]
}

/// What they found; what weighs most comes first.
pub(super) fn found(watches: &mut [Box<dyn Watch>], world: &World) -> Vec<Finding> {
    let found = watches.iter_mut().filter_map(|it| it.finding(world));
    let mut found: Vec<Finding> = found.collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    found
}

/// Some of many lines.
#[derive(Debug, Default)]
struct Examples(Vec<u64>);

impl Examples {
    const MOST: usize = 5;

    fn add(&mut self, line: u64) {
        if self.0.len() < Self::MOST {
            self.0.push(line);
        }
    }
}

#[cfg(test)]
mod fixture {
    //! Programs of a few lines, and what is found in them.

    use pinbuddy_events::{Event, Op};

    use super::Finding;
    use crate::advise::advise;
    use crate::input::{About, Input};

    /// A trace that is written by hand.
    #[derive(Clone, Default)]
    pub(super) struct Program {
        events: Vec<Event>,
        next: u64,
    }

    pub(super) const MIB: u64 = 1 << 20;

    /// What a trace says that a run has recorded.
    pub(super) fn recorded() -> About {
        About {
            recorded: true,
            ..About::default()
        }
    }

    impl Program {
        fn push(&mut self, op: Op) {
            let at = self.events.len() as u64 * 1_000_000;
            self.events.push(Event::host(at, op));
        }

        pub(super) fn alloc(&mut self, bytes: u64) -> u64 {
            self.next += 1;
            self.push(Op::request(self.next, bytes));
            self.next
        }

        pub(super) fn copy(&mut self, id: u64, stream: u32) {
            self.push(Op::Use { id, stream });
        }

        pub(super) fn free(&mut self, id: u64) {
            self.push(Op::free(id));
        }

        pub(super) fn safe(&mut self, id: u64) {
            self.push(Op::Safe { id });
        }

        pub(super) fn clear(&mut self) {
            self.push(Op::Clear);
        }

        pub(super) fn iteration(&mut self) {
            self.push(Op::Iteration);
        }

        /// What is found, by its name; `about` is what the trace says of the run.
        pub(super) fn finding(&self, id: &str, about: About) -> Option<Finding> {
            let events = self.events.clone();
            let recorded = about.recorded;
            let mut input = Input::generated(
                "program",
                Box::new(move || Box::new(events.clone().into_iter())),
            );
            input.about = About {
                exact_sizes: true,
                uses: true,
                recorded,
                ..about
            };
            let advice = advise(&input, &mut |record| {
                crate::plan::search(record, 0.0, Some(1))
            })
            .unwrap();
            advice.findings.into_iter().find(|it| it.id == id)
        }
    }
}
