//! A memory of mere numbers: nothing is pinned, but pins are recorded. It fails or takes time if a test
//! asks it to.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinbuddy_core::{Block, Home, Region};

use super::{MIB, Tested};
use crate::backing::{Completions, Control, Device, Memory, Pinned, Seen, Source, Unpinned};
use crate::budget::{Budget, Capacity, Standing};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Numbers {
    next: AtomicUsize,
    pub(super) pinned: Mutex<Vec<Region>>,
    /// Every pin that was asked for: its length and thread.
    pub(super) asked: Mutex<Vec<(usize, thread::ThreadId)>>,
    /// The device of each.
    pub(super) devices: Mutex<Vec<i32>>,
    /// How many homes memory has; two devices share one.
    pub(super) homes: usize,
    /// The unit in which memory is pinned.
    pub(super) page: AtomicUsize,
    /// How many more pins succeed.
    pub(super) left: AtomicUsize,
    /// Larger pins are refused.
    pub(super) largest: AtomicUsize,
    pub(super) panics: AtomicBool,
    /// Unpins are refused.
    pub(super) refuses_to_unpin: AtomicBool,
    /// Pins of at least so much do not end before this is raised, unless they are stopped.
    endless: AtomicUsize,
    /// How many pins were stopped.
    pub(super) stopped: AtomicUsize,
    /// Endless pins of at least so much are in the driver, where they cannot be stopped.
    pub(super) in_the_driver: AtomicUsize,
    /// How often endless pins have asked whether to go on.
    pub(super) polls: AtomicUsize,
    /// Nanoseconds a MiB that filling and registering are reported to take.
    pub(super) filling: AtomicUsize,
    pub(super) registering: AtomicUsize,
    /// How much may be pinned.
    pub(super) budget: AtomicUsize,
    /// The largest pin for which the machine has room.
    pub(super) room: AtomicUsize,
    /// Bytes that the machine has left.
    pub(super) free: AtomicUsize,
    /// Bytes that the system has set aside.
    pub(super) set_aside: AtomicUsize,
    /// The nice values of the thread that started the driver, and of the last one that pinned.
    pub(super) started: AtomicI32,
    pub(super) pins: AtomicI32,
    /// The driver is being started, as long as this is raised.
    pub(super) starting: AtomicBool,
    /// Whether regions are hidden from children.
    pub(super) hides: AtomicBool,
    /// The claim now, and while the last region was being pinned.
    pub(super) claimed: AtomicUsize,
    pub(super) claimed_meanwhile: AtomicUsize,
    /// Waits for the driver that have begun, in requests and in all, and that are over.
    pub(super) requests_waited: AtomicUsize,
    pub(super) waits_begun: AtomicUsize,
    pub(super) waits_ended: AtomicUsize,
    /// Blocks that `reap` releases.
    pub(super) completed: Mutex<Vec<(Tested, Block)>>,
}

/// Until it is dropped, pins are endless.
#[derive(Debug)]
pub(super) struct Endless(Tested);

impl Endless {
    /// From now on only pins of at least `bytes` are endless.
    pub(super) fn from(&self, bytes: usize) {
        self.0.pinner.memory.endless.store(bytes, Ordering::Relaxed);
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.from(usize::MAX);
    }
}

/// Makes pins of at least `bytes` endless, until the result is dropped.
pub(super) fn endless(handle: Tested, bytes: usize) -> Endless {
    let endless = Endless(handle);
    endless.from(bytes);
    endless
}

impl Numbers {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            next: AtomicUsize::new(0x1000_0000),
            pinned: Mutex::default(),
            asked: Mutex::default(),
            devices: Mutex::default(),
            homes: 1,
            page: AtomicUsize::new(1),
            left: AtomicUsize::new(usize::MAX),
            largest: AtomicUsize::new(usize::MAX),
            panics: AtomicBool::new(false),
            refuses_to_unpin: AtomicBool::new(false),
            endless: AtomicUsize::new(usize::MAX),
            stopped: AtomicUsize::new(0),
            in_the_driver: AtomicUsize::new(usize::MAX),
            polls: AtomicUsize::new(0),
            filling: AtomicUsize::new(0),
            registering: AtomicUsize::new(0),
            budget: AtomicUsize::new(budget),
            room: AtomicUsize::new(usize::MAX),
            free: AtomicUsize::new(usize::MAX),
            set_aside: AtomicUsize::new(0),
            started: AtomicI32::new(i32::MAX),
            pins: AtomicI32::new(i32::MAX),
            starting: AtomicBool::new(false),
            hides: AtomicBool::new(false),
            claimed: AtomicUsize::new(0),
            claimed_meanwhile: AtomicUsize::new(0),
            requests_waited: AtomicUsize::new(0),
            waits_begun: AtomicUsize::new(0),
            waits_ended: AtomicUsize::new(0),
            completed: Mutex::default(),
        }
    }

    /// Simulates filling; returns false if the pin is stopped.
    fn fill(&self, bytes: usize, control: &dyn Control) -> bool {
        let is = |at_least: &AtomicUsize| bytes >= at_least.load(Ordering::Relaxed);
        while is(&self.endless) {
            if !is(&self.in_the_driver) {
                self.polls.fetch_add(1, Ordering::Relaxed);
                if !control.go_on() {
                    return false;
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        control.may_register(bytes)
    }

    fn took(bytes: usize, nanoseconds: &AtomicUsize) -> Duration {
        let nanoseconds = nanoseconds.load(Ordering::Relaxed) * (bytes / MIB);
        Duration::from_nanos(nanoseconds as u64)
    }

    fn made(&self, base: usize, bytes: usize) -> Pinned {
        self.pinned.lock().unwrap().push(Region { base, bytes });
        Pinned {
            base,
            filling: Self::took(bytes, &self.filling),
            registering: Self::took(bytes, &self.registering),
        }
    }
}

thread_local! {
    /// The current device.
    pub(super) static CURRENT: Cell<i32> = const { Cell::new(0) };
}

/// The nice value of the calling thread.
pub(super) fn niceness() -> i32 {
    // SAFETY: a number from the kernel.
    #[allow(unsafe_code)]
    unsafe {
        libc::getpriority(libc::PRIO_PROCESS, 0)
    }
}

/// The address of regions that were set aside: no test pins so much that others reach it.
const SET_ASIDE: usize = 1 << 56;

impl Memory for &'static Numbers {
    fn available(&self) -> bool {
        true
    }

    fn device(&self) -> Device {
        Device(CURRENT.get())
    }

    fn homes(&self) -> usize {
        self.homes
    }

    fn home(&self, device: Device) -> Home {
        Home(device.0 as u8 / 2)
    }

    fn at_home(&self, Home(home): Home) -> Option<Seen> {
        Some(Seen::of(Device(i32::from(home) * 2), home.into()))
    }

    fn page(&self) -> usize {
        self.page.load(Ordering::Relaxed)
    }

    fn start(&self, _device: Device) {
        self.started.store(niceness(), Ordering::Relaxed);
        while self.starting.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn hides(&self) -> bool {
        self.hides.load(Ordering::Relaxed)
    }

    fn source(&self, bytes: usize) -> Source {
        if self.set_aside.load(Ordering::Relaxed) >= bytes {
            Source::SetAside
        } else {
            Source::Ordinary
        }
    }

    fn set_aside(&self, bytes: usize) -> usize {
        self.set_aside.load(Ordering::Relaxed) / bytes * bytes
    }

    fn pin(
        &self,
        bytes: usize,
        device: Device,
        source: Source,
        control: &dyn Control,
    ) -> Result<Pinned, Unpinned> {
        if source == Source::SetAside {
            let base = SET_ASIDE + self.set_aside.fetch_sub(bytes, Ordering::Relaxed);
            return Ok(self.made(base, bytes));
        }
        self.pins.store(niceness(), Ordering::Relaxed);
        let claimed = self.claimed.load(Ordering::Relaxed);
        self.claimed_meanwhile.store(claimed, Ordering::Relaxed);
        let asked = (bytes, thread::current().id());
        self.asked.lock().unwrap().push(asked);
        self.devices.lock().unwrap().push(device.0);
        if !self.fill(bytes, control) {
            self.stopped.fetch_add(1, Ordering::Relaxed);
            return Err(Unpinned::Stopped);
        }
        assert!(
            !self.panics.load(Ordering::Relaxed),
            "a backing that panics"
        );
        let refused = |why: &str| Unpinned::Refused(why.to_owned());
        if bytes > self.largest.load(Ordering::Relaxed) {
            return Err(refused("too large"));
        }
        let spend = |left: usize| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .map_err(|_| refused("no more"))?;
        let base = self.next.fetch_add(bytes + 3 * 4096, Ordering::Relaxed);
        Ok(self.made(base, bytes))
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        if self.refuses_to_unpin.load(Ordering::Relaxed) {
            return Err("the driver refuses".to_owned());
        }
        let mut pinned = self.pinned.lock().unwrap();
        let at = pinned
            .iter()
            .position(|it| *it == region)
            .ok_or("never pinned")?;
        pinned.swap_remove(at);
        if region.base >= SET_ASIDE {
            self.set_aside.fetch_add(region.bytes, Ordering::Relaxed);
            return Ok(Source::SetAside);
        }
        Ok(Source::Ordinary)
    }
}

impl Completions for &'static Numbers {
    fn reap(&self) {
        let completed = std::mem::take(&mut *self.completed.lock().unwrap());
        for (handle, block) in completed {
            handle.release(block);
        }
    }

    fn wait_begins(&self, in_request: bool) {
        self.waits_begun.fetch_add(1, Ordering::Relaxed);
        self.requests_waited
            .fetch_add(usize::from(in_request), Ordering::Relaxed);
    }

    fn wait_ends(&self) {
        self.waits_ended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Capacity for &'static Numbers {
    fn claim(&self, bytes: usize) {
        self.claimed.fetch_add(bytes, Ordering::Relaxed);
    }

    fn unclaim(&self, bytes: usize) {
        self.claimed.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.room.load(Ordering::Relaxed)
    }

    fn standing(&self) -> Standing {
        Standing::default()
    }

    fn free(&self) -> Option<usize> {
        Some(self.free.load(Ordering::Relaxed))
    }

    fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget {
        let budget = self.budget.load(Ordering::Relaxed).max(taken);
        let bytes = max_mb.map_or(budget, |mb| mb * MIB);
        let why = "as the test has it".to_owned();
        Budget { bytes, why }
    }
}
