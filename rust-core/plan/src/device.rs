//! What a run asked of device memory, stream by stream, and the plans made of that.
//!
//! Memory that a stream freed is its own again at once, whatever its work has come to: so each stream is planned by
//! itself, as one lane. What no slot would serve is left to PyTorch: a plan without slots is none.

use crate::file::device::{DevicePlan, Stream};
use crate::record::{Event, Record};
use crate::replay::check_plan;
use crate::script::{Options, Watch, plan_watched};

/// Requests from so many bytes on are planned. PyTorch serves those of up to 1 MiB from segments of 2 MiB, in which shorter ones waste
/// little; of those that are longer than a quarter of a mebibyte, as networks for pictures have many, few fit in a segment.
pub const THRESHOLD: u64 = 1 << 18;

/// What is no longer than this alone gives no plan: PyTorch serves it from segments of 2 MiB, where a region may need one of 20.
const SMALL: u64 = 1 << 20;

/// A record for each stream. See the module's documentation.
#[derive(Clone, Debug)]
pub struct DeviceRecord {
    records: Vec<(Stream, Record)>,
    limit: u32,
}

impl DeviceRecord {
    /// An empty record that takes `limit` events.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            records: Vec::new(),
            limit,
        }
    }

    /// Takes an event of a stream; false, and nothing is taken, once the record is full. A request's lane is of no
    /// account.
    pub fn push(&mut self, stream: Stream, event: Event) -> bool {
        if self.is_full() {
            return false;
        }
        let at = self.records.iter().position(|(it, _)| *it == stream);
        let at = at.unwrap_or_else(|| {
            self.records.push((stream, Record::new(self.limit)));
            self.records.len() - 1
        });
        self.records[at].1.push(event)
    }

    /// An iteration is over, on all streams.
    pub fn iteration(&mut self) {
        for (_, record) in &mut self.records {
            record.push(Event::Iteration);
        }
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let events = self.records.iter().map(|(_, it)| u64::from(it.now));
        events.sum::<u64>() >= u64::from(self.limit)
    }

    /// How many requests it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.iter().map(|(_, it)| it.len()).sum()
    }

    /// Whether it has no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many requests get their place when the record is replayed on its plans.
    #[must_use]
    pub fn hits(&self, plans: &DevicePlan) -> u64 {
        let hits = self.records.iter().filter_map(|(stream, record)| {
            let (_, plan) = plans.plans.iter().find(|(it, _)| it == stream)?;
            Some(check_plan(record, plan).hits)
        });
        hits.sum()
    }

    /// Plans for the streams whose requests repeat. Asks `stop` as [`plan()`](crate::plan()) does. Regions are apart: where memory is short,
    /// and where the program empties its cache, those in which nothing lies are given back.
    #[must_use]
    pub fn plan(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> DevicePlan {
        let seen = &|_| {};
        self.plan_watched(options, Watch { stop, seen })
    }

    /// The same, and says what was found so far, stream by stream.
    #[must_use]
    pub fn plan_watched(&self, options: &Options, watch: Watch<'_>) -> DevicePlan {
        let options = &Options {
            device: true,
            ..options.clone()
        };
        let plans = self.records.iter().filter_map(|(stream, record)| {
            let plan = plan_watched(record, options, watch);
            // Regions that no slot names are for requests whose sizes vary; they alone are no plan.
            let is_worth_it = plan.slots.iter().any(|it| it.bytes > SMALL);
            is_worth_it.then_some((*stream, plan))
        });
        DevicePlan {
            plans: plans.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn each_stream_whose_requests_repeat_has_a_plan() {
        let mut record = DeviceRecord::new(1_000_000);
        let [main, side, random] = [(0, 0), (0, 1), (1, 0)].map(Stream::from);
        let mut id = 0;
        for turn in 0..12 {
            for (stream, sizes) in [
                (main, vec![4, 2, 9]),
                (side, vec![3]),
                (random, vec![2 + turn * turn % 89]),
            ] {
                let first = id;
                for size in sizes {
                    let bytes = size * MIB;
                    record.push(stream, Event::Request { id, bytes, lane: 7 });
                    id += 1;
                }
                for id in first..id {
                    record.push(stream, Event::Over { id });
                }
            }
            record.iteration();
        }
        let made = record.plan(&Options::default(), &|| false);
        let planned: Vec<_> = made
            .plans
            .iter()
            .map(|(stream, plan)| (*stream, plan.reserved() / MIB))
            .collect();
        assert_eq!(planned, [(main, 15), (side, 3)]);
    }

    #[test]
    fn one_large_request_beside_the_steps_is_left_to_pytorch() {
        let mut record = DeviceRecord::new(1_000_000);
        let stream = Stream::from((0, 0));
        let mut id = 0;
        for sizes in std::iter::repeat_n(vec![30, 16, 24], 30).chain([vec![90]]) {
            let first = id;
            for mib in sizes {
                let bytes = mib * MIB;
                record.push(stream, Event::Request { id, bytes, lane: 0 });
                id += 1;
            }
            for id in first..id {
                record.push(stream, Event::Over { id });
            }
        }
        let made = record.plan(&Options::default(), &|| false);
        assert_eq!(made.plans[0].1.reserved(), 70 * MIB);
    }

    /// A training whose optimizer makes its state in the first step; at the end all is freed.
    #[test]
    fn the_end_of_a_program_does_not_end_what_it_kept() {
        let mut record = DeviceRecord::new(1_000_000);
        let stream = Stream::from((0, 0));
        let mut id = 0;
        let mut ask = |record: &mut DeviceRecord, mib: u64| {
            id += 1;
            let bytes = mib * MIB;
            record.push(stream, Event::Request { id, bytes, lane: 0 });
            id
        };
        let mut kept: Vec<u64> = (0..6).map(|_| ask(&mut record, 2)).collect();
        let free = |record: &mut DeviceRecord, ids: Vec<u64>| {
            for id in ids {
                record.push(stream, Event::Over { id });
            }
        };
        for step in 0..12 {
            let activations: Vec<u64> = (0..6).map(|_| ask(&mut record, 3)).collect();
            let gradients: Vec<u64> = (0..6).map(|_| ask(&mut record, 2)).collect();
            free(&mut record, activations);
            if step == 0 {
                kept.extend((0..12).map(|_| ask(&mut record, 2)));
            }
            for _ in 0..6 {
                let one = ask(&mut record, 2);
                free(&mut record, vec![one]);
            }
            free(&mut record, gradients);
        }
        let with_the_end = {
            let mut record = record.clone();
            free(&mut record, kept);
            record
        };
        for record in [record, with_the_end] {
            let made = record.plan(&Options::default(), &|| false);
            assert_eq!(made.plans.len(), 1);
            let plan = &made.plans[0].1;
            let replayed = check_plan(&record.records[0].1, plan);
            assert_eq!(replayed.hits as usize, record.len());
            assert_eq!(plan.reserved(), record.records[0].1.peak());
        }
    }

    #[test]
    fn a_stream_that_asks_for_nothing_large_is_pytorchs() {
        for (largest, plans) in [(SMALL, 0), (SMALL + 4096, 1)] {
            let mut record = DeviceRecord::new(1000);
            for id in 0..100 {
                let bytes = if id % 2 == 0 { THRESHOLD } else { largest };
                let stream = Stream::from((0, 0));
                record.push(stream, Event::Request { id, bytes, lane: 0 });
                record.push(stream, Event::Over { id });
            }
            let made = record.plan(&Options::default(), &|| false);
            assert_eq!(made.plans.len(), plans, "{largest}");
        }
    }

    #[test]
    fn the_limit_is_for_all_streams_together() {
        let mut record = DeviceRecord::new(4);
        for id in 0..10 {
            let stream = Stream::from((0, id as u32 % 2));
            let bytes = MIB;
            record.push(stream, Event::Request { id, bytes, lane: 0 });
        }
        assert_eq!(record.len(), 4);
        assert!(record.is_full());
    }
}
