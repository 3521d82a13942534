//! The engine: decides which pinned memory serves which request.
//!
//! Sans-IO. Addresses and sizes go in, decisions come out. It allocates no host memory, calls no
//! driver, starts no thread, reads no environment variable and prints nothing; the bridge does
//! all that and reports back. So the engine can be model-checked, fuzzed and replayed anywhere.
//!
//! ```
//! use pinbuddy_core::{Config, Decision, Engine, Region};
//!
//! let mut engine = Engine::new(Config { segment_bytes: 1 << 30, threshold_bytes: 4 << 20 });
//! let Decision::Pin { bytes } = engine.request(64 << 20) else { panic!("nothing is pinned yet") };
//! // Here the bridge pins `bytes` bytes, outside every lock, and reports where they are.
//! engine.adopt(Region { base: 0x7000_0000_0000, bytes }).unwrap();
//! let Decision::Block(block) = engine.request(64 << 20) else { panic!("now it fits") };
//! assert_eq!(engine.address(block), 0x7000_0000_0000);
//! engine.release(block).unwrap();
//! assert_eq!(engine.take_idle().len(), 1); // the bridge unpins what it gets here
//! ```
//!
//! From the outside in: [`Engine`] holds policy and statistics, the arena holds the segments and
//! picks one, a segment checks and records its blocks, and its buddy tree finds and merges room.
//! Each layer knows only the one below it.
//!
//! Invariant numbers (I1, I2, ...) in the sources are those of the project's ARCHITECTURE.md.

#![forbid(unsafe_code)]

mod arena;
mod audit;
mod buddy;
mod cover;
mod engine;
mod error;
mod fill_order;
mod node;
mod records;
mod segment;
mod stats;
mod units;
mod word;

pub use cover::{Buddy, Cover, cover};
pub use engine::{Config, Decision, Engine};
pub use error::{AdoptError, Misuse, Violation};
pub use segment::SegmentView;
pub use stats::{Gauge, Stats};
pub use units::{Block, GRANULE, MAX_REGION, Region, SegmentId};
