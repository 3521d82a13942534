//! The shape of a plan's JSON, for reading and for writing, and the sum over it.
//!
//! The sum is that of the text without its checksum, in the one way in which this module writes it. So a
//! file that was only laid out anew still reads.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{Error, Facts, Lane, MOST_TEXT, MadeFor, Plan, Slot};

/// What a plan's file calls its format.
pub(super) const FORMAT: &str = "pinbuddy-plan";
/// The version of all formats of plans.
pub(super) const VERSION: u64 = 1;

/// What a file says that it is; all else is not looked at.
#[derive(Deserialize)]
struct Head<'t> {
    #[serde(borrow)]
    format: Cow<'t, str>,
    version: u64,
}

/// Whether the text begins a file of this format.
pub(super) fn check_head(text: &str, format: &'static str) -> Result<(), Error> {
    if text.len() > MOST_TEXT {
        return Err(Error::Long(text.len()));
    }
    // Other formats have an object a line: then the first one says what the file is.
    let head: Head<'_> = serde_json::from_str(text).or_else(|error| {
        let first = text.lines().next().unwrap_or_default();
        serde_json::from_str(first).map_err(|_| error)
    })?;
    check(&head.format, head.version, format)
}

fn check(found: &str, version: u64, format: &'static str) -> Result<(), Error> {
    if found != format {
        return Err(Error::Format(found.chars().take(40).collect(), format));
    }
    if version != VERSION {
        return Err(Error::Version(version));
    }
    Ok(())
}

/// A whole file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text<'t> {
    format: Cow<'t, str>,
    version: u64,
    torch: Cow<'t, str>,
    world_size: u32,
    rank: u32,
    threshold: u64,
    regions: Cow<'t, [u64]>,
    slots: Cow<'t, [Slot]>,
    lanes: Cow<'t, [Lane]>,
    #[serde(default, skip_serializing_if = "is_none")]
    classes: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    device_bytes: u64,
    facts: Facts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<u32>,
}

impl<'t> Text<'t> {
    /// Without a checksum.
    pub(super) fn of(plan: &'t Plan) -> Self {
        let made_for = &plan.made_for;
        Self {
            format: FORMAT.into(),
            version: VERSION,
            torch: (&*made_for.torch).into(),
            world_size: made_for.world_size,
            rank: made_for.rank,
            threshold: made_for.threshold,
            regions: (&*plan.regions).into(),
            slots: (&*plan.slots).into(),
            lanes: (&*plan.lanes).into(),
            classes: plan.classes,
            device_bytes: plan.device_bytes,
            facts: rounded(plan.facts),
            checksum: None,
        }
    }

    fn into_plan(self) -> Plan {
        Plan {
            made_for: MadeFor {
                torch: self.torch.into_owned(),
                world_size: self.world_size,
                rank: self.rank,
                threshold: self.threshold,
            },
            regions: self.regions.into_owned(),
            slots: self.slots.into_owned(),
            lanes: self.lanes.into_owned(),
            classes: self.classes,
            device_bytes: self.device_bytes,
            facts: rounded(self.facts),
        }
    }

    /// The plan, if nothing is wrong with it and its checksum is right.
    pub(super) fn into_checked(self) -> Result<Plan, Error> {
        check(&self.format, self.version, FORMAT)?;
        let expected = self.checksum;
        let plan = self.into_plan();
        plan.check()?;
        let found = Text::of(&plan).sum()?;
        if expected != Some(found) {
            return Err(Error::Checksum { expected, found });
        }
        Ok(plan)
    }

    /// CRC-32 of the text as it stands.
    pub(super) fn sum(&self) -> Result<u32, Error> {
        let mut sum = Sum::default();
        serde_json::to_writer(&mut sum, self)?;
        // The checksum and the line's end come on top.
        if sum.length > MOST_TEXT - 64 {
            return Err(Error::Long(sum.length));
        }
        Ok(sum.hasher.finalize())
    }
}

fn is_none<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Few digits, which survive being written and read.
fn rounded(facts: Facts) -> Facts {
    let thousandths = |number: f64| (number * 1000.0).round() / 1000.0;
    Facts {
        gap_percent: thousandths(facts.gap_percent),
        efficiency: thousandths(facts.efficiency),
        seconds: thousandths(facts.seconds),
        ..facts
    }
}

#[derive(Default)]
struct Sum {
    hasher: crc32fast::Hasher,
    length: usize,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
