//! The live page: what a process says of its pinned memory while it runs, as numbers in one page.
//!
//! The library writes the page, `pinbuddy top` reads it; both take the layout from here. Knows neither files nor
//! processes. Invariants: whatever bytes are read, the answer is a page whose numbers agree or an error, never a panic;
//! a reader that found the sequence even and the same before and after has read what one write left.

#![forbid(unsafe_code)]

mod layout;

use serde::Serialize;

pub use layout::{Fault, LENGTH, MOST_BYTES, MOST_NODES, NAME, SEQUENCE, VERSION, WORDS};

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    /// Whose it is.
    #[serde(flatten)]
    pub process: Process,
    /// When it was last written, in nanoseconds since 1970.
    #[serde(rename = "updated_ns")]
    pub updated: u64,
    /// How its memory stands.
    #[serde(flatten)]
    pub counters: Counters,
    /// Its memory by NUMA node, of at most [`MOST_NODES`]; nothing where all memory serves all devices.
    pub nodes: Vec<NodeUse>,
}

/// Pinned memory that serves the devices of a NUMA node, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeUse {
    /// The node's number.
    pub node: u32,
    /// What is pinned, but for a plan's regions, which serve all devices.
    #[serde(rename = "pinned_bytes")]
    pub pinned: u64,
    /// Of it what is no free block of the engine's: what caches hold is in use.
    #[serde(rename = "used_bytes")]
    pub used: u64,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its id, as it sees it itself.
    pub pid: u32,
    /// Which of the processes that a launcher started, and how many these are.
    pub rank: Option<(u32, u32)>,
    /// The device that it last pinned memory for, by CUDA's number.
    pub device: Option<u32>,
    /// Its program, or script. Nothing else in it than text that can be shown.
    pub program: String,
    /// When the page was made, in nanoseconds since 1970.
    #[serde(rename = "since_ns")]
    pub since: u64,
}

/// The most that the engine pins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Not decided yet.
    #[default]
    Unknown,
    /// So many bytes.
    Bytes(u64),
    /// There is no limit.
    Unlimited,
}

impl Budget {
    /// In bytes, if there is a limit.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// How a process's pinned memory stands. Sizes are in bytes; cached blocks are idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// The engine met a defect of its own and serves nothing any more.
    pub retired: bool,
    /// Pinned now.
    #[serde(rename = "pinned_bytes")]
    pub pinned: u64,
    /// The most that was.
    #[serde(rename = "peak_pinned_bytes")]
    pub peak_pinned: u64,
    /// In blocks that the program holds.
    #[serde(rename = "live_bytes")]
    pub live: u64,
    /// In blocks that were freed and wait for events.
    #[serde(rename = "pending_bytes")]
    pub pending: u64,
    /// The most that may be pinned.
    pub budget: Budget,
    /// Pinned regions.
    pub segments: u64,
    /// Requests that were served.
    pub served: u64,
    /// Times that a request found no room and had memory pinned.
    pub misses: u64,
    /// Of those that were served: by the places of a plan.
    pub planned: u64,
    /// Requests for which a plan had no place.
    pub unplanned: u64,
    /// Requests that waited for memory to be pinned.
    pub waits: u64,
    /// How long they waited, in nanoseconds.
    #[serde(rename = "waited_ns")]
    pub waited: u64,
}

impl Counters {
    /// Pinned, and neither live nor pending.
    pub fn idle(&self) -> u64 {
        self.pinned.saturating_sub(self.live + self.pending)
    }

    /// The share of requests that needed no pin, from 0 to 1; `None` before the first. A request may miss, wait and
    /// miss again, so there can be more misses than requests.
    pub fn hit_rate(&self) -> Option<f64> {
        let hits = self.served.saturating_sub(self.misses);
        (self.served > 0).then(|| hits as f64 / self.served as f64)
    }
}

#[cfg(test)]
mod tests;
