//! Plans of device memory in one file: one plan for each stream of each device.
//!
//! A stream reuses what it freed at once, and another stream only after events; so no two streams share a region, and
//! each has a plan of its own. Reads with the same distrust as for one plan.

use std::borrow::Cow;
use std::io::{self, Write};

use pinbuddy_device::Torch;
use pinbuddy_device::planned::Planned;
use pinbuddy_slots::Mistake;
use serde::{Deserialize, Serialize};

use super::text::{Text, VERSION, check_head};
use super::{Error, MadeFor, Mismatch, Plan};
use crate::device::THRESHOLDS;

const FORMAT: &str = "pinbuddy-device-plan";

/// Plans of more streams than this are refused.
const MOST_STREAMS: usize = 256;

/// A stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Stream {
    /// The device's number.
    pub device: u32,
    /// How many of the device's streams were asked for planned memory before this one.
    pub number: u32,
}

impl From<(u32, u32)> for Stream {
    fn from((device, number): (u32, u32)) -> Self {
        Self { device, number }
    }
}

impl From<Stream> for (u32, u32) {
    fn from(it: Stream) -> Self {
        (it.device, it.number)
    }
}

/// A plan for each stream for which there is one; all are made for the same run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DevicePlan {
    /// In any order; no stream twice.
    pub plans: Vec<(Stream, Plan)>,
    /// None in files of older releases, and of records that were full before their runs ended.
    pub without: Option<Without>,
}

/// What the recorded run, without a plan, had at most on the devices that have plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// Bytes in use at once.
    pub in_use: u64,
    /// Bytes that PyTorch's allocator reserved.
    pub reserved: u64,
}

impl Without {
    /// What PyTorch's allocator would reserve for a run that has so many bytes in use at most, were it as efficient there. At least
    /// as many.
    #[must_use]
    pub fn for_a_run(&self, in_use: u64) -> u64 {
        let reserved = u128::from(in_use) * u128::from(self.reserved) / u128::from(self.in_use.max(1));
        u64::try_from(reserved).unwrap_or(u64::MAX).max(in_use)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'t> {
    format: Cow<'t, str>,
    version: u64,
    #[serde(borrow)]
    plans: Vec<Of<'t>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    without: Option<Without>,
    /// Of all numbers beside the plans, and the sums of these.
    checksum: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Of<'t> {
    stream: Stream,
    #[serde(borrow)]
    plan: Text<'t>,
}

impl DevicePlan {
    /// The smallest request that it has places for.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        let plans = self.plans.iter().map(|(_, it)| it.made_for.threshold);
        plans.min().unwrap_or(0)
    }

    /// The plans of a device in front of a model of PyTorch's allocator.
    ///
    /// # Errors
    ///
    /// Why they cannot be used.
    pub fn before(&self, device: u32, model: Torch) -> Result<Planned, Mistake> {
        let own = || self.plans.iter().filter(move |(it, _)| it.device == device);
        let count = own().map(|(it, _)| it.number as usize + 1).max();
        let mut layouts = vec![None; count.unwrap_or(0).min(MOST_STREAMS)];
        for (stream, plan) in own() {
            if let Some(layout) = layouts.get_mut(stream.number as usize) {
                *layout = Some(plan.layout(plan.regions.len()));
            }
        }
        Planned::new(model, self.threshold(), &layouts)
    }

    /// Plans from the text of a file.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn read(text: &str) -> Result<Self, Error> {
        check_head(text, FORMAT)?;
        let file: File<'_> = serde_json::from_str(text)?;
        let (expected, without) = (file.checksum, file.without);
        let mut sum = crc32fast::Hasher::new();
        let mut plans: Vec<(Stream, Plan)> = Vec::new();
        for Of { stream, plan } in file.plans {
            let plan = plan.into_checked()?;
            if plans.iter().any(|(other, _)| *other == stream) || plans.len() == MOST_STREAMS {
                return Err(Error::Value {
                    place: format!("stream {}", plans.len()),
                    found: format!("stream {} of device {}", stream.number, stream.device),
                    expected: format!("one that was not named before, and {MOST_STREAMS} at most"),
                });
            }
            add(&mut sum, stream, Text::of(&plan).sum()?);
            plans.push((stream, plan));
        }
        add_without(&mut sum, without);
        let found = sum.finalize();
        if expected != found {
            let expected = Some(expected);
            return Err(Error::Checksum { expected, found });
        }
        Ok(Self { plans, without })
    }

    /// Writes the text of a file, with a line's end.
    ///
    /// # Errors
    ///
    /// `out`'s; and of kind `InvalidData` for plans that [`Self::read`] would refuse.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let invalid = |error: Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut sum = crc32fast::Hasher::new();
        let mut plans = Vec::new();
        for (stream, plan) in &self.plans {
            plan.check().map_err(invalid)?;
            let mut text = Text::of(plan);
            let of_it = text.sum().map_err(invalid)?;
            text.checksum = Some(of_it);
            add(&mut sum, *stream, of_it);
            let stream = *stream;
            plans.push(Of { stream, plan: text });
        }
        let without = self.without;
        add_without(&mut sum, without);
        let file = File { format: FORMAT.into(), version: VERSION, plans, without, checksum: sum.finalize() };
        serde_json::to_writer(&mut *out, &file)?;
        out.write_all(b"\n")
    }

    /// Whether this run may use the plans, all of which have places for requests from the same bytes on: at most the first of
    /// [`THRESHOLDS`].
    ///
    /// # Errors
    ///
    /// Everything that differs.
    pub fn fits(&self, run: &MadeFor) -> Result<(), Mismatch> {
        let run = MadeFor { threshold: self.threshold().min(THRESHOLDS[0]), ..run.clone() };
        self.plans.iter().try_for_each(|(_, plan)| plan.fits(&run))
    }

    /// The bytes of all regions.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.plans.iter().map(|(_, plan)| plan.reserved()).sum()
    }
}

fn add(sum: &mut crc32fast::Hasher, stream: Stream, of_plan: u32) {
    for number in [stream.device, stream.number, of_plan] {
        sum.update(&number.to_le_bytes());
    }
}

fn add_without(sum: &mut crc32fast::Hasher, without: Option<Without>) {
    if let Some(Without { in_use, reserved }) = without {
        sum.update(&in_use.to_le_bytes());
        sum.update(&reserved.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Slot;

    fn plans() -> DevicePlan {
        let plan = |bytes| Plan {
            regions: vec![bytes],
            slots: vec![Slot { bytes, region: 0, offset: 0 }],
            lanes: vec![crate::file::Lane { period: vec![0], ..Default::default() }],
            ..Plan::default()
        };
        let stream = |device, number| Stream { device, number };
        let without = Some(Without { in_use: 12_000, reserved: 16_384 });
        DevicePlan { plans: vec![(stream(0, 0), plan(8192)), (stream(1, 2), plan(4096))], without }
    }

    fn text(plans: &DevicePlan) -> String {
        let mut text = Vec::new();
        plans.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn what_a_run_would_reserve_is_at_least_what_it_uses_whatever_a_file_says() {
        let of = |in_use, reserved, run| Without { in_use, reserved }.for_a_run(run);
        assert_eq!([of(10, 14, 5), of(10, 14, 20), of(10, 4, 20), of(0, 0, 7)], [7, 28, 20, 7]);
        assert_eq!([of(0, u64::MAX, u64::MAX), of(u64::MAX, 1, u64::MAX)], [u64::MAX; 2]);
    }

    #[test]
    fn no_digit_can_be_changed_a_stream_is_named_once_and_one_plan_is_another_file() {
        let good = text(&plans());
        for at in 0..good.len() {
            let byte = good.as_bytes()[at];
            if byte.is_ascii_digit() {
                let mut other = good.clone().into_bytes();
                other[at] = if byte == b'9' { b'1' } else { byte + 1 };
                let other = String::from_utf8(other).unwrap();
                assert!(DevicePlan::read(&other).is_err(), "{other}");
            }
        }
        let mut twice = plans();
        twice.plans[1].0 = twice.plans[0].0;
        let error = DevicePlan::read(&text(&twice)).unwrap_err();
        assert!(error.to_string().contains("stream 0 of device 0"));
        let mut one = Vec::new();
        plans().plans[0].1.write(&mut one).unwrap();
        let error = DevicePlan::read(std::str::from_utf8(&one).unwrap()).unwrap_err();
        assert!(error.to_string().contains("pinbuddy-device-plan"), "{error}");
        let error = Plan::read(&text(&plans())).unwrap_err();
        assert!(error.to_string().contains("expected \"pinbuddy-plan\""));
    }
}
