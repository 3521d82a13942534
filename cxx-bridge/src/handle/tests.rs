//! The handle on a backing that hands out numbers, and fails where a test asks it to.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

const MIB: usize = 1 << 20;

/// Pins nothing, but knows what is pinned.
#[derive(Debug)]
struct Numbers {
    next: AtomicUsize,
    pinned: Mutex<Vec<Region>>,
    /// How many more pins succeed.
    left: AtomicUsize,
    panics: AtomicBool,
    /// A handle whose engine must not be locked while this pins or unpins.
    watched: OnceLock<&'static Handle<Numbers>>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next: AtomicUsize::new(0x1000_0000),
            pinned: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            panics: AtomicBool::new(false),
            watched: OnceLock::new(),
        }
    }
}

impl Numbers {
    fn assert_unlocked(&self) {
        if let Some(handle) = self.watched.get() {
            assert!(
                handle.engine.try_lock().is_ok(),
                "I5: pinning under the engine's lock"
            );
        }
    }
}

impl Backing for Numbers {
    fn pin(&self, bytes: usize) -> Result<usize, String> {
        self.assert_unlocked();
        assert!(
            !self.panics.load(Ordering::Relaxed),
            "a backing that panics"
        );
        let spend = |left: usize| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .map_err(|_| "no more".to_owned())?;
        let base = self.next.fetch_add(bytes + 3 * 4096, Ordering::Relaxed);
        self.pinned.lock().unwrap().push(Region { base, bytes });
        Ok(base)
    }

    fn unpin(&self, region: Region) -> Result<(), String> {
        self.assert_unlocked();
        let mut pinned = self.pinned.lock().unwrap();
        let at = pinned
            .iter()
            .position(|it| *it == region)
            .ok_or("never pinned")?;
        pinned.swap_remove(at);
        Ok(())
    }
}

fn handle(count: usize) -> Handle<Numbers> {
    let value = count.to_string();
    let (config, warnings) = Config::read(|name| match name {
        "BUDDY_BLOCK_SIZE_MB" => Some("64".into()),
        "BUDDY_BLOCK_COUNT" => Some(value.clone().into()),
        _ => None,
    });
    assert!(warnings.is_empty());
    Handle::new(config, Numbers::default())
}

fn pins(handle: &Handle<Numbers>) -> usize {
    handle.backing.pinned.lock().unwrap().len()
}

#[test]
fn the_first_request_warms_up_and_no_later_one_pins() {
    let handle = handle(4);
    assert_eq!(pins(&handle), 0, "nothing is pinned before it is needed");
    let first = handle.request(5 * MIB).unwrap();
    assert_eq!(pins(&handle), 4);
    for _ in 0..100 {
        let grant = handle.request(50 * MIB).unwrap();
        handle.release(grant.block);
    }
    assert_eq!(pins(&handle), 4);
    handle.release(first.block);
}

#[test]
fn below_the_threshold_nothing_is_served_and_nothing_pinned() {
    let handle = handle(4);
    assert_eq!(handle.request(4 * MIB - 1), None);
    assert_eq!(pins(&handle), 0);
    assert!(handle.request(4 * MIB).is_some());
}

#[test]
fn without_a_warm_up_segments_come_on_demand() {
    let handle = handle(0);
    handle.request(60 * MIB).unwrap();
    assert_eq!(pins(&handle), 1);
    handle.request(60 * MIB).unwrap();
    assert_eq!(pins(&handle), 2);
}

#[test]
fn a_request_above_a_segment_gets_a_region_of_its_own_size() {
    let handle = handle(1);
    let grant = handle.request(129 * MIB + 1).unwrap();
    assert_eq!(grant.block.bytes, 129 * MIB + 4096);
    let regions = handle.backing.pinned.lock().unwrap().clone();
    assert_eq!(
        regions.iter().map(|it| it.bytes / MIB).collect::<Vec<_>>(),
        [64, 130]
    );
}

#[test]
fn a_warm_up_that_fails_keeps_what_it_pinned() {
    let handle = handle(4);
    handle.backing.left.store(2, Ordering::Relaxed);
    assert!(handle.request(60 * MIB).is_some());
    assert!(handle.request(60 * MIB).is_some());
    assert_eq!(
        handle.request(60 * MIB),
        None,
        "upstream's path, when nothing can be pinned"
    );
    assert_eq!(pins(&handle), 2);
}

#[test]
fn empty_cache_unpins_idle_segments_and_the_next_request_pins_again() {
    let handle = handle(3);
    let live = handle.request(8 * MIB).unwrap();
    handle.empty_cache();
    assert_eq!(pins(&handle), 1, "the segment with the live block stays");
    handle.defer(live.block);
    handle.empty_cache();
    assert_eq!(
        pins(&handle),
        1,
        "a pending block keeps its segment as well"
    );
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pins(&handle), 0);
    assert!(handle.request(8 * MIB).is_some());
    assert_eq!(pins(&handle), 1);
}

#[test]
fn a_panic_retires_the_engine_and_goes_no_further() {
    let handle = handle(1);
    let live = handle.request(8 * MIB).unwrap();
    handle.backing.panics.store(true, Ordering::Relaxed);
    assert_eq!(handle.request(100 * MIB), None);
    assert_eq!(handle.report()["retired"], true);
    assert_eq!(
        handle.request(8 * MIB),
        None,
        "everything is upstream's now"
    );
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(
        pins(&handle),
        1,
        "a live block's memory is never unpinned after that"
    );
}

#[test]
fn nothing_is_pinned_or_unpinned_under_the_engines_lock() {
    let handle: &'static Handle<Numbers> = Box::leak(Box::new(handle(2)));
    handle.backing.watched.set(handle).unwrap();
    let grant = handle.request(8 * MIB).unwrap();
    handle.release(handle.request(100 * MIB).unwrap().block);
    handle.release(grant.block);
    handle.empty_cache();
    assert_eq!(pins(handle), 0);
    assert_eq!(
        handle.report()["retired"],
        false,
        "an assertion in the backing would retire it"
    );
}

#[test]
fn misuse_retires_the_engine_instead_of_corrupting_it() {
    let handle = handle(1);
    let grant = handle.request(8 * MIB).unwrap();
    handle.release(grant.block);
    handle.release(grant.block);
    assert_eq!(handle.report()["retired"], true);
}

#[test]
fn threads_that_arrive_together_share_one_warm_up_and_never_a_block() {
    let handle = handle(4);
    let grants = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| handle.request(15 * MIB).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(pins(&handle), 4);
    let mut spans: Vec<_> = grants
        .iter()
        .map(|it| (it.address, it.block.bytes))
        .collect();
    spans.sort_unstable();
    assert!(
        spans
            .windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
        "{spans:?}"
    );
}

#[test]
fn the_report_is_what_people_read() {
    let handle = handle(1);
    let kept = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    handle.defer(freed.block);
    insta::assert_snapshot!(serde_json::to_string_pretty(&handle.report()).unwrap());
    handle.release(kept.block);
    handle.release(freed.block);
}
