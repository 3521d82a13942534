//! Shows that work goes on: how a folder grows while another program, such as pip, fills it.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use indicatif::HumanBytes;

use crate::progress::Step;

/// Runs `work` and shows the size of `folder` every half second.
pub fn folder<T>(folder: &Path, step: &Step, work: impl FnOnce() -> T) -> T {
    let show = || {
        step.say(format!("{} so far", HumanBytes(size(folder))));
        true
    };
    beside(Duration::from_millis(500), show, work)
}

/// Runs `work`, and prints `what` if it takes more than two seconds.
pub fn saying<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let say = || {
        eprintln!("{what} …");
        false
    };
    beside(Duration::from_secs(2), say, work)
}

/// Runs `work`, and `tick` after each pause until it returns false.
fn beside<T>(pause: Duration, tick: impl Fn() -> bool + Send, work: impl FnOnce() -> T) -> T {
    let (done, finished) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let timeout = Err(mpsc::RecvTimeoutError::Timeout);
            while finished.recv_timeout(pause) == timeout && tick() {}
        });
        let result = work();
        drop(done);
        result
    })
}

/// The total size of the files below `folder`, in bytes.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let each = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    each.sum()
}
