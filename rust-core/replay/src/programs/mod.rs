//! Random programs: threads that request and free pinned memory at random, within a shape that real
//! programs have.
//!
//! A program is a *shape* (how sizes are drawn, how much is live at once, how many threads) and a *tape*
//! of small numbers that decide each request. A shorter tape or smaller numbers make a simpler program,
//! so that one that breaks a bound can be shrunk. Knows no allocator.

mod case;
mod drawn;
mod run;
mod sizes;
mod verdict;

pub use case::{Case, Setting};
pub use drawn::drawn;
pub use run::{Outcome, Run, run};
pub use sizes::Sizes;
pub use verdict::{Bounds, Verdict};

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How sizes are drawn.
    pub sizes: Sizes,
    /// The most that is live at once, in bytes, unless one request is longer.
    pub live: u64,
    /// How many threads take turns.
    pub threads: u8,
    /// One in so many requests stays live to the end, up to a quarter of `live`; 0 for none.
    pub holders: u8,
    /// One in so many requests is followed by an `empty_cache`; 0 for none.
    pub clears: u8,
    /// The longest that a thread computes between requests, in microseconds.
    pub computes: u32,
    /// On how many streams blocks are copied before they are freed; 0 for none.
    pub streams: u8,
    /// One in so many copies comes after long work on its stream; 0 for none.
    pub stuck: u8,
    /// One in so many requests is followed by a graph capture; 0 for none.
    pub captures: u8,
}

/// One cell of the tape: decides the request's size, which block is freed for it, how long the thread
/// computes before, and what streams do with the block.
pub type Cell = (u16, u8, u8, u8);

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
    /// Copies this block on this stream.
    Copy(u32, u32),
    /// Keeps this stream busy for so many microseconds.
    Occupy(u32, u32),
    /// Begins a graph capture, after an `empty_cache`.
    BeginCapture,
    /// Ends it.
    EndCapture,
    /// A barrier for all threads that are not done.
    Meet,
}

/// The longest time that a stream is kept busy, in microseconds; and that a capture takes.
const STUCK: u32 = 400_000;
const CAPTURE: u32 = 50_000;

/// A thread's acts and live blocks.
#[derive(Debug, Default)]
struct Thread {
    acts: Vec<Act>,
    /// Name, length, and what streams do with the block.
    live: Vec<(u32, u64, u8)>,
    in_use: u64,
}

impl Shape {
    /// The acts of each thread, in order.
    pub fn acts(&self, tape: &[Cell]) -> Vec<Vec<Act>> {
        let count = usize::from(self.threads.max(1));
        let mut threads: Vec<_> = (0..count).map(|_| Thread::default()).collect();
        let share = self.live / count as u64;
        let mut held = 0;
        for (number, &(size, which, pause, copies)) in (0_u32..).zip(tape) {
            let own = number as usize / count;
            let thread = &mut threads[number as usize % count];
            if self.computes > 0 && pause > 0 {
                let time = self.computes * u32::from(pause) / 255;
                thread.acts.push(Act::Compute(time));
            }
            if self.sizes == Sizes::Phases && number % 100 == 99 {
                self.free_all(thread);
            }
            let bytes = self.sizes.size(number, size);
            while thread.in_use + bytes > share
                && let Some(at) = choose(thread.live.len(), which)
            {
                self.free(thread, at);
            }
            thread.acts.push(Act::Alloc(number, bytes));
            let is_holder =
                self.holders > 0 && which % self.holders == self.holders - 1 && held + bytes <= self.live / 4;
            if is_holder {
                held += bytes;
            } else {
                thread.live.push((number, bytes, copies));
                thread.in_use += bytes;
            }
            let one_of = |of: u8, drawn: u16| of > 0 && drawn % u16::from(of) == u16::from(of) - 1;
            if one_of(self.clears, size) {
                thread.acts.push(Act::Clear);
            }
            if one_of(self.captures, size / 256 + u16::from(which)) {
                let time = CAPTURE * u32::from(pause) / 255;
                let capture = [Act::BeginCapture, Act::Compute(time), Act::EndCapture];
                thread.acts.extend(capture);
            }
            if let Sizes::Rounds(blocks) = self.sizes
                && (own + 1).is_multiple_of(blocks.into())
            {
                thread.acts.push(Act::Meet);
                self.free_all(thread);
                thread.acts.push(Act::Meet);
            }
        }
        threads.into_iter().map(|it| it.acts).collect()
    }

    fn free_all(&self, thread: &mut Thread) {
        while !thread.live.is_empty() {
            self.free(thread, 0);
        }
    }

    /// Frees a thread's block, after copying it if the tape says so.
    fn free(&self, thread: &mut Thread, at: usize) {
        let (block, bytes, copies) = thread.live.remove(at);
        thread.in_use -= bytes;
        if self.streams > 0 && copies > 0 {
            let stream = u32::from(copies) % u32::from(self.streams);
            if self.stuck > 0 && copies % self.stuck == self.stuck - 1 {
                let time = STUCK * u32::from(copies) / 255;
                thread.acts.push(Act::Occupy(stream, time));
            }
            thread.acts.push(Act::Copy(block, stream));
            if copies.is_multiple_of(3) {
                let other = (stream + 1) % u32::from(self.streams);
                thread.acts.push(Act::Copy(block, other));
            }
        }
        thread.acts.push(Act::Free(block));
    }
}

/// One of `count`: often the oldest.
fn choose(count: usize, which: u8) -> Option<usize> {
    let last = count.checked_sub(1)?;
    Some(match which {
        ..80 => 0,
        _ => usize::from(which) % (last + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GIB;

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
                streams: 3,
                stuck: 40,
                captures: 30,
            };
            let cell = |n: u32| -> Cell {
                let [which, pause, copies] = [97, 31, 53].map(|by| n.wrapping_mul(by) as u8);
                (n.wrapping_mul(40_503) as u16, which, pause, copies)
            };
            let tape: Vec<Cell> = (0..600).map(cell).collect();
            let acts = shape.acts(&tape);
            assert_eq!(acts.len(), 3);
            let (mut requests, mut clears, mut stuck, mut frees) = (0, 0, 0, 0);
            for thread in acts {
                let mut live = std::collections::HashMap::new();
                let mut captures = 0;
                for act in thread {
                    match act {
                        Act::Alloc(block, bytes) => {
                            requests += 1;
                            assert!((4096..=8 * GIB).contains(&bytes), "{sizes:?} {bytes}");
                            assert_eq!(live.insert(block, bytes), None);
                        }
                        Act::Free(block) => {
                            frees += 1;
                            assert!(live.remove(&block).is_some());
                        }
                        Act::Clear => clears += 1,
                        Act::Compute(time) => assert!(time <= 100 || captures == 1),
                        Act::Copy(block, stream) => {
                            assert!(live.contains_key(&block) && stream < 3);
                        }
                        Act::Occupy(..) => stuck += 1,
                        Act::BeginCapture => captures += 1,
                        Act::EndCapture => captures -= 1,
                        Act::Meet => assert!(matches!(sizes, Sizes::Rounds(_))),
                    }
                }
                assert_eq!(captures, 0);
                assert!(live.values().sum::<u64>() <= 9 * GIB + 3 * GIB, "{sizes:?}");
            }
            assert_eq!(requests, 600);
            assert!(clears > 0, "{sizes:?}");
            // Small blocks all live at once.
            assert!(stuck > 0 || frees == 0, "{sizes:?}: {frees}");
        }
    }
}
