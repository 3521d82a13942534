//! Registers a region with CUDA in one registration, which begins a page before it.
//!
//! CUDA refuses a copy from one registration into the next, even where they touch, so a region is never registered in pieces.
//! It unregisters by the address at which a registration begins, for whoever asks, so none begins where a block does.
//!
//! Invariant: if the caller is told that nothing is registered, it may unmap the region. What cannot be unregistered again, a
//! device may still write to: the caller gets it, to try again.

use std::time::{Duration, Instant};

use pinbuddy_core::Region;

use super::driver::Driver;
use super::mapping::lead;
use super::{Control, Device};
use crate::log::{self, Bytes};

/// A single registration of so many bytes fails (NVIDIA/open-gpu-kernel-modules#1234).
const TOO_LONG: usize = 512 << 30;

/// Why a region is not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unregistered {
    /// The driver's error; `None` if the pin was stopped before the driver was asked.
    pub(super) why: Option<String>,
    /// What stays registered all the same.
    pub(super) rest: Option<Region>,
}

/// An error if a region of `bytes` bytes is too long for a registration.
pub(super) fn check_length(bytes: usize) -> Result<(), String> {
    if bytes + lead() < TOO_LONG {
        return Ok(());
    }
    let (bytes, limit) = (Bytes(bytes as u64), Bytes(TOO_LONG as u64));
    Err(format!("a region of {bytes} is too long for CUDA to register, which takes less than {limit}"))
}

/// Registers a region together with the page before it or, where the driver refuses that, alone. Returns what is registered,
/// and how long the driver took; the error is the first.
pub(super) fn register_with_lead(
    driver: &impl Driver,
    region: Region,
    device: Device,
    control: &dyn Control,
) -> Result<(Region, Duration), Unregistered> {
    let register = |it| register(driver, it, device, control).map(|taken| (it, taken));
    let with_lead = Region { base: region.base - lead(), bytes: region.bytes + lead() };
    register(with_lead).or_else(|failed| {
        let (Some(why), None) = (&failed.why, &failed.rest) else {
            return Err(failed);
        };
        match register(region) {
            Ok(alone) => {
                log::info(|| format!("the page before a block is not registered with it: {why}"));
                Ok(alone)
            }
            // Stopped while it waited, which decides nothing, or it stays registered.
            Err(other) if other.why.is_none() || other.rest.is_some() => Err(other),
            Err(_) => Err(failed),
        }
    })
}

/// Registers `region` if `control` lets it. Returns how long the driver took, without waits. The driver's error to a stopped
/// pin is no refusal: when the process ends, the driver may be gone.
fn register(
    driver: &impl Driver,
    region: Region,
    device: Device,
    control: &dyn Control,
) -> Result<Duration, Unregistered> {
    if !control.may_register(region.bytes) {
        let (why, rest) = (None, None);
        return Err(Unregistered { why, rest });
    }
    let because = |why| control.go_on().then_some(why);
    let start = Instant::now();
    let registered = driver.register(region, device);
    let taken = start.elapsed();
    registered.map_err(|why| Unregistered { why: because(why), rest: None })?;
    driver.check(region).map_err(|why| Unregistered {
        why: because(why),
        rest: driver.unregister(region).is_err().then_some(region),
    })?;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::super::register::tests::{DEVICE, Fake};
    use super::*;
    use crate::config::MIB;

    const REGION: Region = Region { base: 0x7000_0000, bytes: 10 * MIB };

    #[test]
    fn no_registration_is_too_long() {
        for (bytes, fits) in [(MIB, true), (TOO_LONG - lead() - 1, true), (TOO_LONG - lead(), false)] {
            assert_eq!(check_length(bytes).is_ok(), fits);
        }
    }

    #[test]
    fn a_region_that_devices_see_elsewhere_is_unregistered_or_said_to_stay() {
        for stays in [false, true] {
            let driver = Fake::default();
            driver.sees_it_elsewhere.set(true);
            driver.refuses_to_unregister.set(stays);
            let failed = register(&driver, REGION, DEVICE, &Foreground).unwrap_err();
            assert!(failed.why.unwrap().contains("invalid argument"));
            assert_eq!(failed.rest, stays.then_some(REGION));
            let left: &[Region] = if stays { &[REGION] } else { &[] };
            assert_eq!(*driver.registered.lock().unwrap(), left);
        }
    }
}
