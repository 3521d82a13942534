//! Gives memory back that nobody uses: for the user, and for PyTorch's own pins.

use std::sync::atomic::Ordering;

use super::Handle;
use crate::backing::Backing;
use crate::log::{self, Bytes};

impl<B: Backing> Handle<B> {
    /// Unpins every wholly idle segment and cached region. A pin ahead of requests that is under way
    /// ends, and nobody waits for that.
    pub fn empty_cache(&self) {
        self.guarded(|| {
            let idle = self.provisioner()?.clear();
            self.changed.notify_all();
            if self.used.load(Ordering::Relaxed) {
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
        self.guarded(|| {
            drop(self.provisioner()?);
            self.backing.reap();
            let left = self.backing.free();
            let idle = self.provisioner()?.give_way(bytes, left);
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
