//! Carries out grow permits: unpins and pins, always outside the provisioner's lock.
//!
//! Knows neither why memory is pinned nor who waits for it. Invariant: each permit is ended once, after a
//! panic too.

use pinbuddy_core::{AdoptError, IdleSegment, NewSegment, Permit, PermitId, Refusal, Region, Took};

use super::cell::EngineCell;
use super::pinner::Refused;
use super::{Grant, Handle, grant};
use crate::backing::{Control, Device, Memory};
use crate::log::{self, Bytes};

/// A permit that is being carried out. Dropping it ends it.
#[derive(Debug)]
struct UnderWay<'a> {
    cell: &'a EngineCell,
    id: PermitId,
    /// Why nothing was pinned; `None` if the permit was ended already.
    end: Option<Refusal>,
}

impl UnderWay<'_> {
    fn refused(mut self, why: Refusal) {
        self.end = Some(why);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // Also once the engine is retired: the end of the process waits for pins.
        if let Some(why) = self.end
            && let Some(mut provisioner) = self.cell.even_if_retired()
        {
            provisioner.refused(self.id, why);
        }
        self.cell.has_changed();
    }
}

impl<M: Memory> Handle<M> {
    /// Unpins and pins as `permit` says, as long as `control` lets it. Returns the block of the request
    /// that it was given to.
    pub(super) fn carry_out(
        &self,
        permit: Permit,
        device: Device,
        control: &dyn Control,
    ) -> Result<Option<Grant>, Refused> {
        let under_way = UnderWay { cell: &self.cell, id: permit.id, end: Some(Refusal::Stopped) };
        let unpinned = self.unpin_all(permit.unpin);
        if unpinned > 0 || permit.renews {
            log::info(|| {
                let (gone, bytes) = (Bytes(unpinned as u64), Bytes(permit.bytes as u64));
                let why = if permit.renews { "sizes differ from step to step: " } else { "" };
                format!("{why}{gone} unpinned, {bytes} to pin instead")
            });
        }
        let device = self.device_at(permit.home).unwrap_or(device);
        match self.pinner.pin(permit.bytes, device, control) {
            Ok((region, took)) => self.adopt(under_way, region, took),
            Err(refused) => {
                log::debug(|| {
                    let (size, why) = (Bytes(permit.bytes as u64), refused.reason());
                    format!("could not pin {size}: {why}")
                });
                under_way.refused(refused.why);
                Err(refused)
            }
        }
    }

    fn adopt(&self, mut under_way: UnderWay<'_>, region: Region, took: Took) -> Result<Option<Grant>, Refused> {
        let mut adopted = || -> Option<Result<Option<Grant>, AdoptError>> {
            // The segment's bookkeeping is made here, outside the lock.
            let segment = match NewSegment::new(region) {
                Ok(segment) if self.is_planned => segment.mixing().touched(),
                Ok(segment) => segment,
                Err(why) => return Some(Err(why)),
            };
            let mut provisioner = self.cell.provisioner()?;
            under_way.end = None;
            let block = provisioner.pinned(under_way.id, segment, took);
            Some(block.map(|block| block.map(|block| grant(&provisioner, block))))
        };
        match adopted() {
            Some(Ok(grant)) => return Ok(grant),
            Some(Err(why)) => self.cell.retire(&why.to_string()),
            None => {}
        }
        self.unpin(region);
        Err(Refusal::Stopped.into())
    }

    /// Unpins these, outside the lock; returns how many bytes.
    pub(super) fn unpin_all(&self, idle: Vec<IdleSegment>) -> usize {
        self.unpin_regions(idle.iter().map(IdleSegment::region).collect())
    }

    /// The same for regions that the engine does not have.
    pub(super) fn unpin_regions(&self, regions: Vec<Region>) -> usize {
        let bytes = regions.iter().map(|it| it.bytes).sum();
        for region in regions {
            self.unpin(region);
        }
        bytes
    }

    /// Unpins what could not be unpinned before, as far as it can be now.
    pub(super) fn unpin_refused(&self) {
        self.pinner.memory.unpin_rests();
        let refused = std::mem::take(&mut *self.refused.lock());
        for region in refused {
            self.unpin(region);
        }
    }

    fn unpin(&self, region: Region) {
        let (bytes, base) = (Bytes(region.bytes as u64), region.base);
        match self.pinner.unpin(region) {
            Ok(()) => {}
            // At the end of the process the driver may be gone.
            Err(_) if self.cell.is_closed() => {}
            Err(why) => {
                log::warn(|| format!("could not unpin {bytes} at {base:#x}: {why}"));
                self.refused.lock().push(region);
            }
        }
    }
}
