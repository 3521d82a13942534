//! The page as others find it, while it is written, and in a child.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pinbuddy_live::{LENGTH, SEQUENCE};

use super::*;

fn leaked(wanted: bool) -> &'static Live {
    Box::leak(Box::new(Live::new(wanted)))
}

/// The page's file, as others open it.
fn path(live: &Live) -> String {
    let file = live.file.lock();
    format!("/proc/self/fd/{}", file.as_ref().unwrap().file().as_raw_fd())
}

fn read(path: &str) -> Page {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), LENGTH);
    Page::read(&bytes).unwrap()
}

#[test]
fn a_page_is_made_at_the_first_pin_and_kept_up_to_date() {
    let live = leaked(true);
    let pinned = Arc::new(AtomicU64::new(7));
    let counter = pinned.clone();
    let of_node = NodeUse { node: 1, pinned: 6, used: 2 };
    live.pins(Device(3), move || {
        let pinned = counter.load(Ordering::Relaxed);
        let of = Counters::default();
        (Counters { pinned, ..of }, vec![of_node])
    });
    let path = path(live);
    let link = fs::read_link(&path).unwrap();
    assert_eq!(link.to_str().unwrap(), "/memfd:pinbuddy-live (deleted)");
    let page = read(&path);
    assert_eq!((page.counters.pinned, page.process.device), (7, Some(3)));
    assert_eq!(page.process.pid, std::process::id());
    assert_eq!(page.nodes, [of_node]);
    pinned.store(8, Ordering::Relaxed);
    live.pins(Device(-1), Default::default);
    let late = SystemTime::now() + Duration::from_secs(60);
    while (read(&path).counters.pinned, read(&path).process.device) != (8, None) {
        assert!(SystemTime::now() < late, "it was never refreshed");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(read(&path).updated > page.updated);
    live.close();
}

#[test]
fn nothing_is_made_that_nobody_wants() {
    let live = leaked(false);
    live.pins(Device(0), Default::default);
    assert!(live.file.lock().is_none());
}

#[test]
fn nobody_else_changes_the_page() {
    let (file, words) = page::make().unwrap();
    words.publish(&Page::default());
    assert!(file.file().write_at(b"x", 0).is_err(), "it is sealed");
    assert!(file.file().set_len(0).is_err() && file.file().set_len(1 << 20).is_err());
    let mode = file.file().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let again = OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", file.file().as_raw_fd()));
    assert!(again.is_err() || again.unwrap().write_at(b"x", 0).is_err());
    words.publish(&Page::default());
}

#[test]
fn a_reader_never_sees_half_a_write() {
    let (file, words) = page::make().unwrap();
    let path = format!("/proc/self/fd/{}", file.file().as_raw_fd());
    let same = |number| Page {
        updated: number,
        counters: Counters { served: number, waited: number, ..Counters::default() },
        ..Page::default()
    };
    words.publish(&same(0));
    let over = AtomicBool::new(false);
    let sequence = |file: &File| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, SEQUENCE as u64 * 8).unwrap();
        u64::from_ne_bytes(word)
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..200_000 {
                words.publish(&same(number));
            }
            over.store(true, Ordering::Relaxed);
        });
        let file = File::open(&path).unwrap();
        let mut bytes = [0; LENGTH];
        let mut whole = 0;
        while !over.load(Ordering::Relaxed) || whole == 0 {
            let before = sequence(&file);
            file.read_exact_at(&mut bytes, 0).unwrap();
            if before.is_multiple_of(2) && sequence(&file) == before {
                let page = Page::read(&bytes).unwrap();
                let of = page.counters;
                assert_eq!((of.served, of.waited), (page.updated, page.updated));
                whole += 1;
            }
        }
    });
}

#[test]
fn a_child_closes_the_file_and_makes_its_own() {
    let live = leaked(true);
    live.pins(Device(0), Default::default);
    let parents = path(live);
    live.close();
    // What the handler does in a child, in this process.
    live.enter_child();
    let now = fs::read_link(&parents).map(|it| it.display().to_string());
    assert!(now.is_err() || !now.unwrap().contains("pinbuddy-live"));
    live.pins(Device(0), Default::default);
    assert_eq!(read(&path(live)).process.pid, std::process::id());
}

#[test]
fn requests_fall_only_if_they_fall_twice() {
    let mut served = Served::default();
    let seen: Vec<u64> = [5, 9, 4, 12, 3, 3, 4].map(|it| served.next(it)).into();
    assert_eq!(seen, [5, 9, 9, 12, 12, 3, 4]);
}
