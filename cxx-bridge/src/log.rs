//! What pinbuddy says on standard error: one line per event, never inside a lock.

use std::io::Write;

/// Prints one warning. A closed standard error is no reason to stop training.
pub fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "pinbuddy: warning: {message}");
}
