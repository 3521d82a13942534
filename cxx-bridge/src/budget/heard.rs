//! What other processes are heard to claim: read beside the program, from when it is first asked for.
//!
//! The kernel lists locks only once each processor has passed through it, so that nobody takes or gives up a lock
//! meanwhile (RCU). That is 8 to 30 ms, and a pin of 16 MiB takes 2. So a list is used for a second, and until this process has
//! twice as much pinned as then, since processes that begin together claim nothing yet when each of them reads its first list. An
//! older one is used on while a thread reads another; before the first, nobody is known. Knows no policy. Invariants: only who
//! asks to wait waits, and for the first list alone; nothing is read under a lock (I5).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::claims::{Claim, Claims};
use crate::lock::Lock;
use crate::sync;

/// A list is used for so long.
const GOOD: Duration = Duration::from_secs(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Heard(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Where `/proc` is.
    root: PathBuf,
    own: Claims,
    latest: Lock<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    /// With the time when it was read.
    claims: Option<(Instant, Vec<Claim>)>,
    /// What this process had pinned then.
    own: u64,
    /// A thread reads another.
    reading: bool,
}

impl Heard {
    pub(super) fn below(root: PathBuf) -> Self {
        Self(Arc::new(Shared { root, own: Claims::default(), latest: Lock::default() }))
    }

    /// What this process claims.
    pub(super) fn own(&self) -> &Claims {
        &self.0.own
    }

    /// Waits until a list was read, if none was yet.
    pub(super) fn first(&self) {
        if self.0.latest.lock().claims.is_none() {
            self.0.read();
        }
    }

    /// The claims of others; none before the first list was read.
    pub(super) fn others(&self) -> Option<Vec<Claim>> {
        let mut latest = self.0.latest.lock();
        let is_good = |since: &Instant| since.elapsed() < GOOD && self.own().pinned() <= latest.own.saturating_mul(2);
        let is_old = !latest.claims.as_ref().is_some_and(|it| is_good(&it.0));
        let claims = latest.claims.as_ref().map(|it| it.1.clone());
        let begins = is_old && !latest.reading;
        latest.reading |= begins;
        drop(latest);
        if begins {
            let shared = Arc::clone(&self.0);
            if sync::start("pinbuddy-claims", move || drop(shared.read())).is_err() {
                return Some(self.0.read());
            }
        }
        claims
    }
}

impl Shared {
    fn read(&self) -> Vec<Claim> {
        let own = self.own.pinned();
        let claims = self.own.of_others(&self.root);
        *self.latest.lock() = Latest { claims: Some((Instant::now(), claims.clone())), own, reading: false };
        claims
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::claims;
    use super::super::tests::machine;
    use super::*;
    use crate::handle::tests::until;

    fn hold(root: &Path, mib: i64) {
        let (first, last) = (claims::HELD, claims::HELD + mib - 1);
        let line = format!("1: POSIX  ADVISORY  READ 7 00:01:7 {first} {last}\n");
        fs::write(root.join("proc/locks"), line).unwrap();
    }

    #[test]
    fn who_has_doubled_what_it_has_hears_of_those_that_began_together_with_it() {
        let root = machine(&[("proc/locks", "")]);
        let heard = Heard::below(root.path().into());
        heard.first();
        let mib = || heard.others().unwrap().first().map_or(0, |it| it.bytes >> 20);
        assert_eq!(mib(), 0);
        let mut known = 0;
        for (own, others, is_heard) in [(8, 3, true), (8, 4, false), (1, 5, true), (16, 6, false), (2, 7, true)] {
            heard.own().add(own << 20);
            hold(root.path(), others);
            assert_eq!(mib(), known, "{own} MiB more: nobody waits");
            if is_heard {
                until("another list", || mib() == others as u64);
                known = others as u64;
            }
            assert!(!heard.0.latest.lock().reading);
        }
    }

    #[test]
    fn what_is_old_is_used_once_more_while_another_list_is_read() {
        let root = machine(&[("proc/locks", "")]);
        let heard = Heard::below(root.path().into());
        let mib = || heard.others().unwrap()[0].bytes >> 20;
        hold(root.path(), 3);
        assert!(heard.others().is_none(), "who does not ask to wait does not");
        until("the first list", || heard.others().is_some());
        assert_eq!(mib(), 3);
        hold(root.path(), 5);
        assert_eq!(mib(), 3, "it is good for a second");
        heard.0.latest.lock().claims.as_mut().unwrap().0 -= GOOD;
        assert_eq!(mib(), 3, "it is used while a thread reads");
        until("another list", || mib() == 5);
        assert!(!heard.0.latest.lock().reading);
    }
}
