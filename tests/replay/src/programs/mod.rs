//! Programs that nobody thought of: what pinned memory is asked for by threads at random, within a
//! shape that real programs have.
//!
//! A program is a *shape* (how sizes are drawn, how much lives at once, how many threads) and a *tape*
//! of small numbers that it reads. A shorter tape, or smaller numbers, is a simpler program, so that
//! one that breaks a bound can be shrunk. Knows no allocator.

mod case;
mod run;
mod verdict;

pub use case::{Case, Setting};
pub use run::{Outcome, Run, run};
pub use verdict::{Bounds, Verdict};

use crate::{GIB, MIB};

/// How sizes are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One of so many, which stay the same.
    Fixed(u8),
    /// Any, from 4 MiB to a gibibyte, each order of magnitude as often as another.
    Mixed,
    /// A little larger each time.
    Growing,
    /// A little smaller each time.
    Shrinking,
    /// Any up to 200 MiB, to the byte: hardly ever one twice.
    Never,
    /// From a little below a segment to a little above.
    Around,
    /// Fixed ones, other ones in each phase; between two phases all is freed.
    Phases,
    /// From 1 to 8 GiB.
    Huge,
    /// From 4 KiB to 4 MiB.
    Small,
}

impl Sizes {
    /// All ways.
    pub const ALL: [Self; 11] = [
        Self::Fixed(1),
        Self::Fixed(5),
        Self::Fixed(30),
        Self::Mixed,
        Self::Growing,
        Self::Shrinking,
        Self::Never,
        Self::Around,
        Self::Phases,
        Self::Huge,
        Self::Small,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed(1) => "one size",
            Self::Fixed(_) => "some sizes",
            Self::Mixed => "mixed",
            Self::Growing => "growing",
            Self::Shrinking => "shrinking",
            Self::Never => "never twice",
            Self::Around => "around a segment",
            Self::Phases => "phases",
            Self::Huge => "1 to 8 GiB",
            Self::Small => "below 4 MiB",
        }
    }
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How sizes are drawn.
    pub sizes: Sizes,
    /// At most so much lives at once, in bytes, unless one request is longer.
    pub live: u64,
    /// How many threads take turns.
    pub threads: u8,
    /// One of so many requests lives to the end, up to a quarter of all that lives; 0 for none.
    pub holders: u8,
    /// One of so many requests is followed by an `empty_cache`; 0 for none.
    pub clears: u8,
    /// How long a thread computes between requests at most, in microseconds.
    pub computes: u32,
}

/// One number of the tape: what is asked for, what is freed for it, and how long the thread computes
/// before.
pub type Cell = (u16, u8, u8);

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Asks for a block of so many bytes under this name.
    Alloc(u32, u64),
    /// Frees it.
    Free(u32),
    /// `empty_cache`.
    Clear,
    /// Computes for so many microseconds.
    Compute(u32),
}

impl Shape {
    /// What each thread does, in its order.
    pub fn acts(&self, tape: &[Cell]) -> Vec<Vec<Act>> {
        let threads = usize::from(self.threads.max(1));
        let mut acts = vec![Vec::new(); threads];
        let mut live: Vec<Vec<(u32, u64)>> = vec![Vec::new(); threads];
        let share = self.live / threads as u64;
        let mut in_use = vec![0_u64; threads];
        let mut held = 0;
        for (number, &(size, which, pause)) in (0_u32..).zip(tape) {
            let thread = number as usize % threads;
            let mine = &mut acts[thread];
            if self.computes > 0 && pause > 0 {
                mine.push(Act::Compute(self.computes * u32::from(pause) / 255));
            }
            if self.sizes == Sizes::Phases && number % 100 == 99 {
                for (block, _) in live[thread].drain(..) {
                    mine.push(Act::Free(block));
                }
                in_use[thread] = 0;
            }
            let bytes = self.size(number, size);
            while in_use[thread] + bytes > share
                && let Some(at) = choose(live[thread].len(), which)
            {
                let (block, freed) = live[thread].remove(at);
                mine.push(Act::Free(block));
                in_use[thread] -= freed;
            }
            mine.push(Act::Alloc(number, bytes));
            let is_holder = self.holders > 0
                && which % self.holders == self.holders - 1
                && held + bytes <= self.live / 4;
            if is_holder {
                held += bytes;
            } else {
                live[thread].push((number, bytes));
                in_use[thread] += bytes;
            }
            if self.clears > 0 && size % u16::from(self.clears) == u16::from(self.clears) - 1 {
                mine.push(Act::Clear);
            }
        }
        acts
    }

    fn size(&self, number: u32, drawn: u16) -> u64 {
        let part = |least: u64, most: u64| least + (most - least) * u64::from(drawn) / 0xffff;
        // Each doubling as often as another, and evenly within it.
        let doubling = |least: u64, doublings: u64| {
            let steps = u64::from(drawn) * doublings;
            let whole = least << (steps >> 16);
            whole + ((whole * (steps & 0xffff)) >> 16)
        };
        let fixed = |kinds: u64, of: u64| {
            let kind = u64::from(drawn) % kinds + of * kinds;
            // Any numbers that have nothing to do with powers of two.
            4 * MIB + (kind * 0x9e37_79b9 % 0x1_0000) * (296 * MIB) / 0x1_0000
        };
        match self.sizes {
            Sizes::Fixed(kinds) => fixed(kinds.into(), 0),
            Sizes::Mixed => doubling(4 * MIB, 8),
            Sizes::Growing => 8 * MIB + u64::from(number) * 300 * 1024 + part(0, 64 * 1024),
            Sizes::Shrinking => {
                let less = u64::from(number) * 300 * 1024;
                (450 * MIB).saturating_sub(less).max(4 * MIB) + part(0, 64 * 1024)
            }
            Sizes::Never => part(4 * MIB, 200 * MIB) + u64::from(number) * 4097,
            Sizes::Around => part(GIB * 8 / 10, GIB * 13 / 10),
            Sizes::Phases => fixed(5, u64::from(number / 100) % 5),
            Sizes::Huge => part(GIB, 8 * GIB),
            Sizes::Small => doubling(4096, 10),
        }
    }
}

/// One of `count`: often the oldest.
fn choose(count: usize, which: u8) -> Option<usize> {
    let last = count.checked_sub(1)?;
    Some(if which < 80 {
        0
    } else {
        usize::from(which) % (last + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_frees_what_it_asked_for_and_keeps_to_its_limit() {
        for sizes in Sizes::ALL {
            let shape = Shape {
                sizes,
                live: 9 * GIB,
                threads: 3,
                holders: 20,
                clears: 50,
                computes: 100,
            };
            let tape: Vec<Cell> = (0..600_u32)
                .map(|n| ((n * 40_503) as u16, (n * 97) as u8, (n * 31) as u8))
                .collect();
            let acts = shape.acts(&tape);
            assert_eq!(acts.len(), 3);
            let (mut requests, mut clears) = (0, 0);
            for thread in acts {
                let mut live = std::collections::HashMap::new();
                for act in thread {
                    match act {
                        Act::Alloc(block, bytes) => {
                            requests += 1;
                            assert!((4096..=8 * GIB).contains(&bytes), "{sizes:?} {bytes}");
                            assert_eq!(live.insert(block, bytes), None);
                        }
                        Act::Free(block) => assert!(live.remove(&block).is_some()),
                        Act::Clear => clears += 1,
                        Act::Compute(time) => assert!(time <= 100),
                    }
                }
                assert!(live.values().sum::<u64>() <= 9 * GIB + 3 * GIB, "{sizes:?}");
            }
            assert_eq!(requests, 600);
            assert!(clears > 0);
        }
    }
}
