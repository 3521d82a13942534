//! Unpins idle memory: for the user, and for PyTorch's own pins.

use super::Handle;
use crate::backing::Memory;
use crate::log::{self, Bytes};

impl<M: Memory> Handle<M> {
    /// Unpins every wholly idle segment and dedicated region. Stops pins ahead of requests, without waiting
    /// for them.
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
            drop(heard);
            if bytes > 0 {
                log::info(|| format!("cleared: {} unpinned", Bytes(bytes as u64)));
            }
            Some(())
        });
    }

    /// PyTorch itself could not pin `bytes`: unpins idle memory, if that and what the machine has left are
    /// enough, and pins no more ahead. Returns whether anything was unpinned.
    pub fn give_way(&self, bytes: usize) -> bool {
        self.cell
            .guarded(|| {
                drop(self.cell.provisioner()?);
                self.completions.reap();
                let planned = self.idle_plan_bytes();
                let left = self.pinner.free().map(|it| it.saturating_add(planned));
                let idle = self.cell.provisioner()?.give_way(bytes, left);
                let is_enough = left.is_none_or(|left| left >= bytes) || !idle.is_empty();
                let planned = if is_enough {
                    self.take_idle_plan()
                } else {
                    Vec::new()
                };
                let unpinned = self.unpin_all(idle) + self.unpin_regions(planned);
                if unpinned > 0 {
                    self.notices
                        .stopped("PyTorch could not pin memory of its own");
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
