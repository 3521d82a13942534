//! Offline placement: blocks with known lifetimes and sizes in, an offset for each out.
//!
//! The problem is dynamic storage allocation. Two blocks that live at the same time must not
//! overlap, and the highest end, the *peak*, is to be small. No placement is below the *lower
//! bound*, the most bytes that live at once.
//!
//! - [`Instance`]: what is to be placed, checked.
//! - [`solve`]: a portfolio of first fits, stopped at the bound; then local search, or for few exact search,
//!   also of what is left where blocks can be joined. Anytime: what it has so far is always valid.
//! - [`check()`]: whether offsets are a placement. It shares no code with what places.
//!
//! - [`Record`]: what a run asked for. [`plan()`] makes a [`Plan`] of it, which [`mod@file`] reads and writes.
//! - [`device::DeviceRecord`]: the same for device memory, a plan for each stream.
//!
//! Knows no path and no clock: the caller says when to stop, and how many threads to use.
//! Times and sizes are whole numbers of whatever unit the caller has; it aligns sizes beforehand.

#![forbid(unsafe_code)]

mod check;
mod classes;
mod cursor;
pub mod device;
mod exact;
pub mod file;
mod first_fit;
mod improve;
mod instance;
mod join;
mod layout;
mod lifetimes;
mod order;
mod problem;
mod random;
pub mod record;
mod replay;
mod script;
mod several;
mod solve;
mod trial;

pub use check::{Overlap, check};
pub use file::Plan;
pub use instance::{Block, Error, Instance, MOST_BYTES};
pub use record::Record;
pub use replay::{Replayed, check_plan, places};
pub use script::{How, Options, Seen, Watch, plan, plan_watched};
pub use several::for_several;
pub use solve::{Effort, Solution, side_by_side, solve};
pub use trial::{Tried, try_out};
