//! PyTorch's memory snapshots, as `torch.cuda.memory._dump_snapshot` writes them: the events of the
//! device's allocator and, from 2.14 on, of the pinned one.
//!
//! A snapshot is a pickle. A pickle can name any class and have it called, so this reader knows plain values alone
//! and refuses everything else, by its name and place. What it reads it hands on as [`pinbuddy_events::Event`]s, which say what a
//! program asked for, who asked, and when memory was free again. Segments are passed over.
//!
//! The same events may come as a table ([`Snapshot::read_table`]).
//!
//! Knows no trace format, no allocator and no clock.
//!
//! Invariants: no recursion; nothing is set aside for a length before so many bytes were read; memory is at
//! most a part of the file (40 bytes for each event, four for each value that the pickle may refer to again), and 80 MB for
//! stacks.

#![forbid(unsafe_code)]

mod entry;
mod error;
mod history;
mod machine;
mod source;
mod stack;
mod table;
mod word;

use std::io::BufRead;

use pinbuddy_events::Whose;

pub use entry::{Action, Entry};
pub use error::{Error, What};
pub use history::Summary;
pub use stack::{Call, Stacks};
pub use table::TableError;

/// What is read of a snapshot.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Of each device, the events of its allocator, in their order.
    pub devices: Vec<Vec<Entry>>,
    /// The events of the pinned allocator; empty where they were not recorded.
    pub host: Vec<Entry>,
    /// When optimizer steps and profiler steps ended, in microseconds: ends of iterations.
    pub steps: Vec<u64>,
    /// Who asked for what.
    pub stacks: Stacks,
}

impl Snapshot {
    /// Reads a snapshot.
    ///
    /// # Errors
    ///
    /// What cannot be read, with its place in the file.
    pub fn read(from: impl BufRead) -> Result<Self, Error> {
        machine::run(from)
    }

    /// The entries of one allocator; none where there are none.
    pub fn entries(&self, whose: Whose) -> &[Entry] {
        match whose {
            Whose::Host => &self.host,
            Whose::Device(device) => self.devices.get(device as usize).map_or(&[], Vec::as_slice),
        }
    }

    /// Whose events there are, the most interesting first: pinned memory, then the device with most.
    pub fn whose(&self) -> Option<Whose> {
        if !self.host.is_empty() {
            return Some(Whose::Host);
        }
        let devices = self.devices.iter().enumerate();
        let most = devices.max_by_key(|(device, it)| (it.len(), std::cmp::Reverse(*device)))?;
        (!most.1.is_empty()).then_some(Whose::Device(most.0 as u32)) // no file has as many as a `u32` counts
    }

    /// Of each request of [`Snapshot::events`], by its id: its stack.
    pub fn stacks_of_requests(&self, whose: Whose) -> impl Iterator<Item = Option<u32>> {
        let entries = self.entries(whose).iter();
        entries.filter(|it| it.is_request()).map(|it| it.stack)
    }

    /// What the program asked of one allocator, with ids for addresses and with ends of iterations.
    pub fn events(&self, whose: Whose) -> history::Events<'_> {
        history::Events::new(whose, self.entries(whose), &self.steps)
    }
}
