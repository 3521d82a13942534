//! What the simulator says on standard error, each line under its own name.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::config;
use crate::error::lock;

/// Say a line.
pub(crate) fn always(line: &str) {
    eprintln!("pinbuddy-cuda-sim: {line}");
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
