//! The page of a process, found among its open files.
//!
//! Anybody may have a file of that name. So it is opened without waiting, has to be a plain file of the right length,
//! is read and never mapped, and has to name the process that has it. Invariant: no content and no timing makes this
//! panic, wait or read more than a page.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use pinbuddy_live::{Fault, LENGTH, NAME, Page, SEQUENCE};
use rustix::fs::OFlags;

use super::find;
use super::row::{Row, State};

/// A write takes a fraction of a microsecond.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_micros(200);

/// What is known of a process.
pub(super) fn row(pid: u32) -> Row {
    let state = state(pid);
    Row { pid, state }
}

/// Whether it has a file of that name, whatever is in it.
pub(super) fn has_page(pid: u32) -> bool {
    files(pid).is_ok_and(|it| !it.is_empty())
}

fn state(pid: u32) -> State {
    if find::stat(pid).is_none_or(|(state, _)| state == 'Z') {
        return State::Ended;
    }
    let files = match files(pid) {
        Ok(files) => files,
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            let text = "it is another user's: run this as that user, or as root";
            return State::Silent(text.to_owned());
        }
        Err(_) => return State::Ended,
    };
    let mut wrong = None;
    for file in files {
        match read(&file).and_then(|page| is_of(page, pid)) {
            Ok(page) => return State::Shown(page),
            Err(why) => wrong = Some(why),
        }
    }
    match wrong {
        // The process may have ended meanwhile.
        Some(_) if find::stat(pid).is_none() => State::Ended,
        Some(why) => State::Wrong(format!("its live page cannot be used: {why}")),
        None => State::Silent(why_none(pid)),
    }
}

/// Its files of that name.
fn files(pid: u32) -> io::Result<Vec<PathBuf>> {
    let target = format!("/memfd:{NAME} (deleted)");
    let all = fs::read_dir(format!("/proc/{pid}/fd"))?.flatten();
    let is = |it: &PathBuf| fs::read_link(it).is_ok_and(|link| link.as_os_str() == &*target);
    Ok(all.map(|it| it.path()).filter(is).collect())
}

fn read(path: &PathBuf) -> Result<Page, String> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let open = options.read(true).custom_flags(flags.bits().cast_signed());
    let opened = open.open(path).and_then(|it| Ok((it.metadata()?, it)));
    let (metadata, file) = opened.map_err(|why| format!("it cannot be opened: {why}"))?;
    if !metadata.is_file() || metadata.len() != LENGTH as u64 {
        let found = metadata.len();
        return Err(format!("expected a file of {LENGTH} bytes, found one of {found}"));
    }
    read_whole(&file).map_err(|why| format!("it cannot be read: {why}"))?.map_err(|why| why.to_string())
}

/// Reads until nobody wrote meanwhile. Each read is a call of the kernel's, so they happen in this order.
fn read_whole(file: &File) -> io::Result<Result<Page, Fault>> {
    let sequence = || {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, SEQUENCE as u64 * 8)?;
        io::Result::Ok(u64::from_ne_bytes(word))
    };
    let mut bytes = [0; LENGTH];
    for _ in 0..TRIES {
        let before = sequence()?;
        file.read_exact_at(&mut bytes, 0)?;
        if before.is_multiple_of(2) && sequence()? == before {
            return Ok(Page::read(&bytes));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(Err(Fault::Torn))
}

/// A child of a fork may have its parent's file.
fn is_of(page: Page, pid: u32) -> Result<Page, String> {
    let named = page.process.pid;
    if own_id(pid).is_none_or(|own| own == named) {
        return Ok(page);
    }
    Err(format!("expected that of process {pid}, found that of process {named}"))
}

/// What a process is called where it runs, in a container for instance.
fn own_id(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|it| it.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}

fn why_none(pid: u32) -> String {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|it| *it == 0);
    let text = if variables.any(|it| it == b"BUDDY_LIVE=1") {
        "it has pinned nothing yet through pinbuddy"
    } else {
        "it shows nothing: expected BUDDY_LIVE=1 in its environment, found none; start it with BUDDY_LIVE=1, or by \
         pinbuddy top --launch CMD"
    };
    text.to_owned()
}

#[cfg(test)]
mod tests;
