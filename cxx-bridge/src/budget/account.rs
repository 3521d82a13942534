//! What the machine and other processes leave to this one.
//!
//! Knows neither how memory is pinned nor what for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
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
    /// Asks CUDA whether GPUs share the host's memory.
    asks_gpus: fn() -> bool,
    /// Its answer: [`UNKNOWN`] until there is one. No lock: a child of a fork would wait for it for ever.
    shared_with_gpus: AtomicU8,
    /// When a pin last had no room, and its length.
    full: Lock<Option<(Instant, usize)>>,
}

/// A refusal is repeated for so long without reading files: once memory is used up, every request may
/// ask.
const MOMENT: Duration = Duration::from_secs(1);

const UNKNOWN: u8 = 2;

impl Account {
    /// The account of the machine below `root`. `asks_gpus` says whether GPUs share its memory, and is called once: for the
    /// first budget, when CUDA is about to be used.
    pub fn new(root: PathBuf, asks_gpus: fn() -> bool) -> Self {
        Self {
            heard: Heard::below(root.clone()),
            root,
            asks_gpus,
            shared_with_gpus: AtomicU8::new(UNKNOWN),
            full: Lock::default(),
        }
    }

    fn limits(&self) -> Limits {
        Limits::read(&Files::below(&self.root))
    }

    fn shared_with_gpus(&self) -> bool {
        let known = self.shared_with_gpus.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known == u8::from(true);
        }
        let shared = (self.asks_gpus)();
        self.shared_with_gpus.store(u8::from(shared), Ordering::Relaxed);
        shared
    }
}

impl Capacity for Account {
    fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget {
        lock::assert_none_held("reading limits");
        let own = (self.heard.own().pinned(), taken as u64);
        let shared = || self.shared_with_gpus();
        Budget::on(&self.root, max_mb, own, shared, || self.heard.others())
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
        let limits = Limits { lock: LockLimit::default(), ..self.limits() };
        let bytes = limits.least()?.bytes;
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    fn standing(&self) -> Standing {
        self.hear();
        Standing {
            limits: self.limits().all().collect(),
            others: self.heard.others().iter().flatten().map(|it| it.bytes).sum(),
        }
    }

    fn hear(&self) {
        lock::assert_none_held("reading limits");
        self.heard.first();
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
    use super::super::tests::machine;
    use super::*;
    use crate::config::MIB;

    #[test]
    fn no_room_is_no_room_for_a_second_or_until_something_goes() {
        let root = machine(&[("proc/meminfo", "")]);
        let leave = |mib: usize| {
            let text = format!("MemAvailable: {} kB\n", mib * 1024);
            fs::write(root.path().join("proc/meminfo"), text).unwrap();
        };
        let account = Account::new(root.path().into(), || false);
        assert!(account.has_room(usize::MAX / 4), "no limit is known");
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
    fn gpus_are_asked_once_and_only_for_a_budget_that_nobody_chose() {
        static ASKED: AtomicU8 = AtomicU8::new(0);
        let text = "MemTotal: 8388608 kB\nMemAvailable: 8388608 kB\n";
        let root = machine(&[("proc/meminfo", text)]);
        let account = Account::new(root.path().into(), || {
            ASKED.fetch_add(1, Ordering::Relaxed);
            true
        });
        assert_eq!(account.budget(Some(7000), 0).bytes, 7000 * MIB);
        assert!(account.has_room(MIB));
        assert_eq!(ASKED.load(Ordering::Relaxed), 0);
        for _ in 0..2 {
            let budget = account.budget(None, 0);
            assert_eq!(budget.bytes, 2048 * MIB);
            assert_eq!(budget.why, "a quarter of the 8 GiB of MemAvailable, as the GPU uses that memory, too");
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn other_processes_are_told_of_claims() {
        let account = Account::new("/".into(), || false);
        let others = || Claims::default().of_others("/".as_ref());
        // A length that no other test claims.
        let told = || others().iter().any(|it| it.bytes == 333 << 20);
        account.claim(333 * MIB);
        assert!(told());
        account.unclaim(333 * MIB);
        assert!(!told());
    }
}
