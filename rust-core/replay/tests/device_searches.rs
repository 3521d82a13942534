//! Programs that search for the largest batch that fits, and then train with it: whatever the device has, no plan is made of the
//! run, so that the next one finds the same.
//!
//! A search tries a batch; where a request fails, it frees what the step has, empties the cache and tries a smaller one.
#![allow(clippy::unwrap_used, reason = "tests")]

use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_replay::device::{Device, Kind, OutOfMemory, Settings, Torch};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;

/// How the next batch is chosen.
#[derive(Clone, Copy, Debug)]
enum Way {
    Halves,
    Bisects,
}

/// Sizes are in KiB, those of activations for each of a batch.
#[derive(Clone, Debug)]
struct Search {
    way: Way,
    layers: u64,
    weight: u64,
    activation: u64,
    buffer: u64,
    small: u64,
    /// Steps with the batch that was found.
    steps: usize,
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    batch: u64,
    /// Failures until then, and behind.
    failures: usize,
    later: usize,
}

/// The largest batch that is tried; none of the devices has room for it.
const LARGEST: u64 = 64;

/// A program at work: what it has of a device, and what is recorded of it.
struct Run<D> {
    device: D,
    record: DeviceRecord,
    next: u32,
    /// What the step has that is under way.
    of_the_step: Vec<u32>,
}

impl<D: Device> Run<D> {
    fn ask(&mut self, kib: u64) -> Result<u32, OutOfMemory> {
        let (block, bytes) = (self.next, kib * KIB);
        if let Err(failed) = self.device.allocate(block, bytes, 0) {
            self.record.failed();
            return Err(failed);
        }
        self.record.request((0, 0), block.into(), bytes);
        self.next += 1;
        self.of_the_step.push(block);
        Ok(block)
    }

    fn free(&mut self, block: u32) {
        self.of_the_step.retain(|it| *it != block);
        self.device.free(block);
        self.record.over(0, block.into());
    }

    /// A step failed: all that it has is freed, and the cache emptied.
    fn recover(&mut self) {
        while let Some(&block) = self.of_the_step.last() {
            self.free(block);
        }
        self.device.clear();
        self.record.emptied();
    }
}

impl Search {
    fn step<D: Device>(&self, batch: u64, run: &mut Run<D>) -> Result<(), OutOfMemory> {
        let mut kept = Vec::new();
        for _ in 0..self.layers {
            let buffer = run.ask(self.buffer * batch)?;
            kept.push(run.ask(self.activation * batch)?);
            kept.push(run.ask(self.small)?);
            run.free(buffer);
        }
        let mut gradients = Vec::new();
        while let (Some(small), Some(activation)) = (kept.pop(), kept.pop()) {
            let gradient = run.ask(self.activation * batch)?;
            gradients.push(run.ask(self.weight)?);
            [activation, small, gradient]
                .into_iter()
                .for_each(|it| run.free(it));
        }
        gradients.into_iter().for_each(|it| run.free(it));
        Ok(())
    }

    fn fits<D: Device>(&self, batch: u64, run: &mut Run<D>) -> bool {
        let fits = self.step(batch, run).and_then(|()| self.step(batch, run));
        if fits.is_err() {
            run.recover();
        }
        fits.is_ok()
    }

    fn batch<D: Device>(&self, run: &mut Run<D>, failures: &mut usize) -> u64 {
        let mut fits = |batch| {
            let fits = self.fits(batch, run);
            *failures += usize::from(!fits);
            fits
        };
        let (mut low, mut high) = (0, LARGEST);
        match self.way {
            Way::Halves => {
                while high > 0 && !fits(high) {
                    high /= 2;
                }
                high
            }
            Way::Bisects => {
                while high - low > 1 {
                    let middle = (low + high).div_ceil(2);
                    *if fits(middle) { &mut low } else { &mut high } = middle;
                }
                low
            }
        }
    }

    /// What it finds on a device, and the record of it; none if not even its weights fit.
    fn found(&self, device: impl Device) -> Option<(Found, DeviceRecord)> {
        let mut run = Run {
            device,
            record: DeviceRecord::new(u32::MAX),
            next: 0,
            of_the_step: Vec::new(),
        };
        run.record.behind(Kind::Torch);
        for _ in 0..self.layers {
            run.ask(self.weight).ok()?;
        }
        run.of_the_step.clear();
        let mut found = Found::default();
        found.batch = self.batch(&mut run, &mut found.failures);
        for _ in 0..self.steps {
            found.later += usize::from(!self.fits(found.batch, &mut run));
        }
        Some((found, run.record))
    }

    /// What the largest batch takes, about.
    fn most(&self) -> u64 {
        self.layers * (2 * self.weight + LARGEST * self.activation) * KIB
    }
}

fn device(capacity: u64) -> Torch {
    Torch::new(Settings {
        capacity,
        ..Settings::default()
    })
}

prop_compose! {
    fn search()(
        way in prop_oneof![Just(Way::Halves), Just(Way::Bisects)],
        layers in 2_u64..7,
        (weight, activation, buffer, small) in (300_u64..9000, 300_u64..3000, 100_u64..4000, 1_u64..200),
        steps in 2_usize..7,
    ) -> Search {
        Search { way, layers, weight, activation, buffer, small, steps }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_device_has_a_plan_of_a_search(search in search()) {
        // Steps of 2 % of the largest.
        for hundredth in (10..100).step_by(2) {
            let capacity = search.most() * hundredth / 100;
            let Some((stock, record)) = search.found(device(capacity)) else {
                continue;
            };
            prop_assert!(stock.failures > 0);
            if stock.batch == 0 {
                // Nothing fitted: all failures are the end of the program, which may have a plan.
                continue;
            }
            prop_assert!(record.searches(), "{hundredth} of {}", search.most());
            prop_assert_eq!(record.plan(&Options::default(), &|| false), DevicePlan::default());
        }
    }
}
