//! Carries out orders: unpins and pins, always outside the provisioner's lock.
//!
//! Every pin is taken out of the budget first and put back when it ends. Knows neither why memory
//! is pinned nor who waits for it. Invariant: each order is reported back once, also where its pin
//! panics.

use std::time::Instant;

use pinbuddy_core::{AdoptError, IdleSegment, NewSegment, Order, Refusal, Region, Ticket, Took};

use super::{Grant, Handle, grant};
use crate::backing::{Backing, Control, Device, Source, Unpinned};
use crate::lock;
use crate::log::{self, Bytes};

/// Why nothing was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: Refusal,
    /// The driver's words, where it was the driver.
    pub(super) words: String,
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        let words = String::new();
        Self { why, words }
    }
}

impl From<Unpinned> for Refused {
    fn from(unpinned: Unpinned) -> Self {
        match unpinned {
            Unpinned::Stopped => Refusal::Stopped.into(),
            Unpinned::Refused(words) => Self {
                why: Refusal::Driver,
                words,
            },
        }
    }
}

/// An order that is being carried out; one that is dropped came to nothing.
#[derive(Debug)]
struct UnderWay<'a, B: Backing> {
    handle: &'a Handle<B>,
    ticket: Ticket,
    /// What came of it; nothing where somebody has said that already.
    end: Option<Refusal>,
}

impl<B: Backing> UnderWay<'_, B> {
    fn refused(mut self, why: Refusal) {
        self.end = Some(why);
    }
}

impl<B: Backing> Drop for UnderWay<'_, B> {
    fn drop(&mut self) {
        // Also once the engine is retired: the end of the process waits for pins.
        if let Some(why) = self.end
            && let Some(mut provisioner) = self.handle.even_if_retired()
        {
            provisioner.refused(self.ticket, why);
        }
        self.handle.changed.notify_all();
    }
}

impl<B: Backing> Handle<B> {
    /// Unpins and pins what `order` says, as long as `control` lets it; the block of the request that
    /// it was made for.
    pub(super) fn carry_out(
        &self,
        order: Order,
        device: Device,
        control: &dyn Control,
    ) -> Result<Option<Grant>, Refused> {
        let under_way = UnderWay {
            handle: self,
            ticket: order.ticket,
            end: Some(Refusal::Stopped),
        };
        let unpinned = self.unpin_all(order.unpin);
        if unpinned > 0 || order.renews {
            log::info(|| {
                let (gone, bytes) = (Bytes(unpinned as u64), Bytes(order.bytes as u64));
                let why = if order.renews {
                    "sizes differ from step to step: "
                } else {
                    ""
                };
                format!("{why}{gone} given back, {bytes} to pin instead")
            });
        }
        match self.pin(order.bytes, device, control) {
            Ok((region, took)) => self.adopt(under_way, region, took),
            Err(refused) => {
                log::debug(|| {
                    let (size, why) = (Bytes(order.bytes as u64), reason(&refused));
                    format!("could not pin {size}: {why}")
                });
                under_way.refused(refused.why);
                Err(refused)
            }
        }
    }

    fn pin(
        &self,
        bytes: usize,
        device: Device,
        control: &dyn Control,
    ) -> Result<(Region, Took), Refused> {
        lock::assert_none_held("pinning");
        let pin = |source| {
            let pinned = self.backing.pin(bytes, device, source, control)?;
            let took = Took {
                filling: pinned.filling,
                registering: pinned.registering,
            };
            let taken = took.filling + took.registering;
            log::debug(|| format!("pinned {} in {taken:.1?}", Bytes(bytes as u64)));
            let base = pinned.base;
            Ok((Region { base, bytes }, took))
        };
        if self.source(bytes) == Source::SetAside {
            match pin(Source::SetAside) {
                Err(Unpinned::Refused(_)) => {}
                pinned => return pinned.map_err(Refused::from),
            }
        }
        let purse = self.purse();
        // Before the machine is asked: that reads files, and a budget that is used up is met by
        // every request.
        if !purse.take(bytes, |taken| self.budget(taken)) {
            return Err(Refusal::Budget.into());
        }
        // A limit that the user chose is the user's affair, whatever else the machine holds.
        if !(self.has_chosen_limit() || self.backing.has_room(bytes)) {
            purse.put(bytes);
            return Err(Refusal::Machine.into());
        }
        pin(Source::Ordinary).map_err(|why| {
            purse.put(bytes);
            why.into()
        })
    }

    fn adopt(
        &self,
        mut under_way: UnderWay<'_, B>,
        region: Region,
        took: Took,
    ) -> Result<Option<Grant>, Refused> {
        let mut adopted = || -> Option<Result<Option<Grant>, AdoptError>> {
            // The segment's bookkeeping is made here, outside the lock.
            let segment = match NewSegment::new(region) {
                Ok(segment) => segment,
                Err(why) => return Some(Err(why)),
            };
            let mut provisioner = self.provisioner()?;
            under_way.end = None;
            let block = provisioner.pinned(under_way.ticket, segment, took);
            Some(block.map(|block| block.map(|block| grant(&provisioner, block))))
        };
        match adopted() {
            Some(Ok(grant)) => return Ok(grant),
            Some(Err(why)) => self.retire(&why.to_string()),
            None => {}
        }
        self.unpin(region);
        Err(Refusal::Stopped.into())
    }

    /// Unpins these, outside the lock; how many bytes that were.
    pub(super) fn unpin_all(&self, idle: Vec<IdleSegment>) -> usize {
        let mut bytes = 0;
        for segment in idle {
            let region = segment.region();
            bytes += region.bytes;
            self.unpin(region);
        }
        bytes
    }

    fn unpin(&self, region: Region) {
        lock::assert_none_held("unpinning");
        let start = Instant::now();
        let result = self.backing.unpin(region);
        let (bytes, base) = (Bytes(region.bytes as u64), region.base);
        match result {
            Ok(source) => {
                if source == Source::Ordinary {
                    self.purse().put(region.bytes);
                }
                log::debug(|| format!("unpinned {bytes} in {:.1?}", start.elapsed()));
            }
            // At the end of the process the driver may be gone.
            Err(_) if self.is_closed() => {}
            Err(why) => log::warn(|| format!("could not unpin {bytes} at {base:#x}: {why}")),
        }
    }
}

/// Why, for people.
pub(super) fn reason(refused: &Refused) -> &str {
    match refused.why {
        Refusal::Budget => "the budget is used up",
        Refusal::Machine => "it is more than half of what the machine has left",
        Refusal::Driver => &refused.words,
        Refusal::Stopped => "it was stopped",
    }
}
