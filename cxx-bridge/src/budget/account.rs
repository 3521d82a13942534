//! What the machine and other processes leave to this one.
//!
//! Knows neither how memory is pinned nor what for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::heard::Heard;
use super::{Budget, Capacity, Standing};
use crate::lock::{self, Lock};
use pinbuddy_machine::{Files, Limits, LockLimit};

/// See the module's documentation.
#[derive(Debug)]
pub struct Account {
    /// Where `/proc` and `/sys` are.
    root: PathBuf,
    heard: Heard,
    /// When a pin last had no room, and its length.
    full: Lock<Option<(Instant, usize)>>,
}

/// A refusal is repeated for so long without reading files: once memory is used up, every request may
/// ask.
const MOMENT: Duration = Duration::from_secs(1);

impl Account {
    /// The account of the machine below `root`.
    pub fn new(root: PathBuf) -> Self {
        Self {
            heard: Heard::below(root.clone()),
            root,
            full: Lock::default(),
        }
    }

    fn limits(&self) -> Limits {
        Limits::read(&Files::below(&self.root))
    }
}

impl Capacity for Account {
    fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget {
        lock::assert_none_held("reading limits");
        let own = (self.heard.own().pinned(), taken as u64);
        Budget::on(&self.root, max_mb, own, || self.heard.others())
    }

    fn has_room(&self, bytes: usize) -> bool {
        lock::assert_none_held("reading limits");
        let full = *self.full.lock();
        if full.is_some_and(|(since, least)| bytes >= least && since.elapsed() < MOMENT) {
            return false;
        }
        let has_room = Budget::leaves_enough(bytes, &self.limits());
        if !has_room {
            *self.full.lock() = Some((Instant::now(), bytes));
        }
        has_room
    }

    fn free(&self) -> Option<usize> {
        lock::assert_none_held("reading limits");
        // Without the lock limit.
        let limits = Limits {
            lock: LockLimit::default(),
            ..self.limits()
        };
        let bytes = limits.least()?.bytes;
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn standing(&self) -> Standing {
        lock::assert_none_held("reading limits");
        Standing {
            limits: self.limits().all().collect(),
            others: self.heard.others().iter().map(|it| it.bytes).sum(),
        }
    }

    fn claim(&self, bytes: usize) {
        self.heard.own().add(bytes);
    }

    fn unclaim(&self, bytes: usize) {
        self.heard.own().take_away(bytes);
        *self.full.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::claims::Claims;
    use super::*;
    use crate::config::MIB;

    #[test]
    fn no_room_is_no_room_for_a_second_or_until_something_goes() {
        let root = tempfile::tempdir().unwrap();
        let leave = |mib: usize| {
            let text = format!("MemAvailable: {} kB\n", mib * 1024);
            fs::write(root.path().join("proc/meminfo"), text).unwrap();
        };
        fs::create_dir(root.path().join("proc")).unwrap();
        let account = Account::new(root.path().into());
        leave(100);
        assert!(account.has_room(50 * MIB) && !account.has_room(60 * MIB));
        leave(200);
        assert!(account.has_room(59 * MIB), "less is another question");
        assert!(!account.has_room(60 * MIB));
        account.claim(MIB);
        account.unclaim(MIB);
        assert!(account.has_room(60 * MIB));
        leave(10);
        assert!(!account.has_room(60 * MIB));
        leave(200);
        account.full.lock().as_mut().unwrap().0 -= MOMENT;
        assert!(account.has_room(60 * MIB));
    }

    #[test]
    fn other_processes_are_told_of_claims() {
        let account = Account::new("/".into());
        let others = || Claims::default().of_others("/".as_ref());
        // A length that no other test claims.
        let told = || others().iter().any(|it| it.bytes == 333 << 20);
        account.claim(333 * MIB);
        assert!(told());
        account.unclaim(333 * MIB);
        assert!(!told());
    }
}
