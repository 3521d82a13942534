//! The chain of backings: memory of our own, registered with CUDA, and else what CUDA allocates.
//!
//! Decides with the first region, remembers how each was made, and gives it back the same way.
//! Knows CUDA only through [`Driver`]. Invariants: a region that could not be registered is
//! unmapped at once, and one that could not be unregistered never; nothing is mapped, registered or
//! read from the kernel under a lock (I5).

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::Region;

use super::machine::Machine;
use super::pages::Mapping;
use super::placement::{Placement, read_smaps};
use super::region::{Maker, Unmade, unmap};
use super::said::Said;
use super::{Backing, Device, Source, numa, pieces};
use crate::config::memory::Way;
use crate::config::{Config, MIB};
use crate::lock::{self, Lock};
use crate::log::{self, Bytes};

/// What CUDA, and the allocator around it, do for the chain. Never called under a lock (I5); errors
/// are for people, and the driver remembers none.
pub trait Driver: Send + Sync + 'static {
    /// As [`Backing::available`].
    fn available(&self) -> bool;
    /// As [`Backing::device`].
    fn device(&self) -> Device;
    /// As [`Backing::reap`].
    fn reap(&self);
    /// Has the driver ready, so that a process that ends meanwhile lets this pin end before it.
    fn initialise(&self, device: Device) -> Result<(), String>;
    /// The address of the device on its bus, for instance `0000:1B:00.0`.
    fn pci_address(&self, device: Device) -> Option<String>;

    /// Memory as PyTorch's own settings ask.
    fn pin(&self, bytes: usize, device: Device) -> Result<usize, String>;
    /// Gives back what `pin` returned.
    fn unpin(&self, region: Region) -> Result<(), String>;

    /// Registers memory that is mapped.
    fn register(&self, piece: Region, device: Device) -> Result<(), String>;
    /// Undoes `register`.
    fn unregister(&self, piece: Region) -> Result<(), String>;

    /// A region was mapped and registered, and that took so long.
    fn pinned(&self, region: Region, taken: Duration);
    /// Such a region is about to be unregistered and unmapped.
    fn goes(&self, region: Region);
    /// It was, and that took so long.
    fn gone(&self, taken: Duration);
}

/// A region that is pinned.
#[derive(Debug)]
struct Pinned {
    /// Nothing where CUDA allocated it.
    mapping: Option<Mapping>,
    /// How much of it one registration covers.
    piece: usize,
    source: Source,
    placement: Option<Placement>,
}

/// Why memory of our own does not serve a region.
#[derive(Debug)]
enum Refusal {
    /// There is no memory, whoever asks for it.
    Short(String),
    /// This region cannot be made here: others may be.
    NotThis(String),
    /// CUDA does not register it, nor others, unless it does not allocate either.
    NotRegistered(String),
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Chain<D> {
    driver: D,
    way: Way,
    chunk: usize,
    maker: Maker,
    regions: Lock<HashMap<usize, Pinned>>,
    /// CUDA pinned what could not be registered: it has every region from then on.
    fallen: AtomicBool,
    said: Said,
}

impl<D: Driver> Chain<D> {
    /// The chain that `config` asks for, on this machine.
    pub fn new(config: &Config, driver: D) -> Self {
        Self::on(Machine::here(), config, driver)
    }

    fn on(machine: Machine, config: &Config, driver: D) -> Self {
        let ahead = config
            .block_bytes()
            .saturating_mul(config.block_count.value);
        let memory = &config.memory;
        Self {
            driver,
            way: memory.backing.value,
            chunk: memory.register_chunk_mb.value * MIB,
            maker: Maker::new(memory.clone(), ahead, machine),
            regions: Lock::default(),
            fallen: AtomicBool::new(false),
            said: Said::default(),
        }
    }

    /// Whether regions are made here.
    fn maps(&self) -> bool {
        self.way != Way::Cuda && !self.fallen.load(Ordering::Relaxed)
    }

    fn pin_pages(&self, bytes: usize, device: Device, source: Source) -> Result<usize, Refusal> {
        let piece = pieces::length(bytes, self.chunk).map_err(Refusal::NotThis)?;
        self.driver
            .initialise(device)
            .map_err(Refusal::NotRegistered)?;
        let start = Instant::now();
        let mapping = self
            .maker
            .make(bytes, source, || self.driver.pci_address(device))
            .map_err(|why| match why {
                Unmade::Short(why) => Refusal::Short(why),
                Unmade::Failed(why) => {
                    Refusal::NotThis(format!("could not map {}: {why}", Bytes(bytes as u64)))
                }
            })?;
        let base = mapping.base();
        let region = Region { base, bytes };
        let made = start.elapsed();
        if let Err(failed) = pieces::register(&self.driver, region, piece, device) {
            if failed.in_part {
                // A device may still write to it: a mapping that is dropped stays for good.
                log::warn(|| format!("{} of memory stay registered", Bytes(bytes as u64)));
            } else {
                unmap(mapping);
            }
            return Err(Refusal::NotRegistered(failed.why));
        }
        self.driver.pinned(region, start.elapsed());
        self.said.chosen(|| {
            "blocks are mapped here and registered with CUDA (BUDDY_BACKING=pages)".to_owned()
        });
        log::debug(|| {
            let (size, threads) = (Bytes(bytes as u64), self.maker.threads());
            format!("{size} mapped and touched in {made:.1?} (threads: {threads}), then registered")
        });
        self.remember(base, Some(mapping), piece, source);
        Ok(base)
    }

    fn remember(&self, base: usize, mapping: Option<Mapping>, piece: usize, source: Source) {
        let pinned = Pinned {
            mapping,
            piece,
            source,
            placement: None,
        };
        self.regions.lock().insert(base, pinned);
    }

    fn unpin_pages(&self, region: Region, mapping: Mapping, piece: usize) -> Result<(), String> {
        let start = Instant::now();
        self.driver.goes(region);
        // Where that fails a device may still write to it: it stays mapped for good, as a mapping
        // that is dropped does.
        pieces::unregister(&self.driver, region, piece)?;
        unmap(mapping);
        self.driver.gone(start.elapsed());
        Ok(())
    }
}

impl<D: Driver> Backing for Chain<D> {
    fn available(&self) -> bool {
        self.driver.available()
    }

    fn device(&self) -> Device {
        self.driver.device()
    }

    fn reap(&self) {
        self.driver.reap();
    }

    fn source(&self, bytes: usize) -> Source {
        if self.maps() {
            self.maker.source(bytes)
        } else {
            Source::Ordinary
        }
    }

    fn set_aside(&self, bytes: usize) -> usize {
        if self.maps() {
            self.maker.set_aside(bytes)
        } else {
            0
        }
    }

    fn pin(&self, bytes: usize, device: Device, source: Source) -> Result<usize, String> {
        lock::assert_none_held("mapping");
        let mut refusal = None;
        if self.maps() {
            let pinned = self.pin_pages(bytes, device, source);
            if source == Source::SetAside && pinned.is_err() {
                self.maker.nothing_is_set_aside();
            }
            match pinned {
                Ok(base) => return Ok(base),
                // CUDA would take what is not there from others.
                Err(Refusal::Short(why)) => return Err(why),
                Err(why) => refusal = Some(why),
            }
        }
        if source == Source::SetAside {
            return Err("CUDA does not allocate from what is set aside".to_owned());
        }
        let base = self.driver.pin(bytes, device)?;
        self.remember(base, None, bytes, source);
        match refusal {
            None | Some(Refusal::Short(_)) => {}
            Some(Refusal::NotThis(why)) => self.said.not_this(|| why + "; CUDA allocates it"),
            Some(Refusal::NotRegistered(why)) => {
                self.fallen.store(true, Ordering::Relaxed);
                self.said.fallen(|| {
                    format!(
                        "could not register {} of memory with CUDA: {why}. CUDA allocates blocks \
                         from now on, as with BUDDY_BACKING=cuda",
                        Bytes(bytes as u64)
                    )
                });
            }
        }
        Ok(base)
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        lock::assert_none_held("unmapping");
        let pinned = self.regions.lock().remove(&region.base);
        let pinned = pinned.ok_or("it was never pinned")?;
        match pinned.mapping {
            Some(mapping) => self.unpin_pages(region, mapping, pinned.piece)?,
            None => self.driver.unpin(region)?,
        }
        Ok(pinned.source)
    }

    fn forked(&self) {
        // The one chance in a million that a thread of the parent's held it is not worth a handler
        // at each fork: then addresses stay free, as after any fork.
        let regions = self.regions.if_free();
        for pinned in regions.iter().flat_map(|it| it.values()) {
            if let Some(mapping) = &pinned.mapping {
                mapping.keep_free_in_child();
            }
        }
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
        let new: Vec<usize> = (0..regions.len())
            .filter(|at| placements[*at].is_none())
            .collect();
        if !new.is_empty() {
            let ranges: Vec<_> = new
                .iter()
                .map(|at| regions[*at].base..regions[*at].base + regions[*at].bytes)
                .collect();
            let found = File::open("/proc/self/smaps")
                .map(|file| read_smaps(BufReader::new(file), &ranges))
                .unwrap_or_default();
            for (n, at) in new.into_iter().enumerate() {
                let Region { base, bytes } = regions[at];
                let pages = found.get(n).and_then(|it| it.pages(bytes));
                let lies = numa::where_it_lies(base, bytes);
                let placement = Placement {
                    backing: "pages",
                    page_bytes: pages.map(|(page, _)| page),
                    huge_bytes: pages.map(|(_, huge)| huge),
                    numa_node: lies.filter(|it| it.percent == 100).map(|it| it.node),
                };
                placements[at] = Some(placement);
                if let Some(pinned) = self.regions.lock().get_mut(&base) {
                    pinned.placement = Some(placement);
                }
            }
        }
        placements
            .into_iter()
            .map(|it| it.unwrap_or(Placement::CUDA))
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
