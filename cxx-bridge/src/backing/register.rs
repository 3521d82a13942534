//! The chain of backings: memory of our own, registered with CUDA; if that fails, CUDA allocates.
//!
//! Decides with the first region, remembers how each was made, and unpins it accordingly. Knows CUDA only
//! through [`Driver`]. Invariants: a region that could not be registered is unmapped at once, and one of
//! which something is registered never; a stopped pin leaves nothing behind, is not logged and decides
//! nothing; nothing is mapped, registered or read from the kernel under a lock (I5).

mod cuda;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pinbuddy_core::{Home, Region, Settings};

use super::driver::Driver;
use super::homes::{Homes, Seen};
use super::lead::{self, Unregistered};
use super::machine::Machine;
use super::mapping::Mapping;
use super::pace::{By, Paces};
use super::placement::{Placement, look};
use super::refusal::Refusal;
use super::region::{Made, Maker};
use super::said::Said;
use super::{Control, Device, Memory, Pinned, Source, Unpinned};
use crate::config::Config;
use crate::config::memory::Way;
use crate::lock::{self, Lock};
use crate::log::{self, Bytes};

/// How a pinned region was made.
#[derive(Debug)]
struct Held {
    /// `None` if CUDA allocated it.
    mapping: Option<Mapping>,
    /// What is registered: more than the region.
    registered: Region,
    source: Source,
    placement: Option<Placement>,
    /// Whether the driver was told that it goes, which may then be tried several times.
    goes: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Chain<D> {
    driver: D,
    way: Way,
    homes: Option<Homes>,
    maker: Maker,
    regions: Lock<HashMap<usize, Held>>,
    /// Of pins that failed: what the driver would not unregister again.
    rests: Lock<Vec<(Mapping, Region)>>,
    /// CUDA allocated a region that it could not register: it gets every region from then on.
    fallen: AtomicBool,
    paces: Paces,
    said: Said,
}

impl<D: Driver> Chain<D> {
    /// The chain with these settings, on this machine.
    pub fn new(config: &Config, driver: D) -> Self {
        Self::on(Machine::here(), config, driver)
    }

    fn on(machine: Machine, config: &Config, driver: D) -> Self {
        let blocks = config.block_count.value.unwrap_or(Settings::UNSET_COUNT);
        let ahead = config.block_bytes().saturating_mul(blocks);
        let memory = &config.memory;
        Self {
            driver,
            way: memory.backing.value,
            homes: Homes::new(memory.backing.value, memory.numa.value, &machine),
            maker: Maker::new(memory.clone(), ahead, machine),
            regions: Lock::default(),
            rests: Lock::default(),
            fallen: AtomicBool::new(false),
            paces: Paces::default(),
            said: Said::default(),
        }
    }

    /// Whether regions are mapped here.
    fn maps(&self) -> bool {
        self.way != Way::Cuda && !self.fallen.load(Ordering::Relaxed)
    }

    fn pin_pages(
        &self,
        bytes: usize,
        device: Device,
        source: Source,
        control: &dyn Control,
    ) -> Result<Pinned, Refusal> {
        lead::check_length(bytes).map_err(Refusal::NotThis)?;
        if !control.go_on() {
            return Err(Refusal::Stopped);
        }
        // The driver's error to a stopped pin is no refusal: when the process ends, the driver may be gone.
        self.driver.initialise(device).map_err(|why| match control.go_on() {
            true => Refusal::NotRegistered(why),
            false => Refusal::Stopped,
        })?;
        let Made { mapping, taken: filling, is_small } = self.make(bytes, device, source, control)?;
        let base = mapping.base();
        let region = Region { base, bytes };
        let (registered, registering) = match lead::register_with_lead(&self.driver, region, device, control) {
            Ok(registered) => registered,
            Err(failed) => return Err(self.give_up(mapping, bytes, failed)),
        };
        self.driver.pinned(region, filling + registering);
        if is_small {
            self.timed(By::Us, bytes, filling + registering, registering);
        }
        let chosen = "blocks are mapped here and registered with CUDA (BUDDY_BACKING=pages)";
        self.said.chosen.say(false, || chosen.to_owned());
        log::debug(|| {
            let (size, threads) = (Bytes(bytes as u64), self.maker.threads());
            format!("{size} mapped and touched in {filling:.1?} (threads: {threads}), then registered")
        });
        self.remember(region, Some(mapping), registered, source);
        Ok(Pinned { base, filling, registering })
    }

    /// Memory of our own, not registered yet.
    fn make(&self, bytes: usize, device: Device, source: Source, control: &dyn Control) -> Result<Made, Refusal> {
        let pci_address = || self.driver.pci_address(device);
        self.maker.make(bytes, source, control, pci_address).map_err(|why| match why {
            Refusal::NotThis(why) => Refusal::NotThis(format!("could not map {}: {why}", Bytes(bytes as u64))),
            why => why,
        })
    }

    /// Unmaps memory that could not be registered, or keeps it while it is.
    fn give_up(&self, mapping: Mapping, bytes: usize, failed: Unregistered) -> Refusal {
        match failed.rest {
            None => self.maker.unmap(mapping),
            Some(rest) => {
                // A device may still write to it.
                let bytes = Bytes(bytes as u64);
                log::warn(|| format!("{bytes} of memory stay registered until empty_cache() can unregister them"));
                self.rests.lock().push((mapping, rest));
            }
        }
        match failed.why {
            Some(why) => Refusal::NotRegistered(why),
            None => Refusal::Stopped,
        }
    }

    /// Pins memory of our own or, if that fails, CUDA's.
    fn pin_somehow(
        &self,
        bytes: usize,
        device: Device,
        source: Source,
        control: &dyn Control,
    ) -> Result<Pinned, Unpinned> {
        let mut refusal = None;
        if self.is_sooner_by_cuda(bytes, source)
            && let Some(ended) = self.allocate_sooner(bytes, device, control)
        {
            return ended;
        }
        if self.maps() {
            match self.pin_pages(bytes, device, source, control) {
                Ok(pinned) => return Ok(pinned),
                Err(Refusal::Stopped) => return Err(Unpinned::Stopped),
                Err(why) => refusal = Some(why),
            }
            if source == Source::SetAside {
                self.maker.nothing_is_set_aside();
            }
        }
        match refusal {
            // CUDA would take memory that others need.
            Some(Refusal::Short(why)) => return Err(Unpinned::Refused(why)),
            _ if source == Source::SetAside => {
                let why = "CUDA does not allocate from what is set aside".to_owned();
                return Err(Unpinned::Refused(why));
            }
            _ => {}
        }
        let pinned = self.allocate(bytes, device, control)?;
        match refusal {
            None | Some(Refusal::Short(_) | Refusal::Stopped) => {}
            Some(Refusal::NotThis(why)) => {
                self.said.not_this.say(true, || why + "; CUDA allocates it");
            }
            Some(Refusal::NotRegistered(why)) => {
                self.fallen.store(true, Ordering::Relaxed);
                self.said.fallen.say(true, || {
                    format!(
                        "could not register {} of memory with CUDA: {why}. CUDA allocates blocks \
                         from now on, as with BUDDY_BACKING=cuda",
                        Bytes(bytes as u64)
                    )
                });
            }
        }
        Ok(pinned)
    }

    fn remember(&self, region: Region, mapping: Option<Mapping>, registered: Region, source: Source) {
        let held = Held { mapping, registered, source, placement: None, goes: false };
        self.regions.lock().insert(region.base, held);
    }

    fn unregister(&self, region: Region, pinned: &mut Held) -> Result<(), String> {
        if !std::mem::replace(&mut pinned.goes, true) {
            self.driver.goes(region);
        }
        self.driver.unregister(pinned.registered)
    }
}

impl<D: Driver> Memory for Chain<D> {
    fn available(&self) -> bool {
        self.driver.available()
    }

    fn device(&self) -> Device {
        self.driver.device()
    }

    fn homes(&self) -> usize {
        self.homes.as_ref().map_or(1, Homes::most)
    }

    fn home(&self, device: Device) -> Home {
        let of = |it: &Homes| it.of(device, || self.driver.pci_address(device));
        self.homes.as_ref().map_or_else(Home::default, of)
    }

    fn at_home(&self, home: Home) -> Option<Seen> {
        self.homes.as_ref()?.at(home)
    }

    fn page(&self) -> usize {
        self.maker.page()
    }

    fn start(&self, device: Device) {
        // If it fails, the first pin says why.
        let _ = self.driver.initialise(device);
    }

    fn source(&self, bytes: usize) -> Source {
        if self.maps() { self.maker.source(bytes) } else { Source::Ordinary }
    }

    fn set_aside(&self, bytes: usize) -> usize {
        if self.maps() { self.maker.set_aside(bytes) } else { 0 }
    }

    fn pin(&self, bytes: usize, device: Device, source: Source, control: &dyn Control) -> Result<Pinned, Unpinned> {
        lock::assert_none_held("mapping");
        self.pin_somehow(bytes, device, source, control)
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        lock::assert_none_held("unmapping");
        let start = Instant::now();
        let pinned = self.regions.lock().remove(&region.base);
        let mut pinned = pinned.ok_or("it was never pinned")?;
        let unpinned = match pinned.mapping {
            Some(_) => self.unregister(region, &mut pinned),
            None => self.driver.unpin(region),
        };
        if let Err(why) = unpinned {
            // A device may still write to it: it stays mapped, and may be tried again.
            self.regions.lock().insert(region.base, pinned);
            return Err(why);
        }
        if let Some(mapping) = pinned.mapping {
            self.maker.unmap(mapping);
            self.driver.gone(start.elapsed());
        }
        Ok(pinned.source)
    }

    fn unpin_rests(&self) {
        lock::assert_none_held("unregistering");
        let rests = std::mem::take(&mut *self.rests.lock());
        for (mapping, rest) in rests {
            match self.driver.unregister(rest) {
                Ok(()) => self.maker.unmap(mapping),
                Err(_) => self.rests.lock().push((mapping, rest)),
            }
        }
    }

    fn enter_child(&self) {
        if !self.maker.hides() {
            return;
        }
        // A thread of the parent hardly ever holds it, which is not worth a handler at each fork: then
        // addresses are not reserved in this child.
        let regions = self.regions.if_free();
        let held = regions.iter().flat_map(|it| it.values());
        for mapping in held.filter_map(|it| it.mapping.as_ref()) {
            mapping.keep_free_in_child();
        }
    }

    fn hides(&self) -> bool {
        self.maker.hides() && self.regions.lock().values().any(|it| it.mapping.is_some())
    }

    fn placements(&self, regions: &[Region]) -> Vec<Placement> {
        lock::assert_none_held("reading smaps");
        let known = |region: &Region| {
            let pinned = self.regions.lock();
            let pinned = pinned.get(&region.base);
            match pinned {
                Some(it) if it.mapping.is_some() => it.placement,
                _ => Some(Placement::CUDA),
            }
        };
        let mut placements: Vec<Option<Placement>> = regions.iter().map(known).collect();
        let is_new = |at: &usize| placements[*at].is_none();
        let new: Vec<usize> = (0..regions.len()).filter(is_new).collect();
        if !new.is_empty() {
            let regions: Vec<Region> = new.iter().map(|at| regions[*at]).collect();
            for ((at, region), placement) in new.into_iter().zip(&regions).zip(look(&regions)) {
                placements[at] = Some(placement);
                if let Some(pinned) = self.regions.lock().get_mut(&region.base) {
                    pinned.placement = Some(placement);
                }
            }
        }
        let placements = placements.into_iter();
        placements.map(|it| it.unwrap_or(Placement::CUDA)).collect()
    }
}

#[cfg(test)]
mod leads;
#[cfg(test)]
mod stops;
#[cfg(test)]
pub(super) mod tests;
