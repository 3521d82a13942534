//! The plan file: a plan as one JSON object, checked by a sum over all of it.
//!
//! Reads with distrust: a file is refused with the place where it is wrong, and no number in it makes the
//! reader take memory that the text itself does not account for. Knows neither paths nor the run that uses
//! the plan.
//!
//! Invariants of a [`Plan`] that was read, or that [`Plan::check`] accepts: every region is a whole
//! number of granules and at most [`MOST_REGION`] long; every slot is a whole number of granules and lies
//! inside its region; every lane names slots that exist. Slots may overlap: a placement reuses the bytes
//! of blocks that do not live at the same time. So who uses a plan grants a slot only if its bytes are
//! free.

pub mod device;
mod error;
mod rules;
mod text;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

pub use error::{Error, Mismatch};
use text::{FORMAT, Text};

/// Sizes and offsets in a plan are multiples of this: 4 KiB.
pub const GRANULE: u64 = pinbuddy_core::GRANULE as u64;

/// The longest region: 64 GiB.
pub const MOST_REGION: u64 = 64 << 30;

/// The most regions of a plan.
pub const MOST_REGIONS: usize = 1024;

/// The most lanes of a plan.
pub const MOST_LANES: usize = 4096;

/// The longest text that is read or written: 64 MiB.
pub const MOST_TEXT: usize = 64 << 20;

/// The format of a file that says that a program has no plan. It is none of these, and stands where one would.
pub const NO_PLAN: &str = "pinbuddy-no-plan";

/// The run that a plan was made for; only the same run may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeFor {
    /// PyTorch's version, without what follows a plus sign.
    pub torch: String,
    /// How many processes work together.
    pub world_size: u32,
    /// Which of them this is.
    pub rank: u32,
    /// The smallest request that blocks serve, in bytes.
    pub threshold: u64,
}

/// A place for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u64, u32, u64)", into = "(u64, u32, u64)")]
pub struct Slot {
    /// The request, rounded up to granules.
    pub bytes: u64,
    /// The region that it lies in, counted from 0.
    pub region: u32,
    /// Bytes from the region's begin.
    pub offset: u64,
}

/// What one thread asks for: indexes of slots, in the order of its requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Requests that come once, first.
    pub prologue: Vec<u32>,
    /// Requests that come again and again, after those.
    pub period: Vec<u32>,
    /// How many iterations the period holds, all of them equally long: several where requests live for
    /// longer than one, so that their slots take turns. In the file only if it is not 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub turns: u32,
    /// The program's loop empties the cache before these steps, of the prologue and then of one iteration: what is
    /// returned there is needed again. In the file only if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clears: Vec<u32>,
}

impl Default for Lane {
    fn default() -> Self {
        Self { prologue: Vec::new(), period: Vec::new(), turns: 1, clears: Vec::new() }
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's")]
fn is_one(turns: &u32) -> bool {
    *turns == 1
}

/// What the planner found out, for people. Nothing depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Requests in the record.
    pub requests: u64,
    /// Iterations in the record that were alike; 0 where nothing repeats.
    pub iterations: u64,
    /// The most requested bytes that lived at once in the record.
    pub peak: u64,
    /// The least bytes that any placement of the slots needs.
    pub lower_bound: u64,
    /// How far the regions with slots are above that, in percent.
    pub gap_percent: f64,
    /// `peak` over the sum of all regions.
    pub efficiency: f64,
    /// How long planning took. The planner knows no clock: whoever called it sets this.
    pub seconds: f64,
}

/// Which regions to pin, and where requests go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The run that it was made for.
    pub made_for: MadeFor,
    /// Lengths of regions, in the order of first need. One that no slot names is for requests that no
    /// slot serves.
    pub regions: Vec<u64>,
    /// Places.
    pub slots: Vec<Slot>,
    /// In the order of their first requests. Threads that never live at once may share one.
    pub lanes: Vec<Lane>,
    /// Requests below 4 MiB that no slot serves are rounded up, to so many sizes in each doubling, so that freed blocks
    /// serve others; 0: they are not rounded. In the file only if it is not 0.
    pub classes: u32,
    /// For people.
    pub facts: Facts,
}

impl From<(u64, u32, u64)> for Slot {
    fn from((bytes, region, offset): (u64, u32, u64)) -> Self {
        Self { bytes, region, offset }
    }
}

impl From<Slot> for (u64, u32, u64) {
    fn from(slot: Slot) -> Self {
        (slot.bytes, slot.region, slot.offset)
    }
}

impl Plan {
    /// A plan from the text of a file.
    ///
    /// # Errors
    ///
    /// What is wrong, and where. Memory taken is bounded by a few times the length of the text.
    pub fn read(text: &str) -> Result<Self, Error> {
        text::check_head(text, FORMAT)?;
        let text: Text<'_> = serde_json::from_str(text)?;
        text.into_checked()
    }

    /// Writes the text of a file, with a line's end.
    ///
    /// # Errors
    ///
    /// `out`'s; and of kind `InvalidData` for a plan that [`Self::read`] would refuse.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let invalid = |error: Error| io::Error::new(io::ErrorKind::InvalidData, error);
        self.check().map_err(invalid)?;
        let mut text = Text::of(self);
        text.checksum = Some(text.sum().map_err(invalid)?);
        serde_json::to_writer(&mut *out, &text)?;
        out.write_all(b"\n")
    }

    /// Whether this run may use the plan.
    ///
    /// # Errors
    ///
    /// Everything that differs.
    pub fn fits(&self, run: &MadeFor) -> Result<(), Mismatch> {
        let made_for = self.made_for.clone();
        (made_for == *run).then_some(()).ok_or_else(|| Mismatch::new(made_for, run.clone()))
    }

    /// The bytes of all regions.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.regions.iter().sum()
    }

    /// Whether the invariants hold.
    ///
    /// # Errors
    ///
    /// The first place where one does not.
    pub fn check(&self) -> Result<(), Error> {
        rules::check(self)
    }
}
