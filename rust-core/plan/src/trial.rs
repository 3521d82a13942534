//! A run with a plan, as the record says: which requests find their places, and what has to be pinned beside the plan.
//!
//! Slots are those of a real run, and so is the engine behind them. A request gets its slot, else a block of the engine, else
//! what slots leave idle; else memory is pinned for it, to the byte. Knows no time and no clears: what is pinned stays.

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region};
use pinbuddy_slots::{Borrowed, Slots, Taken};

use crate::file::{MOST_REGION, Plan};
use crate::record::Record;

/// So many slots are looked at, for requests that get what slots leave idle: a second or two. Then such requests have none.
const MOST_LOOKS: usize = 300_000_000;

/// What a run needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Requests that slots served.
    pub hits: u64,
    /// Requests for which memory was pinned.
    pub pins: u64,
    /// All that was pinned, the plan's regions too, in bytes.
    pub pinned: u64,
}

enum Held {
    Slot(Taken),
    Engine(Block),
    Borrowed(Borrowed),
}

struct Run<'p> {
    plan: &'p Plan,
    slots: Option<Slots>,
    engine: Engine,
    /// Where the next region begins.
    base: usize,
    looks: usize,
    tried: Tried,
}

/// Replays a record with its plan. Of what has no region, since it is too long, nothing is counted.
#[must_use]
pub fn try_out(record: &Record, plan: &Plan) -> Tried {
    let mut run = Run::new(plan);
    let mut held: Vec<Option<Held>> = Vec::new();
    held.resize_with(record.requests.len(), || None);
    let mut lanes: Vec<u32> = record.requests.iter().map(|it| it.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut marks = record.marks.iter().peekable();
    for change in record.all_changes() {
        while marks.next_if(|&&mark| mark < change.moment).is_some() {
            lanes.iter().for_each(|&lane| run.iteration(lane));
        }
        let number = change.number as usize;
        if change.begins {
            let request = &record.requests[number];
            held[number] = run.request(request.lane, request.bytes());
        } else if let Some(it) = held[number].take() {
            run.release(it);
        }
    }
    run.tried
}

impl<'p> Run<'p> {
    fn new(plan: &'p Plan) -> Self {
        let count = plan.with_slots();
        let mut run = Self {
            plan,
            slots: Slots::new(&plan.layout(count)).ok(),
            engine: Engine::new(Config { segment_bytes: MOST_REGION as usize, threshold_bytes: 0 }).mixing(),
            base: 1 << 40,
            looks: 0,
            tried: Tried::default(),
        };
        for (region, &bytes) in plan.regions.iter().enumerate() {
            match &mut run.slots {
                Some(slots) if region < count => {
                    slots.pinned(region, run.base);
                    run.tried.pinned += bytes;
                    run.base += 2 * bytes as usize;
                }
                _ => run.pin(bytes),
            }
        }
        run
    }

    /// The engine has so much more.
    fn pin(&mut self, bytes: u64) {
        let region = Region { base: self.base, bytes: bytes as usize };
        // No region touches another one: they are never one.
        self.base += 2 * bytes as usize;
        self.tried.pinned += bytes;
        if let Ok(segment) = NewSegment::new(region) {
            let _adopted = self.engine.adopt(segment.mixing());
        }
    }

    fn request(&mut self, lane: u32, bytes: u64) -> Option<Held> {
        if let Some(taken) = self.slots.as_mut()?.request(lane, bytes as usize) {
            self.tried.hits += 1;
            return Some(Held::Slot(taken));
        }
        if let Some(slots) = self.slots.as_mut().filter(|it| it.has_only_room())
            && let Some(borrowed) = slots.borrow(bytes as usize)
        {
            return Some(Held::Borrowed(borrowed));
        }
        let class = self.plan.size_class(bytes);
        if let Decision::Block(block) = self.engine.request(class as usize) {
            return Some(Held::Engine(block));
        }
        self.looks += self.plan.slots.len();
        if self.looks <= MOST_LOOKS
            && let Some(borrowed) = self.slots.as_mut()?.borrow(bytes as usize)
        {
            return Some(Held::Borrowed(borrowed));
        }
        self.tried.pins += 1;
        self.pin(class);
        match self.engine.request(class as usize) {
            Decision::Block(block) => Some(Held::Engine(block)),
            _ => None,
        }
    }

    /// Each was taken from its own, which has it.
    fn release(&mut self, held: Held) {
        let _was_in_use = match (held, &mut self.slots) {
            (Held::Slot(taken), Some(slots)) => slots.release(taken.slot),
            (Held::Borrowed(it), Some(slots)) => slots.give_back(it.address),
            (Held::Engine(block), _) => self.engine.release(block).is_ok(),
            (_, None) => false,
        };
    }

    fn iteration(&mut self, lane: u32) {
        if let Some(slots) = &mut self.slots {
            slots.iteration(lane);
        }
    }
}
