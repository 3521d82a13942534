//! What the simulator says on standard error, each line under its own name.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::Mutex;

use crate::config;
use crate::error::lock;

/// Say a line: in one call, so that the lines of several processes do not mix.
pub(crate) fn always(line: &str) {
    let text = format!("pinbuddy-cuda-sim: {line}\n");
    // A closed standard error is no reason to stop.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Say a line the first time only, `key` telling lines apart.
pub(crate) fn once(key: &str, line: impl FnOnce() -> String) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let first = lock(&SAID).get_or_insert_default().insert(key.to_owned());
    if first {
        always(&line());
    }
}

/// Say a line where `PINBUDDY_SIM_LOG=1` asks for it.
pub(crate) fn log(line: impl FnOnce() -> String) {
    if config::get().log {
        always(&line());
    }
}
