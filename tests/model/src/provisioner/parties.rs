//! Threads that ask, a worker, and the driver's pins: they do what the provisioner says, one step at a
//! time.
//!
//! Invariants that are checked where they can break: a request waits for another's pin once at most,
//! and takes a bounded number of steps if nobody interferes; there is one worker at most, and it waits
//! only while a request pins; a pin is told to go on, to stand still or to stop as the documentation
//! says; once closed, nothing is pinned any more.

use std::time::Duration;

use super::world::{Pinned, World};
use crate::choices::{Choices, Pick};
use pinbuddy_core::{
    Block, Cached, Engine, GRANULE, GoOn, Growth, Home, NewSegment, Permit, Provisioner, Refusal, SegmentKind,
    Settings, Step, Took, Want,
};

/// A thread whose request has not ended.
#[derive(Debug)]
pub(super) struct Asking {
    want: Want,
    home: Home,
    refused: bool,
    asked: bool,
    waited: bool,
    pub(super) pins: bool,
    pub(super) name: usize,
}

/// Who made a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Request(usize),
    Worker,
}

/// A pin that is under way.
#[derive(Debug)]
pub(super) struct Pinning {
    pub(super) permit: Permit,
    pub(super) by: By,
    /// How often the cache was cleared before.
    clears: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Parties {
    pub(super) settings: Settings,
    pub(super) provisioner: Provisioner,
    pub(super) world: World,
    pub(super) asking: Vec<Asking>,
    pub(super) pinning: Vec<Pinning>,
    pub(super) works: bool,
    pub(super) now: Duration,
    /// The most that may be pinned.
    pub(super) capacity: usize,
    clears: usize,
    closed: bool,
    named: usize,
    /// Whether requests wait for streams.
    is_patient: bool,
    /// How many homes requests come from.
    homes: u8,
}

/// More threads do not ask at once.
const THREADS: usize = 4;

impl Parties {
    pub(super) fn new(settings: Settings, choices: &mut Choices<'_>) -> Self {
        let homes = 1 + choices.weighted(&[2, 2, 1]) as u8;
        let is_patient = choices.flip();
        let provisioner = Provisioner::new(settings.clone());
        Self {
            provisioner: if is_patient { provisioner.patient() } else { provisioner },
            is_patient,
            world: World::new(),
            asking: Vec::new(),
            pinning: Vec::new(),
            works: false,
            now: Duration::ZERO,
            capacity: settings.segment_bytes.max(1 << 20) * choices.within(1..32),
            clears: 0,
            closed: false,
            named: 0,
            homes,
            settings,
        }
    }

    /// One of them.
    pub(super) fn home(&self, choices: &mut Choices<'_>) -> Home {
        Home(choices.below(self.homes.into()) as u8)
    }

    /// What the budget leaves.
    pub(super) fn left(&self) -> usize {
        let taken = self.world.pinned_bytes() + self.being_pinned();
        self.capacity.saturating_sub(taken)
    }

    fn being_pinned(&self) -> usize {
        self.pinning.iter().map(|it| it.permit.bytes).sum()
    }

    pub(super) fn a_request_pins(&self) -> bool {
        self.pinning.iter().any(|it| it.by != By::Worker)
    }

    pub(super) fn begin_request(&mut self, bytes: usize, home: Home) {
        if self.asking.len() < THREADS {
            self.named += 1;
            self.asking.push(Asking {
                want: Want::new(bytes).at(home),
                home,
                refused: false,
                asked: false,
                waited: false,
                pins: false,
                name: self.named,
            });
        }
    }

    /// A thread that does not pin asks for its next step, and takes it.
    pub(super) fn step_a_request(&mut self, which: Pick, choices: &mut Choices<'_>) {
        let ready: Vec<usize> = (0..self.asking.len()).filter(|n| !self.asking[*n].pins).collect();
        if !ready.is_empty() {
            self.step(*which.get(&ready), choices);
        }
    }

    pub(super) fn step(&mut self, n: usize, choices: &mut Choices<'_>) {
        let (mut now, mut left) = (self.now, self.left());
        let asking = &mut self.asking[n];
        // As the bridge does: a first step comes without clock and budget.
        if !std::mem::replace(&mut asking.asked, true) && self.settings.growth == Growth::Segment {
            (now, left) = (Duration::ZERO, 0);
        }
        let step = self.provisioner.step(&mut asking.want, now, left);
        let bytes = asking.want.bytes();
        match step {
            Step::Block(block) => {
                let Asking { home, refused, .. } = self.asking.swap_remove(n);
                let is_short = refused || left < block.bytes || self.provisioner.is_yielding();
                self.check_home(block, home, is_short);
                self.hand_out(block, bytes);
            }
            Step::Reap => {
                if choices.flip() {
                    self.reap();
                }
            }
            Step::Poll => {
                assert!(self.is_patient, "no plan, and a request waits for streams");
                match choices.within(0..3) {
                    0 => asking.want.impatient(),
                    1 => self.reap(),
                    _ => self.now += Duration::from_millis(1),
                }
            }
            Step::WarmUp => {
                self.provisioner.urge(asking.home);
                self.hire();
            }
            Step::Wait { until } => {
                if let Some(until) = until {
                    assert!(!asking.waited, "a request waits twice");
                    assert!(until >= self.now, "a wait that is over");
                    assert!(!self.pinning.is_empty(), "nobody pins");
                    asking.waited = true;
                } else {
                    assert!(self.works, "a wait without an end for nobody");
                }
            }
            Step::Pin(permit) => {
                let least = Engine::exact_region(bytes).unwrap();
                assert!(permit.bytes >= least, "{permit:?} for {bytes} bytes");
                asking.pins = true;
                assert_eq!(permit.home, asking.home);
                let by = By::Request(asking.name);
                self.begin_pin(permit, by);
            }
            Step::PassThrough { unpin, .. } => {
                self.asking.swap_remove(n);
                self.world.unpin_all(&unpin);
            }
        }
        if choices.flip() {
            self.hire();
        }
    }

    /// A block of another home is handed out only where no more is pinned, and the request's own home has no room.
    fn check_home(&self, block: Block, home: Home, is_short: bool) {
        let engine = self.provisioner.engine();
        if self.world.home_of(engine.address(block)) == home {
            return;
        }
        assert!(is_short, "{block:?} lies elsewhere, and more could be pinned");
        let segment_bytes = self.settings.segment_bytes.next_multiple_of(GRANULE);
        let is_long = block.bytes > segment_bytes;
        let holds = |it: &pinbuddy_core::SegmentView| {
            let serves = (it.kind == SegmentKind::Dedicated) == is_long;
            it.home == home && serves && it.longest_free_run_bytes >= block.bytes
        };
        let room = engine.segments().find(holds);
        assert_eq!(room, None, "{block:?} lies elsewhere");
    }

    fn hand_out(&mut self, block: Block, asked: usize) {
        let address = self.provisioner.engine().address(block);
        self.world.hand_out(block, address, asked);
    }

    /// What streams are done with is released.
    fn reap(&mut self) {
        while let Some(n) = self.world.blocks.iter().position(|it| it.pending) {
            self.release_nth(n);
        }
    }

    pub(super) fn begin_pin(&mut self, mut permit: Permit, by: By) {
        assert!(!self.closed, "a pin begins after the end: {permit:?}");
        assert!(permit.bytes > 0 && permit.bytes.is_multiple_of(GRANULE));
        self.world.unpin_all(&std::mem::take(&mut permit.unpin));
        let left = self.left();
        if permit.bytes > left {
            self.refuse(permit, by, Refusal::Budget);
        } else {
            self.pinning.push(Pinning { permit, by, clears: self.clears });
        }
    }

    pub(super) fn refuse(&mut self, permit: Permit, by: By, why: Refusal) {
        self.provisioner.refused(permit.id, why);
        if let By::Request(name) = by {
            let asking = self.asking.iter_mut().find(|it| it.name == name).unwrap();
            asking.want.refused(why, permit.bytes);
            asking.refused = true;
            asking.pins = false;
        }
    }

    /// A pin that is under way ends, one way or the other.
    pub(super) fn end_a_pin(&mut self, which: Pick, choices: &mut Choices<'_>) {
        if self.pinning.is_empty() {
            return;
        }
        let n = which.index(self.pinning.len());
        self.check_go_on(n);
        let Pinning { permit, by, clears } = self.pinning.swap_remove(n);
        let stopped = self.closed || by == By::Worker && clears != self.clears;
        // Even what is to stop may have just been done.
        match choices.weighted(&[5, 1, 1]) {
            0 => self.pinned(permit, by, choices),
            _ if stopped => self.refuse(permit, by, Refusal::Stopped),
            1 => self.refuse(permit, by, Refusal::Driver),
            _ => self.refuse(permit, by, Refusal::Machine),
        }
    }

    fn pinned(&mut self, permit: Permit, by: By, choices: &mut Choices<'_>) {
        let region = self.world.pin(permit.bytes, permit.home);
        let took = Took {
            filling: Duration::from_micros(1 << choices.below(20)),
            registering: Duration::from_micros(1 << choices.below(20)),
        };
        let segment = NewSegment::new(region).unwrap();
        let block = self.provisioner.pinned(permit.id, segment, took);
        let block = block.expect("a region that nothing overlaps");
        match by {
            By::Worker => assert_eq!(block, None),
            By::Request(name) => {
                let n = self.asking.iter().position(|it| it.name == name).unwrap();
                let asking = self.asking.swap_remove(n);
                let block = block
                    .unwrap_or_else(|| panic!("{permit:?} was pinned for {:?} and does not serve it", asking.want));
                self.check_home(block, asking.home, false);
                self.hand_out(block, asking.want.bytes());
            }
        }
    }

    /// What the worker is told in the middle of a pin is what the documentation says.
    fn check_go_on(&self, n: usize) {
        let it = &self.pinning[n];
        if it.by == By::Worker {
            let expected = if self.closed || it.clears != self.clears {
                GoOn::Stop
            } else if self.a_request_pins() {
                GoOn::Wait
            } else {
                GoOn::Yes
            };
            assert_eq!(self.provisioner.go_on(it.permit.id), expected);
        }
    }

    pub(super) fn release(&mut self, which: Pick) {
        if !self.world.blocks.is_empty() {
            self.release_nth(which.index(self.world.blocks.len()));
        }
    }

    pub(super) fn release_nth(&mut self, n: usize) {
        let block = self.world.take_back(n);
        assert_eq!(self.provisioner.engine_mut().release(block), Ok(()));
    }

    pub(super) fn defer(&mut self, which: Pick) {
        if !self.world.blocks.is_empty() {
            let n = which.index(self.world.blocks.len());
            let held = &mut self.world.blocks[n];
            let deferred = self.provisioner.engine_mut().defer(held.block);
            assert_eq!(deferred.is_ok(), !held.pending, "{deferred:?}");
            held.pending = true;
        }
    }

    pub(super) fn cache(&mut self, which: Pick) {
        if !self.world.blocks.is_empty() {
            let n = which.index(self.world.blocks.len());
            let held = &mut self.world.blocks[n];
            let cached = self.provisioner.engine_mut().cache(held.block);
            assert_eq!(cached.is_ok(), held.pending, "{cached:?}");
            held.pending = false;
        }
    }

    pub(super) fn request_beside(&mut self, bytes: usize, cached: usize, home: Home) {
        let cached = Cached { bytes: cached, alike: cached / bytes.max(1) };
        let engine = self.provisioner.engine_mut();
        engine.turn_to(home);
        if let Some(block) = engine.request_beside(bytes, cached) {
            self.check_home(block, home, false);
            self.hand_out(block, bytes);
        }
    }

    /// All that is idle goes, and what was let go before.
    pub(super) fn clear(&mut self) {
        let idle = self.provisioner.clear();
        self.world.unpin_all(&idle);
        self.clears += 1;
        let left: usize = self.world.regions.iter().map(Pinned::idle_bytes).sum();
        assert_eq!(left, 0, "idle regions after a clear");
    }

    /// PyTorch could not pin of its own: all that is idle goes, or nothing.
    pub(super) fn give_way(&mut self, bytes: usize, knows: bool) {
        let left = knows.then(|| self.left());
        let before = self.world.pinned_bytes();
        let idle = self.provisioner.give_way(bytes, left);
        self.world.unpin_all(&idle);
        let gone = before - self.world.pinned_bytes();
        if let Some(left) = left {
            let enough = left.saturating_add(gone) >= bytes;
            assert!(gone == 0 || enough, "{gone} were given back for nothing");
        }
    }

    /// What nobody has used for the idle time is let go, and stays pinned until the worker unpins it.
    pub(super) fn look_for_unused(&mut self) {
        let returned = |it: &Provisioner| it.engine().stats().returned_bytes;
        let before = returned(&self.provisioner);
        self.provisioner.let_go_unused(self.now);
        let gone = (returned(&self.provisioner) - before) as usize;
        let idle: usize = self.world.regions.iter().map(Pinned::idle_bytes).sum();
        assert!(gone <= idle, "{gone} of {idle} idle bytes were let go");
        self.hire();
    }

    pub(super) fn urge(&mut self, most: usize, home: Home) {
        self.provisioner.urge(home);
        self.provisioner.limit(most);
        self.hire();
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.provisioner.close();
    }
}
