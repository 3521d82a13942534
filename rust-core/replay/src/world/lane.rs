//! A thread of the program, and the steps of its request.

use pinbuddy_core::{Block, Permit, Step, Took, Want};

use super::machine::at_pace;
use super::{Held, NEVER, Nanos, Policy, World, place};
use std::time::Duration;

/// A thread of the program.
#[derive(Debug)]
pub(super) struct Lane {
    /// When its request takes its next step.
    pub(super) at: Nanos,
    doing: Doing,
    want: Want,
    block: u32,
    served: Served,
    /// Whether it has asked for the size of its request before.
    pub(super) again: bool,
    /// Whether its request pauses caching.
    pub(super) pauses: bool,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// When it was made.
    pub asked: Nanos,
    /// When it was served.
    pub at: Nanos,
    /// Whether it pinned memory or waited for a pin.
    pub missed: bool,
    /// Whether it pinned a working-set region.
    pub renewed: bool,
    /// Whether memory was unpinned on its own thread. The driver then waits for all kernels that run.
    pub unpinned: bool,
    /// Whether another thread pinned a working-set region meanwhile: it may have waited for the driver.
    pub beside: bool,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Asking,
    Waiting,
    Filling(Permit),
    Registering(Permit, Took),
    Stocks,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            at: NEVER,
            doing: Doing::Nothing,
            want: Want::new(0),
            block: 0,
            served: Served::default(),
            again: false,
            pauses: false,
        }
    }
}

impl Lane {
    pub(super) fn waits(&self) -> bool {
        matches!(self.doing, Doing::Waiting)
    }
}

impl World {
    /// A thread without a request makes one of `bytes` bytes now; the block is called `block` until it is
    /// freed.
    pub fn request(&mut self, lane: usize, block: u32, bytes: u64) {
        self.begin(lane, block, bytes);
        let lane = &mut self.lanes[lane];
        lane.doing = Doing::Asking;
        lane.at = self.now;
    }

    /// The same, whose first step is the caller's.
    #[inline]
    pub(super) fn begin(&mut self, lane: usize, block: u32, bytes: u64) {
        let asked = self.now;
        let lane = &mut self.lanes[lane];
        debug_assert!(matches!(lane.doing, Doing::Nothing), "one at a time");
        lane.want = Want::new(usize::try_from(bytes).unwrap_or(usize::MAX));
        lane.block = block;
        lane.served = Served { asked, beside: self.renewals > 0, ..Served::default() };
    }

    /// The outcome of a thread's last request.
    pub fn served(&self, lane: usize) -> Served {
        self.lanes[lane].served
    }

    /// The next step of a thread's request; returns whether it is served.
    pub(super) fn poll_lane(&mut self, index: usize) -> bool {
        match std::mem::replace(&mut self.lanes[index].doing, Doing::Nothing) {
            Doing::Nothing => {
                self.lanes[index].at = NEVER;
                false
            }
            Doing::Asking => self.ask_first(index),
            Doing::Waiting => self.ask(index),
            Doing::Filling(permit) => {
                let began = self.now;
                let takes = at_pace(self.machine.register, permit.bytes as u64);
                let at = self.queue(takes);
                let took = Took {
                    filling: Duration::from_nanos(at_pace(self.machine.fill, permit.bytes as u64)),
                    registering: Duration::from_nanos(at - began),
                };
                self.go(index, Doing::Registering(permit, took), at);
                false
            }
            Doing::Registering(permit, took) => {
                self.renewals -= u32::from(permit.renews);
                match self.pinned(&permit, took) {
                    Some(found) => {
                        self.serve_block(index, found);
                        true
                    }
                    None => self.ask(index),
                }
            }
            Doing::Stocks => {
                self.serve(index, Held::default());
                true
            }
        }
    }

    #[inline]
    pub(super) fn ask_first(&mut self, index: usize) -> bool {
        // The allocator queries events before each request.
        self.reap();
        match self.before_the_engine(index, self.lanes[index].want.bytes()) {
            Some(held) => {
                self.serve(index, held);
                true
            }
            None => self.lead(index),
        }
    }

    fn ask(&mut self, index: usize) -> bool {
        self.reap();
        self.lead(index)
    }

    fn lead(&mut self, index: usize) -> bool {
        loop {
            let (now, left) = (self.time(), self.left());
            let want = &mut self.lanes[index].want;
            match self.provisioner.step(want, now, left) {
                Step::Block(found) => {
                    self.serve_block(index, found);
                    return true;
                }
                Step::Reap => self.reap(),
                // It plays no plans beside which requests wait.
                Step::Poll => want.impatient(),
                Step::WarmUp => {
                    self.work_in_front();
                    self.go(index, Doing::Waiting, NEVER);
                    return false;
                }
                Step::Pin(mut permit) => {
                    let unpin = self.unpin_here(index, std::mem::take(&mut permit.unpin));
                    self.taken += permit.bytes as u64;
                    let fill = at_pace(self.machine.fill, permit.bytes as u64);
                    let at = self.now + unpin + fill;
                    if permit.renews {
                        self.renew(index);
                    }
                    self.go(index, Doing::Filling(permit), at);
                    return false;
                }
                Step::Wait { until } => {
                    let until = until.map_or(NEVER, |it| it.as_nanos() as Nanos);
                    self.go(index, Doing::Waiting, until);
                    return false;
                }
                Step::PassThrough { unpin, .. } => return self.pass_through(index, unpin),
            }
        }
    }

    /// A request unpins these; returns how long that takes.
    fn unpin_here(&mut self, index: usize, idle: Vec<pinbuddy_core::IdleSegment>) -> Nanos {
        self.lanes[index].served.unpinned |= !idle.is_empty();
        self.unpin(idle)
    }

    /// A thread pins a working-set region: requests made meanwhile may wait for the driver.
    fn renew(&mut self, index: usize) {
        self.renewals += 1;
        for lane in &mut self.lanes {
            lane.served.beside |= !matches!(lane.doing, Doing::Nothing);
        }
        self.lanes[index].served.renewed = true;
    }

    fn pass_through(&mut self, index: usize, unpin: Vec<pinbuddy_core::IdleSegment>) -> bool {
        self.resume(index);
        let takes = self.unpin_here(index, unpin);
        let lane = &self.lanes[index];
        let (block, bytes) = (lane.block, lane.want.bytes() as u64);
        let before = self.stock.pins().bytes;
        if self.stock.allocate(self.now / 1000, block, bytes) {
            self.note_peak();
            let pinned = self.stock.pins().bytes - before;
            self.bytes_pinned += pinned;
            let at = self.queue(takes + self.machine.stocks(pinned));
            self.go(index, Doing::Stocks, at);
            return false;
        }
        self.serve(index, Held::default());
        true
    }

    fn go(&mut self, index: usize, doing: Doing, at: Nanos) {
        let lane = &mut self.lanes[index];
        lane.served.missed = true;
        lane.doing = doing;
        lane.at = at;
    }

    fn serve_block(&mut self, index: usize, block: Block) {
        let held = Held::of(block, index, self.lanes[index].again);
        self.serve(index, held);
    }

    fn serve(&mut self, index: usize, held: Held) {
        self.resume(index);
        let lane = &mut self.lanes[index];
        lane.served.at = self.now;
        debug_assert!(matches!(lane.doing, Doing::Nothing), "it was taken out");
        lane.at = NEVER;
        *place(&mut self.blocks, lane.block) = held;
    }
}
