//! The engine decides which pinned memory serves which request; the provisioner around it decides when
//! to pin how much, and what to unpin.
//!
//! Sans-IO: addresses, sizes and times go in, decisions come out. Nothing here allocates host memory,
//! calls a driver, starts a thread, reads an environment variable or prints: the bridge does that and
//! reports back. So everything here can be model-checked, fuzzed and replayed anywhere.
//!
//! ```
//! use pinbuddy_core::{Config, Decision, Engine, NewSegment, Region};
//!
//! let mut engine = Engine::new(Config {
//!     segment_bytes: 1 << 30,
//!     threshold_bytes: 4 << 20,
//! });
//! let Decision::Pin { bytes } = engine.request(64 << 20) else { panic!("nothing is pinned yet") };
//! assert_eq!(bytes, 64 << 20); // the least
//! // Here the bridge pins that or more, outside every lock, and makes the bookkeeping.
//! let bytes = 1 << 30;
//! let segment = NewSegment::new(Region { base: 0x7000_0000_0000, bytes }).unwrap();
//! engine.adopt(segment).unwrap();
//! let Decision::Block(block) = engine.request(64 << 20) else { panic!("now it fits") };
//! assert_eq!(engine.address(block), 0x7000_0000_0000);
//! engine.release(block).unwrap();
//! let idle = engine.take_idle(usize::MAX); // what the bridge unpins, and drops outside the lock
//! assert_eq!(idle[0].region().bytes, 1 << 30);
//! ```
//!
//! Small requests (below [`SMALL`]) and large ones are cut from different segments, so that a few
//! small blocks that live long do not keep every segment pinned. A region longer than a segment is
//! dedicated: it serves one request at a time that no segment holds.
//!
//! An engine that is [`Engine::renewing`], for exact growth, detects programs that work in phases of
//! different sizes: it has idle regions unpinned and others pinned instead ([`Decision::Renew`]).
//!
//! From the outside in: [`Engine`] holds policy and statistics, the arena holds the segments and
//! picks one, a segment checks and records its blocks, and its buddy tree finds and merges free runs.
//! Each layer knows only the one below it. Segments come in as [`NewSegment`] and go out as
//! [`IdleSegment`], so that their bookkeeping is made and dropped outside the caller's lock.
//!
//! Invariant numbers (I1, I2, ...) in the sources are those of the project's ARCHITECTURE.md.

#![forbid(unsafe_code)]

mod arena;
mod audit;
mod buddy;
mod dedicated;
mod demand;
mod engine;
mod error;
mod fill_order;
mod gauge;
mod handover;
mod kind;
mod node;
mod phases;
mod policy;
mod provision;
mod records;
mod rival;
mod runs;
mod segment;
mod spread;
mod stats;
mod units;
mod view;
mod word;

pub use engine::{Cached, Decision, Engine};
pub use error::{AdoptError, Misuse, Violation};
pub use gauge::Gauge;
pub use handover::{IdleSegment, NewSegment};
pub use kind::{SMALL, SegmentKind};
pub use policy::Config;
pub use provision::{
    GoOn, Growth, Permit, PermitId, Progress, Provisioner, Refusal, Settings, Step, Took, Want, WarmUp, Work,
};
pub use stats::Stats;
pub use units::{Block, GRANULE, Home, MAX_REGION, Region, SegmentId};
pub use view::{BlockView, SegmentView};
