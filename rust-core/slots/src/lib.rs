//! A plan at run time: which slot of planned memory serves which request.
//!
//! A *slot* is a place that was found for a request before the program began: a size and a range of a planned region.
//! A *lane* is the sequence of slots that one thread asks for: a prologue once, then a period again and again. Each
//! lane has a cursor, and a request gets the next slot of its size, if no block lies in that range.
//!
//! Programs do not do exactly what they did when the plan was made, so nothing here relies on it. Whether a range is
//! free is known cell by cell (`cells`), whatever the plan says: a wrong plan costs speed, and never an overlap. What
//! the plan leaves idle can be borrowed for a request that it does not know.
//!
//! - `align`: where in its sequence a thread is, when it does not do as planned.
//! - `cells`: which parts of the regions are taken.
//! - `clues`: which steps the last sizes lead up to.
//! - `drift`: whether the plan fits a lane at all.
//! - `fit`: what part of the latest requests had their places.
//! - `habits`: how much is live at a lane's steps, and for how long its blocks live.
//! - `lane`: what a thread is about to ask for, and how its place is found again.
//! - `once`: whether a program still does what a plan of its whole run says.
//! - `rests`: at which of a lane's steps the program rests.
//! - `served`: whether a plan is this program's.
//! - `slots`: both together, and what was counted.
//!
//! Sans-IO: addresses and sizes in, places out. Knows no file, no thread and no driver.

#![forbid(unsafe_code)]

mod align;
mod cells;
mod clues;
mod drift;
mod fit;
mod habits;
mod lane;
mod layout;
mod once;
mod rests;
#[cfg(test)]
mod seeded;
mod served;
mod slots;

pub use layout::{GRANULE, Lane, Layout, Mistake, Slot};
pub use served::Served;
pub use slots::{Borrowed, Counts, Lent, MOST_THREADS, Part, Slots, Taken};
