//! A memory of mere numbers: nothing is pinned, but pins are recorded. It fails or takes time if a test
//! asks it to.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use pinbuddy_core::{Block, Home, Region};

use super::{MIB, Tested};
use crate::backing::{Completions, Control, Device, Memory, Pinned, Seen, Source, Unpinned};
use crate::budget::{Budget, Capacity, Standing};
use crate::sync::{Dial, thread as turns};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    next: Dial<usize>,
    pub(crate) pinned: Mutex<Vec<Region>>,
    /// Every pin that was asked for: its length and thread.
    pub(super) asked: Mutex<Vec<(usize, thread::ThreadId)>>,
    /// The device of each.
    pub(super) devices: Mutex<Vec<i32>>,
    /// How many homes memory has; two devices share one.
    pub(super) homes: usize,
    /// The unit in which memory is pinned.
    pub(super) page: Dial<usize>,
    /// How many more pins succeed.
    pub(super) left: Dial<usize>,
    /// Larger pins are refused.
    pub(crate) largest: Dial<usize>,
    pub(super) panics: Dial<bool>,
    /// Unpins are refused.
    pub(super) refuses_to_unpin: Dial<bool>,
    /// Pins of at least so much do not end before this is raised, unless they are stopped.
    endless: Dial<usize>,
    /// How many pins were stopped.
    pub(super) stopped: Dial<usize>,
    /// Endless pins of at least so much are in the driver, where they cannot be stopped.
    pub(super) in_the_driver: Dial<usize>,
    /// How often endless pins have asked whether to go on.
    pub(super) polls: Dial<usize>,
    /// Nanoseconds a MiB that filling and registering are reported to take.
    pub(crate) filling: Dial<usize>,
    pub(crate) registering: Dial<usize>,
    /// How much may be pinned.
    pub(super) budget: Dial<usize>,
    /// How much may be pinned by a guess, until somebody waits to hear of other processes; 0 after that.
    pub(super) guessed: Dial<usize>,
    /// The largest pin for which the machine has room.
    pub(super) room: Dial<usize>,
    /// Bytes that the machine has left.
    pub(super) free: Dial<usize>,
    /// Bytes that the system has set aside.
    pub(super) set_aside: Dial<usize>,
    /// The nice values of the thread that started the driver, and of the last one that pinned.
    pub(super) started: Dial<i32>,
    pub(super) pins: Dial<i32>,
    /// The driver is being started, as long as this is raised.
    pub(super) starting: Dial<bool>,
    /// Whether regions are hidden from children.
    pub(super) hides: Dial<bool>,
    /// The claim now, and while the last region was being pinned.
    pub(crate) claimed: Dial<usize>,
    pub(super) claimed_meanwhile: Dial<usize>,
    /// Waits for the driver that have begun, in requests and in all, and that are over.
    pub(super) requests_waited: Dial<usize>,
    pub(super) waits_begun: Dial<usize>,
    pub(super) waits_ended: Dial<usize>,
    /// Blocks that `reap` releases.
    pub(super) completed: Mutex<Vec<(Tested, Block)>>,
    /// Blocks that somebody has, as far as a test says, by their addresses.
    pub(crate) blocks: Mutex<BTreeMap<usize, usize>>,
    /// Regions that are being unpinned.
    pub(crate) unpinning: Mutex<BTreeSet<usize>>,
    /// How many pins are under way.
    pub(crate) under_way: Dial<usize>,
    /// The process has ended.
    pub(crate) closed: Dial<bool>,
}

/// Until it is dropped, pins are endless.
#[derive(Debug)]
pub(super) struct Endless(Tested);

impl Endless {
    /// From now on only pins of at least `bytes` are endless.
    pub(super) fn from(&self, bytes: usize) {
        self.0.pinner.memory.endless.set(bytes);
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
    pub(crate) fn new(budget: usize) -> Self {
        let most = || Dial::at(usize::MAX);
        Self {
            next: Dial::at(0x1000_0000),
            homes: 1,
            page: Dial::at(1),
            left: most(),
            largest: most(),
            endless: most(),
            in_the_driver: most(),
            budget: Dial::at(budget),
            room: most(),
            free: most(),
            started: Dial::at(i32::MAX),
            pins: Dial::at(i32::MAX),
            ..Self::default()
        }
    }

    /// Simulates filling; returns false if the pin is stopped.
    fn fill(&self, bytes: usize, control: &dyn Control) -> bool {
        if cfg!(feature = "shuttle") {
            // As before each call of the driver: one that begins when the process has ended makes none.
            let mut goes_on = control.go_on();
            self.under_way.add(1);
            for _ in 0..2 {
                if goes_on {
                    turns::yield_now();
                    goes_on = control.go_on();
                }
            }
            self.under_way.take(1);
            if !goes_on {
                return false;
            }
        }
        let is = |at_least: &Dial<usize>| bytes >= at_least.get();
        while is(&self.endless) {
            if !is(&self.in_the_driver) {
                self.polls.add(1);
                if !control.go_on() {
                    return false;
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        control.may_register(bytes)
    }

    fn took(bytes: usize, nanoseconds: &Dial<usize>) -> Duration {
        let nanoseconds = nanoseconds.get() * (bytes / MIB);
        Duration::from_nanos(nanoseconds as u64)
    }

    fn made(&self, base: usize, bytes: usize) -> Pinned {
        assert!(!self.closed.get(), "a pin ends after the end");
        self.pinned.lock().unwrap().push(Region { base, bytes });
        Pinned { base, filling: Self::took(bytes, &self.filling), registering: Self::took(bytes, &self.registering) }
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
        self.page.get()
    }

    fn start(&self, _device: Device) {
        self.started.set(niceness());
        while self.starting.get() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn hides(&self) -> bool {
        self.hides.get()
    }

    fn source(&self, bytes: usize) -> Source {
        if self.set_aside.get() >= bytes { Source::SetAside } else { Source::Ordinary }
    }

    fn set_aside(&self, bytes: usize) -> usize {
        self.set_aside.get() / bytes * bytes
    }

    fn pin(&self, bytes: usize, device: Device, source: Source, control: &dyn Control) -> Result<Pinned, Unpinned> {
        if source == Source::SetAside {
            let base = SET_ASIDE + self.set_aside.get();
            self.set_aside.take(bytes);
            return Ok(self.made(base, bytes));
        }
        self.pins.set(niceness());
        let claimed = self.claimed.get();
        self.claimed_meanwhile.set(claimed);
        let asked = (bytes, thread::current().id());
        self.asked.lock().unwrap().push(asked);
        self.devices.lock().unwrap().push(device.0);
        if !self.fill(bytes, control) {
            self.stopped.add(1);
            return Err(Unpinned::Stopped);
        }
        assert!(!self.panics.get(), "a backing that panics");
        let refused = |why: &str| Unpinned::Refused(why.to_owned());
        if bytes > self.largest.get() {
            return Err(refused("too large"));
        }
        if !self.left.spend() {
            return Err(refused("no more"));
        }
        let base = self.next.add(bytes + 3 * 4096);
        Ok(self.made(base, bytes))
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        if self.refuses_to_unpin.get() {
            return Err("the driver refuses".to_owned());
        }
        self.unpinning.lock().unwrap().insert(region.base);
        turns::yield_now();
        self.unpinning.lock().unwrap().remove(&region.base);
        let mut pinned = self.pinned.lock().unwrap();
        let at = pinned.iter().position(|it| *it == region);
        pinned.swap_remove(at.expect("unpinned twice, or never pinned"));
        let blocks = self.blocks.lock().unwrap();
        let lost = blocks.range(region.base..region.base + region.bytes).next();
        assert_eq!(lost, None, "unpinned while somebody has a block of it");
        if region.base >= SET_ASIDE {
            self.set_aside.add(region.bytes);
            return Ok(Source::SetAside);
        }
        Ok(Source::Ordinary)
    }
}

impl Completions for &'static Numbers {
    fn reap(&self) -> bool {
        let completed = std::mem::take(&mut *self.completed.lock().unwrap());
        for (handle, block) in completed {
            handle.cache(block);
            handle.release(block);
        }
        true
    }

    fn wait_begins(&self, in_request: bool) {
        self.waits_begun.add(1);
        self.requests_waited.add(usize::from(in_request));
    }

    fn wait_ends(&self) {
        self.waits_ended.add(1);
    }
}

impl Capacity for &'static Numbers {
    fn hear(&self) {
        self.guessed.set(0);
    }

    fn claim(&self, bytes: usize) {
        self.claimed.add(bytes);
    }

    fn unclaim(&self, bytes: usize) {
        self.claimed.take(bytes);
    }

    fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.room.get()
    }

    fn standing(&self) -> Standing {
        Standing::default()
    }

    fn free(&self) -> Option<usize> {
        Some(self.free.get())
    }

    fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget {
        let (guessed, budget) = (self.guessed.get(), self.budget.get());
        let guesses = guessed > 0;
        let budget = if guesses { guessed } else { budget }.max(taken);
        let bytes = max_mb.map_or(budget, |mb| mb * MIB);
        let why = "as the test has it".to_owned();
        Budget { bytes, why, guessed: guesses }
    }
}
