//! What this process takes of the machine's memory, as the machine and other processes are asked and
//! told: the budget, the room that is left, and what others are told of it.
//!
//! Knows neither how memory is pinned nor what for. Invariant: what others are told is what is pinned of
//! ordinary memory, and no less than a MiB while the first region is being pinned.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Source, Unpinned};
use crate::budget::claims::Claims;
use crate::budget::{Budget, Limits};
use crate::lock::{self, Lock};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Account {
    /// Where `/proc` and `/sys` are.
    root: PathBuf,
    claims: Claims,
    /// When there was last no room, and for how much.
    full: Lock<Option<(Instant, usize)>>,
}

/// Who asks again gets the same answer for so long: that reads files, and once memory is used up every
/// request may ask.
const MOMENT: Duration = Duration::from_secs(1);

impl Account {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            claims: Claims::default(),
            full: Lock::default(),
        }
    }

    /// The most that may be pinned of ordinary memory, of which so much is, or is being pinned.
    pub(super) fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget {
        lock::assert_none_held("reading limits");
        Budget::on(&self.root, max_mb, taken, &self.claims)
    }

    /// Whether a pin leaves enough to others.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        lock::assert_none_held("reading limits");
        let full = *self.full.lock();
        if full.is_some_and(|(since, least)| bytes >= least && since.elapsed() < MOMENT) {
            return false;
        }
        let has_room = Budget::leaves_enough(bytes, &Limits::read(&self.root));
        if !has_room {
            *self.full.lock() = Some((Instant::now(), bytes));
        }
        has_room
    }

    /// How much memory there is, apart from what may be locked of it.
    pub(super) fn free(&self) -> Option<usize> {
        lock::assert_none_held("reading limits");
        let limits = Limits {
            locked: None,
            ..Limits::read(&self.root)
        };
        let bytes = limits.least()?.bytes;
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Tells others of a region once there is one, and before that that something is being pinned: they
    /// leave this process its part then, and add up only what is gone from the machine.
    pub(super) fn told<T>(
        &self,
        bytes: usize,
        source: Source,
        pin: impl FnOnce() -> Result<T, Unpinned>,
    ) -> Result<T, Unpinned> {
        // What the system has set aside is of no use to others.
        if source == Source::SetAside {
            return pin();
        }
        self.claims.add(1);
        let pinned = pin();
        if pinned.is_ok() {
            self.claims.add(bytes);
        }
        self.claims.take_away(1);
        pinned
    }

    /// A region of so many bytes is no more.
    pub(super) fn gone(&self, bytes: usize, source: Source) {
        if source == Source::Ordinary {
            self.claims.take_away(bytes);
        }
        *self.full.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::machine::tests::made_up;
    use super::*;
    use crate::config::MIB;

    const MEMINFO: &str = "proc/meminfo";

    fn available(mib: usize) -> String {
        format!("MemAvailable: {} kB\n", mib * 1024)
    }

    #[test]
    fn no_room_is_no_room_for_a_second_or_until_something_goes() {
        let (machine, folder) = made_up(&[(MEMINFO, &available(100))]);
        let account = Account::new(machine.root);
        assert!(account.has_room(50 * MIB) && !account.has_room(60 * MIB));
        fs::write(folder.path().join(MEMINFO), available(200)).unwrap();
        assert!(account.has_room(59 * MIB), "less is another question");
        assert!(!account.has_room(60 * MIB));
        account.gone(MIB, Source::Ordinary);
        assert!(account.has_room(60 * MIB));
        fs::write(folder.path().join(MEMINFO), available(10)).unwrap();
        assert!(!account.has_room(60 * MIB));
        fs::write(folder.path().join(MEMINFO), available(200)).unwrap();
        account.full.lock().as_mut().unwrap().0 -= MOMENT;
        assert!(account.has_room(60 * MIB));
    }

    #[test]
    fn others_are_told_of_what_is_pinned_and_of_nothing_else() {
        let account = Account::new("/".into());
        let others = || Claims::default().of_others("/".as_ref());
        // Of a length that no other test tells of.
        let told = || others().iter().any(|it| it.bytes == 333 << 20);
        let refused = account.told(333 * MIB, Source::Ordinary, || {
            let own = account.claims.pinned();
            assert!(!told() && own == 1, "{own} before there is any");
            Err::<(), _>(Unpinned::Stopped)
        });
        assert!(refused.is_err() && account.claims.pinned() == 0);
        account
            .told(333 * MIB, Source::SetAside, || Ok(()))
            .unwrap();
        account.gone(333 * MIB, Source::SetAside);
        assert!(!told());
        account
            .told(333 * MIB, Source::Ordinary, || Ok(()))
            .unwrap();
        assert!(told());
        account.gone(333 * MIB, Source::Ordinary);
        assert!(!told());
    }
}
