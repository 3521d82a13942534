//! What a machine offers for pinned memory, read from the text files of `/proc` and `/sys`.
//!
//! The engine's budget and `pinbuddy doctor` both read a machine here, so that they see the same.
//! Numbers and words only: knows no policy and no messages. All files are below a root that tests choose.
//! A file that cannot be read means that the machine does not offer it, or does not limit it.
#![forbid(unsafe_code)]

mod cgroup;
pub mod claims;
mod files;
mod held;
mod limits;
mod lock;
mod numa;
mod pages;
pub mod smaps;

pub use cgroup::{Cgroup, Group};
pub use files::{Files, field, kib_field, made_up};
pub use held::{Held, Holder};
pub use limits::{ADDRESS_SPACE, Limit, Limits, Of, room};
pub use lock::LockLimit;
pub use numa::{Node, is_node, node_of, nodes, nodes_with_memory, nodes_with_processors};
pub use pages::{POOLS, Pool, Shared, TRANSPARENT, huge_page_bytes, page_bytes, shared_of_size, transparent_mode};
