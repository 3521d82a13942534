//! Shows how a folder grows while another program, such as pip, fills it.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use indicatif::HumanBytes;

use crate::progress::Step;

/// Runs `work` and shows the size of `folder` every half second.
pub fn folder<T>(folder: &Path, step: &Step, work: impl FnOnce() -> T) -> T {
    let (done, finished) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let pause = Duration::from_millis(500);
            while finished.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
                step.say(format!("{} so far", HumanBytes(size(folder))));
            }
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
