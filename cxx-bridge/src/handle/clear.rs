//! Unpins idle memory: for the user, and for PyTorch's own pins.

use super::Handle;
use crate::backing::Memory;
use crate::log::{self, Bytes};

impl<M: Memory> Handle<M> {
    /// Unpins every wholly idle segment and dedicated region. Stops pins ahead of requests, without waiting
    /// for them; waits for what the worker is unpinning.
    pub fn empty_cache(&self) {
        self.cell.guarded(|| {
            let idle = self.cell.provisioner()?.clear();
            self.cell.has_changed();
            let planned = self.clear_plan();
            if self.pinner.was_used() {
                self.notices.may_go_on();
            }
            self.unpin_refused();
            let some = !idle.is_empty() || !planned.is_empty();
            let heard = some.then(|| self.waits_for_driver(false));
            let bytes = self.unpin_all(idle) + self.unpin_regions(planned);
            let bytes = bytes + self.wait_for_its_unpin();
            drop(heard);
            if bytes > 0 {
                log::info(|| format!("cleared: {} unpinned", Bytes(bytes as u64)));
            }
            Some(())
        });
    }

    /// PyTorch itself could not pin `bytes`: unpins idle memory, if that and what the machine has left are
    /// enough, and pins no more ahead. Returns whether anything was unpinned, by the worker too.
    pub fn give_way(&self, bytes: usize) -> bool {
        self.cell
            .guarded(|| {
                drop(self.cell.provisioner()?);
                self.completions.reap();
                let planned = self.idle_plan_bytes();
                let left = self.pinner.capacity.free().map(|it| it.saturating_add(planned));
                let (idle, unpinning) = {
                    let mut provisioner = self.cell.provisioner()?;
                    let idle = provisioner.give_way(bytes, left);
                    (idle, provisioner.unpinning())
                };
                let is_enough = left.is_none_or(|left| left.saturating_add(unpinning) >= bytes) || !idle.is_empty();
                let planned = if is_enough { self.take_idle_plan() } else { Vec::new() };
                let unpinned = self.unpin_all(idle) + self.unpin_regions(planned);
                let unpinned = unpinned + self.wait_for_its_unpin();
                if unpinned > 0 {
                    self.notices.stopped("PyTorch could not pin memory of its own");
                    log::info(|| {
                        let unpinned = Bytes(unpinned as u64);
                        format!("{unpinned} unpinned for PyTorch's own pin")
                    });
                }
                (unpinned > 0).then_some(())
            })
            .is_some()
    }
}
