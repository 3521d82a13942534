//! Messages on standard error: one line per event, never under a lock.
//!
//! `BUDDY_LOG` sets the level. If a launcher started several processes, each line has the rank, since they
//! often share standard error. Nothing here may be called while a lock is held, nor in a child after a
//! fork: standard error has a lock of its own.

use std::fmt;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

pub use crate::config::Level;
use crate::lock;
use pinbuddy_store::launcher;

/// Behind the first warning.
const EXPLAINED: &str = " (see: pinbuddy explain MESSAGE)";

static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// Leaves out messages above `level` from now on.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// A message that a user should act on. The first one of a process says where such messages are explained.
pub fn warn(line: impl FnOnce() -> String) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    say(Level::Warn, "warning: ", || {
        let line = line();
        match TOLD.swap(true, Ordering::Relaxed) {
            true => line,
            false => line + EXPLAINED,
        }
    });
}

/// A milestone.
pub fn info(line: impl FnOnce() -> String) {
    say(Level::Info, "", line);
}

/// A detail.
pub fn debug(line: impl FnOnce() -> String) {
    say(Level::Debug, "debug: ", line);
}

fn say(level: Level, prefix: &str, line: impl FnOnce() -> String) {
    lock::assert_none_held("printing");
    if level as u8 <= LEVEL.load(Ordering::Relaxed) {
        // In one call, so that the lines of many ranks do not mix. Errors are ignored: a closed standard
        // error must not stop training.
        let text = format!("pinbuddy: {}{prefix}{}\n", rank(), line());
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// For instance `rank 3: `; empty for a single process. Read once, so that all lines have the same.
fn rank() -> &'static str {
    static RANK: OnceLock<String> = OnceLock::new();
    RANK.get_or_init(|| launcher::rank().map_or_else(String::new, |rank| format!("rank {rank}: ")))
}

/// Shows a number of bytes for people, for instance `1.5 GiB` or `129.5 MiB`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..0x400 => return write!(f, "{} B", self.0),
            0x400..0x10_0000 => (1u64 << 10, "KiB"),
            0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
            _ => (1 << 30, "GiB"),
        };
        let value = self.0 as f64 / unit as f64;
        let text = format!("{value:.1}");
        write!(f, "{} {name}", text.strip_suffix(".0").unwrap_or(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_people_say_them() {
        for (bytes, text) in
            [(0, "0 B"), (1 << 10, "1 KiB"), (135_790_592, "129.5 MiB"), (1 << 30, "1 GiB"), (3 << 29, "1.5 GiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
