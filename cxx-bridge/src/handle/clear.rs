//! Gives memory back that nobody uses: for the user, and for PyTorch's own pins.

use super::Handle;
use crate::backing::Memory;
use crate::log::{self, Bytes};

impl<M: Memory> Handle<M> {
    /// Unpins every wholly idle segment and cached region. A pin ahead of requests that is under way
    /// ends, and nobody waits for that.
    pub fn empty_cache(&self) {
        self.cell.guarded(|| {
            let idle = self.cell.provisioner()?.clear();
            self.cell.has_changed();
            if self.pinner.was_used() {
                self.notices.may_go_on();
            }
            let bytes = self.unpin_all(idle);
            if bytes > 0 {
                log::info(|| format!("cleared: {} given back", Bytes(bytes as u64)));
            }
            Some(())
        });
    }

    /// PyTorch could not pin `bytes` of its own: gives back what is idle, where that and what the
    /// machine leaves are enough, and pins no more ahead. Whether that gave anything back.
    pub fn give_way(&self, bytes: usize) -> bool {
        self.cell
            .guarded(|| {
                drop(self.cell.provisioner()?);
                self.completions.reap();
                let left = self.pinner.free();
                let idle = self.cell.provisioner()?.give_way(bytes, left);
                let given = self.unpin_all(idle);
                if given > 0 {
                    self.notices
                        .stopped("PyTorch could not pin memory of its own");
                    log::info(|| {
                        let given = Bytes(given as u64);
                        format!("gave {given} back for PyTorch's own pin")
                    });
                }
                (given > 0).then_some(())
            })
            .is_some()
    }
}
