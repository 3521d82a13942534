//! Registers a region with CUDA, whole or in pieces, all of them or none.
//!
//! CUDA unregisters by the address at which a registration begins, for whoever asks. So a page that is never handed out is
//! registered with a region that is one piece. Several pieces begin at multiples of their length, where blocks may begin, too:
//! a block should lie in one of them.
//!
//! Invariant: if the caller is told that nothing is registered, it may unmap the region. If a piece
//! cannot be unregistered, a device may still write to it: the caller gets the [`Rest`], to try again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pinbuddy_core::Region;

use super::driver::Driver;
use super::mapping::LEAD;
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
    pub(super) rest: Option<Rest>,
}

/// The part of a region that was registered, of which the driver would not unregister every piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    part: Region,
    length: usize,
    /// The pieces that are unregistered, by their starts.
    gone: BTreeSet<usize>,
}

impl Rest {
    /// Unregisters what is left, as far as the driver lets it; the error is that of the first piece that
    /// stays.
    pub(super) fn unregister(&mut self, driver: &impl Driver) -> Result<(), String> {
        unregister(driver, self.part, self.length, &mut self.gone)
    }
}

/// How much of a region of `bytes` one registration covers; `chunk` is the setting in bytes, 0 for none.
pub(super) fn length(bytes: usize, chunk: usize) -> Result<usize, String> {
    match chunk {
        0 if bytes >= TOO_LONG => Err(format!(
            "a region of {} is too long for one registration (BUDDY_REGISTER_CHUNK_MB)",
            Bytes(bytes as u64)
        )),
        0 => Ok(bytes),
        chunk => Ok(chunk.min(bytes)),
    }
}

/// Registers a region that is one piece together with the page before it, so that no registration begins where a block does.
/// Where the driver refuses that, and of several pieces, the region alone. Returns what is registered, and how long the driver
/// took; the error is the first.
pub(super) fn register_with_lead(
    driver: &impl Driver,
    region: Region,
    length: usize,
    device: Device,
    control: &dyn Control,
) -> Result<(Region, Duration), Unregistered> {
    let register = |it| register(driver, it, length, device, control).map(|taken| (it, taken));
    let with_lead = Region {
        base: region.base - LEAD,
        bytes: region.bytes + LEAD,
    };
    if length < with_lead.bytes {
        return register(region);
    }
    register(with_lead).or_else(|failed| {
        let (Some(why), None) = (&failed.why, &failed.rest) else {
            return Err(failed);
        };
        match register(region) {
            Ok(alone) => {
                log::info(|| format!("the page before a block is not registered with it: {why}"));
                Ok(alone)
            }
            Err(Unregistered { rest: None, .. }) => Err(failed),
            Err(stays) => Err(stays),
        }
    })
}

/// Registers `region` in pieces of `length` bytes, as long as `control` lets it. Returns how long the
/// driver took, without waits. The driver's error to a stopped pin is no refusal: when the process
/// ends, the driver may be gone.
pub(super) fn register(
    driver: &impl Driver,
    region: Region,
    length: usize,
    device: Device,
    control: &dyn Control,
) -> Result<Duration, Unregistered> {
    let mut taken = Duration::ZERO;
    for piece in pieces(region, length) {
        // So much of the region is registered.
        let mut done = piece.base - region.base;
        let registered = if control.may_register(piece.bytes) {
            let start = Instant::now();
            let registered = driver.register(piece, device);
            taken += start.elapsed();
            let checked = registered.and_then(|()| {
                done += piece.bytes;
                driver.check(piece)
            });
            checked.map_err(|why| control.go_on().then_some(why))
        } else {
            Err(None)
        };
        if let Err(why) = registered {
            let mut rest = Rest {
                part: Region {
                    bytes: done,
                    ..region
                },
                length,
                gone: BTreeSet::new(),
            };
            let stays = rest.unregister(driver).is_err();
            let rest = stays.then_some(rest);
            return Err(Unregistered { why, rest });
        }
    }
    Ok(taken)
}

/// Unregisters every piece that it can, except those in `gone`, by their starts, which already are; the
/// error is that of the first that it cannot.
pub(super) fn unregister(
    driver: &impl Driver,
    region: Region,
    length: usize,
    gone: &mut BTreeSet<usize>,
) -> Result<(), String> {
    let mut all = Ok(());
    for piece in pieces(region, length) {
        if gone.contains(&piece.base) {
            continue;
        }
        match driver.unregister(piece) {
            Ok(()) => {
                gone.insert(piece.base);
            }
            Err(why) => all = all.and(Err(why)),
        }
    }
    all
}

fn pieces(region: Region, length: usize) -> impl Iterator<Item = Region> {
    let Region { base, bytes } = region;
    (0..bytes).step_by(length).map(move |offset| Region {
        base: base + offset,
        bytes: length.min(bytes - offset),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::Foreground;
    use super::super::register::tests::{DEVICE, Fake};
    use super::*;
    use crate::config::MIB;

    const REGION: Region = Region {
        base: 0x7000_0000,
        bytes: 10 * MIB,
    };

    #[test]
    fn no_registration_is_too_long() {
        for (bytes, chunk, expected) in [
            (MIB, 0, Some(MIB)),
            (TOO_LONG - 1, 0, Some(TOO_LONG - 1)),
            (TOO_LONG, 0, None),
            (TOO_LONG, 256 * MIB, Some(256 * MIB)),
            (MIB, 256 * MIB, Some(MIB)),
        ] {
            assert_eq!(length(bytes, chunk).ok(), expected);
        }
    }

    #[test]
    fn pieces_cover_the_region_once() {
        let lengths: Vec<usize> = pieces(REGION, 4 * MIB).map(|it| it.bytes).collect();
        assert_eq!(lengths, [4 * MIB, 4 * MIB, 2 * MIB]);
        assert_eq!(pieces(REGION, 10 * MIB).count(), 1);
    }

    #[test]
    fn half_a_region_is_unregistered_again() {
        let driver = Fake::default();
        driver.registrations_left.store(2, Relaxed);
        let failed = register(&driver, REGION, 4 * MIB, DEVICE, &Foreground).unwrap_err();
        assert!(failed.rest.is_none() && failed.why.as_ref().unwrap().contains("not permitted"));
        assert!(driver.registered.lock().unwrap().is_empty());
    }

    #[test]
    fn a_piece_that_devices_see_elsewhere_is_unregistered_or_said_to_stay() {
        for stays in [false, true] {
            let driver = Fake::default();
            driver.sees_it_elsewhere.store(true, Relaxed);
            driver.refuses_to_unregister.store(stays, Relaxed);
            let failed = register(&driver, REGION, 4 * MIB, DEVICE, &Foreground).unwrap_err();
            assert_eq!(failed.rest.is_some(), stays);
            assert_eq!(driver.registered.lock().unwrap().len(), usize::from(stays));
        }
    }

    #[test]
    fn what_stays_registered_is_said_and_the_rest_is_not_left_so() {
        let driver = Fake::default();
        driver.registrations_left.store(2, Relaxed);
        driver.refuses_to_unregister.store(true, Relaxed);
        let failed = register(&driver, REGION, 4 * MIB, DEVICE, &Foreground).unwrap_err();
        assert!(
            failed.rest.is_some() && failed.why.as_ref().unwrap().contains("not permitted"),
            "the first error: {failed:?}"
        );
        driver.refuses_to_unregister.store(false, Relaxed);
        let all = unregister(&driver, REGION, 4 * MIB, &mut BTreeSet::new());
        assert!(all.unwrap_err().contains("not registered"));
        assert!(driver.registered.lock().unwrap().is_empty(), "it went on");
    }

    #[test]
    fn what_stays_is_unregistered_once_the_driver_lets_it_and_each_piece_once() {
        let driver = Fake::default();
        driver.registrations_left.store(2, Relaxed);
        driver.refuses_to_unregister.store(true, Relaxed);
        let failed = register(&driver, REGION, 4 * MIB, DEVICE, &Foreground).unwrap_err();
        let mut rest = failed.rest.unwrap();
        assert!(rest.unregister(&driver).is_err());
        assert_eq!(driver.registered.lock().unwrap().len(), 2);
        driver.refuses_to_unregister.store(false, Relaxed);
        for _ in 0..2 {
            assert_eq!(rest.unregister(&driver), Ok(()));
            assert!(driver.registered.lock().unwrap().is_empty());
        }
    }
}
