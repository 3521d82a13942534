//! A run with a plan, as the record says: which requests find their places, and what has to be pinned beside the plan.
//!
//! Slots are those of a real run, and so is the engine behind them. A request gets its slot, else a block of the engine, else
//! what slots leave idle; else memory is pinned for it, to the byte. Knows no time and no clears: what is pinned stays.

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region};
use pinbuddy_slots::{Borrowed, Slots, Taken};

use crate::file::{MOST_REGION, Plan, Slot};
use crate::record::{Change, Record};

/// Slots that are looked at for requests that get what slots leave idle: a second or two. Behind them such requests have none.
const MOST_LOOKS: usize = 300_000_000;

/// What a run needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Requests that slots served.
    pub hits: u64,
    /// Requests that found their slot taken, and no other of its size.
    pub busy: u64,
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

/// A run with a plan under way.
struct Run<'p> {
    plan: &'p Plan,
    slots: Option<Slots>,
    engine: Engine,
    /// Where the next region begins.
    base: usize,
    looks: usize,
    /// By the number of the request.
    held: Vec<Option<Held>>,
    tried: Tried,
}

/// Replays a record with its plan. Of what has no region, since it is too long, nothing is counted.
#[must_use]
pub fn try_out(record: &Record, plan: &Plan) -> Tried {
    replay(record, plan, &mut |_, _| {})
}

/// The same: the slot that each request gets.
#[must_use]
pub fn places(record: &Record, plan: &Plan) -> Vec<Option<Slot>> {
    let mut places = vec![None; record.len()];
    replay(record, plan, &mut |number, slot| {
        places[number as usize] = Some(plan.slots[slot as usize]);
    });
    places
}

/// Whether regions without slots serve all that happens to these requests.
pub(crate) fn serve(record: &Record, changes: &[Change], regions: Vec<u64>) -> bool {
    let plan = &Plan {
        regions,
        ..Plan::default()
    };
    let mut run = Run::new(record, plan);
    changes.iter().all(|change| {
        run.change(record, change);
        run.tried.pins == 0
    })
}

fn replay(record: &Record, plan: &Plan, granted: &mut dyn FnMut(u32, u32)) -> Tried {
    let mut run = Run::new(record, plan);
    let mut lanes: Vec<u32> = record.requests.iter().map(|it| it.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut marks = record.marks.iter().peekable();
    for change in record.all_changes() {
        while marks.next_if(|&&mark| mark < change.moment).is_some() {
            let slots = run.slots.iter_mut();
            slots.for_each(|it| lanes.iter().for_each(|&lane| it.iteration(lane)));
        }
        if let Some(slot) = run.change(record, &change) {
            granted(change.number, slot);
        }
    }
    run.tried.busy = run.slots.map_or(0, |it| it.counts().misses);
    run.tried
}

impl<'p> Run<'p> {
    fn new(record: &Record, plan: &'p Plan) -> Self {
        let count = plan.with_slots();
        let mut held = Vec::new();
        held.resize_with(record.len(), || None);
        let mut run = Self {
            plan,
            slots: Slots::new(&plan.layout(count)).ok(),
            engine: Engine::new(Config {
                segment_bytes: MOST_REGION as usize,
                threshold_bytes: 0,
            })
            .mixing(),
            base: 1 << 40,
            looks: 0,
            held,
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
        let region = Region {
            base: self.base,
            bytes: bytes as usize,
        };
        // No region touches another one: they are never one.
        self.base += 2 * bytes as usize;
        self.tried.pinned += bytes;
        if let Ok(segment) = NewSegment::new(region) {
            // Without its segment the engine serves less.
            let _adopted = self.engine.adopt(segment.mixing());
        }
    }

    /// A request begins or is over. The slot that it got, if it did.
    fn change(&mut self, record: &Record, change: &Change) -> Option<u32> {
        let number = change.number as usize;
        if !change.begins {
            if let Some(it) = self.held[number].take() {
                self.release(it);
            }
            return None;
        }
        let request = &record.requests[number];
        self.held[number] = self.request(request.lane, request.bytes());
        match self.held[number] {
            Some(Held::Slot(taken)) => Some(taken.slot),
            _ => None,
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
}
