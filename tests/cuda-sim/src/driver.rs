//! The driver's part in a pin: locking pages, at the pace and as truly as the settings say.
//!
//! Knows no region and counts nothing. By default pins of different threads overlap and take what
//! the kernel takes. With `PINBUDDY_SIM_PIN_MS_PER_GB` a pin holds one lock of the process for all
//! its time, as real drivers do, so that a small pin waits for a large one; unpins, events, copies
//! and everything else pass by it. A child of fork never waits for that lock: before it could, it
//! is refused (`error::answer`).

use std::io;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::config;
use crate::error::lock;
use crate::pages;

/// Held during each pin, where pins happen one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Do a pin of so many bytes when its turn comes, and take at least the time that it should take;
/// one that fails takes no longer than it does.
pub(crate) fn pin<T, E>(bytes: usize, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let Some(ms_per_gib) = config::get().pin_ms_per_gib else {
        return work();
    };
    let _turn = lock(&TURN);
    let start = Instant::now();
    let done = work()?;
    thread::sleep(least(bytes, ms_per_gib).saturating_sub(start.elapsed()));
    Ok(done)
}

/// What a pin takes at least.
fn least(bytes: usize, ms_per_gib: usize) -> Duration {
    let microseconds = (bytes as u128 * ms_per_gib as u128).saturating_mul(1000) >> 30;
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(u64::MAX))
}

/// Lock whole pages, touching all of them; or only see that they are mapped.
pub(crate) fn lock_pages(address: usize, bytes: usize) -> io::Result<()> {
    if config::get().lock_pages { pages::lock(address, bytes) } else { pages::check_mapped(address, bytes) }
}

/// Undo [`lock_pages`].
pub(crate) fn unlock_pages(address: usize, bytes: usize) {
    if config::get().lock_pages {
        pages::unlock(address, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_is_in_proportion() {
        assert_eq!(least(1 << 30, 500), Duration::from_millis(500));
        assert_eq!(least(64 << 20, 500), Duration::from_micros(31_250));
        assert_eq!(least(1, 500), Duration::ZERO);
        assert_eq!(least(1 << 30, 0), Duration::ZERO);
        assert_eq!(least(usize::MAX, usize::MAX), Duration::from_micros(u64::MAX));
    }
}
