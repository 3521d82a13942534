//! Giving idle regions back for one in their stead, where sizes differ from round to round.
//!
//! The engine says when, which and how much; here it is done, outside its lock: first unpinned and
//! then pinned, so that no more is pinned meanwhile. Requests that find no room wait for the region
//! rather than pin some of their own. Where it cannot be had, each request gets its own as before.

use pinbuddy_core::{Engine, IdleSegment};

use super::Handle;
use super::room::Room;
use crate::backing::Backing;
use crate::log::{self, Bytes};
use crate::warmup::{Task, Ticket};

/// What the engine has taken out of use, and the region that it wants instead.
#[derive(Debug)]
pub(super) struct Renewal {
    outworn: Vec<IdleSegment>,
    /// 0 for none.
    region: usize,
}

impl Renewal {
    /// What `Decision::Renew` asks for: under the lock under which the engine said so.
    pub(super) fn begin(engine: &mut Engine, region: usize) -> Self {
        Self {
            outworn: engine.take_outworn(),
            region,
        }
    }
}

impl<B: Backing> Handle<B> {
    /// Renews what is pinned, for a request of `bytes` bytes.
    pub(super) fn renew(&'static self, bytes: usize, renewal: Renewal) -> Room {
        // A warm-up may have the turn: then others do not wait for this.
        let ticket = self.warm_up.begin(Task::Growth).filter(Ticket::next);
        let outworn = self.unpin_all(renewal.outworn);
        let region = renewal.region;
        log::info(|| {
            let (outworn, region) = (Bytes(outworn as u64), Bytes(region as u64));
            format!("sizes differ from step to step: {outworn} given back, {region} to pin instead")
        });
        if region == 0 {
            return Room::AskAgain;
        }
        if self.warm_up.is_closed() {
            return Room::Closed;
        }
        match self.pin_home(bytes, region, self.backing.device()) {
            Ok(grant) => {
                if let Some(ticket) = ticket {
                    ticket.brought();
                }
                Room::Served(grant)
            }
            Err(refusal) => {
                log::info(|| format!("could not pin {}: {refusal}", Bytes(region as u64)));
                Room::AskAgain
            }
        }
    }

    /// Unpins what the engine took out of use, where nothing is pinned instead.
    pub(super) fn abandon(&self, renewal: Renewal) {
        self.unpin_all(renewal.outworn);
    }

    /// How many bytes that were.
    fn unpin_all(&self, segments: Vec<IdleSegment>) -> usize {
        let mut bytes = 0;
        for segment in segments {
            let region = segment.region();
            bytes += region.bytes;
            self.unpin(region);
        }
        bytes
    }
}
