//! Whose a plan is: whether it serves what a run that is recorded beside it asks for first.
//!
//! A file has one plan, and programs that name the same file by mistake would take it from each other. What tells them apart is
//! at hand: of as many requests as the plan was made of, the same program finds places for most. Requests are served here as at
//! run time, from places that are no memory. Knows neither files nor the engine.

use std::collections::HashMap;

use pinbuddy_events::Op;
use pinbuddy_plan::Plan;
use pinbuddy_slots::{Served, Slots};

use super::WHOLE;
use crate::log::Bytes;

/// An amount promises room for all: one that lacks it for more than one in so many is too little.
const LACKS_ONE_IN: usize = 10;

/// Regions begin so many bytes apart: further than any is long.
const APART: usize = 1 << 37;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Trial {
    /// None where the plan is an amount, or of a run that comes once: then it is an amount to any other.
    slots: Option<Slots>,
    /// So much lives at once without a slot.
    amount: u64,
    unslotted: u64,
    /// The most bytes that lived at once in the run that was planned.
    planned_peak: u64,
    /// So many requests tell.
    enough: usize,
    counted: Served,
    /// By request: its slot, if it has one, and its bytes.
    live: HashMap<u64, (Option<u32>, u64)>,
    live_bytes: u64,
    peak: u64,
    threads: u32,
}

impl Trial {
    /// Nothing was asked for yet.
    pub(super) fn of(plan: &Plan) -> Self {
        let own = plan.with_slots();
        let slots =
            (!plan.slots.is_empty() && !plan.comes_once()).then(|| Slots::new(&plan.layout(own)).ok()).flatten();
        let room = if slots.is_some() { own } else { 0 };
        let mut trial = Self {
            slots,
            amount: plan.regions[room..].iter().sum(),
            unslotted: 0,
            planned_peak: plan.facts.peak,
            enough: plan.facts.requests.min(WHOLE) as usize,
            counted: Served::default(),
            live: HashMap::new(),
            live_bytes: 0,
            peak: 0,
            threads: 0,
        };
        if let Some(slots) = &mut trial.slots {
            (0..own).for_each(|region| slots.pinned(region, APART * (region + 1)));
        }
        trial
    }

    /// What the program did; what is no plan's was left out.
    pub(super) fn event(&mut self, op: Op) {
        match op {
            Op::Request { id, bytes, thread, .. } => self.request(id, bytes, thread),
            Op::Iteration => {
                if let Some(slots) = &mut self.slots {
                    (0..self.threads).for_each(|thread| slots.iteration(thread));
                }
            }
            op => {
                if let Some((slot, bytes)) = op.over().and_then(|id| self.live.remove(&id)) {
                    self.live_bytes -= bytes;
                    match (&mut self.slots, slot) {
                        (Some(slots), Some(slot)) => _ = slots.release(slot),
                        _ => self.unslotted -= bytes,
                    }
                }
            }
        }
    }

    fn request(&mut self, id: u64, bytes: u64, thread: u32) {
        let slot = match &mut self.slots {
            Some(slots) => slots.request(thread, bytes as usize).map(|it| it.slot),
            None => None,
        };
        self.threads = self.threads.max(thread + 1);
        self.live_bytes += bytes;
        self.peak = self.peak.max(self.live_bytes);
        if slot.is_none() {
            self.unslotted += bytes;
        }
        let has_place = slot.is_some() || self.unslotted <= self.amount;
        self.counted.asked += 1;
        self.counted.served += usize::from(has_place);
        self.live.insert(id, (slot, bytes));
    }

    /// Whether enough was asked for.
    pub(super) fn is_over(&self) -> bool {
        self.counted.asked >= self.enough
    }

    /// Whether half of that was, or most had no place of their own.
    pub(super) fn tells(&self) -> bool {
        let is_misfit = self.slots.is_some() && self.counted.is_misfit();
        is_misfit || self.counted.asked * 2 >= self.enough
    }

    /// Whether the plan is this program's. An amount is if it is no more than twice what lives at once, nor less than half: how far
    /// the program runs ahead of its GPU differs from run to run.
    pub(super) fn fits(&self) -> bool {
        if self.slots.is_some() {
            return self.counted.fits();
        }
        self.peak.saturating_mul(2) >= self.planned_peak && self.peak <= self.amount.saturating_mul(2)
    }

    /// Why it does not fit.
    pub(super) fn why(&self) -> String {
        let Served { served, asked } = self.counted;
        if self.slots.is_some() {
            return format!("of its first {asked} requests {served} had a place");
        }
        let [room, used] = [self.amount, self.peak].map(Bytes);
        format!("it has room for {room}, and the first {asked} requests use {used} at most")
    }

    /// Whether it does for this run as much as it promised, so that it needs not be renewed.
    pub(super) fn keeps_its_word(&self) -> bool {
        let Served { served, asked } = self.counted;
        self.fits() && (self.slots.is_some() || (asked - served) * LACKS_ONE_IN <= asked)
    }
}

#[cfg(test)]
mod tests {
    use pinbuddy_events::Op;
    use pinbuddy_plan::{Options, Record, plan};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The plan of a run that asks for these, one after the other.
    fn of(sizes: &[u64]) -> Plan {
        let mut record = Record::new(10_000);
        for (id, bytes) in (1..).zip(sizes.iter().map(|it| it * MIB)) {
            record.push(Op::request(id, bytes));
            record.push(Op::free(id));
        }
        plan(&record, &Options::default(), &|| false)
    }

    fn tried(plan: &Plan, sizes: impl Iterator<Item = u64>) -> Trial {
        let mut trial = Trial::of(plan);
        for (id, bytes) in (1..).zip(sizes.map(|it| it * MIB)) {
            if trial.is_over() {
                break;
            }
            trial.event(Op::request(id, bytes));
            trial.event(Op::free(id));
        }
        trial
    }

    #[test]
    fn a_program_that_goes_on_where_its_first_run_ended_is_the_same() {
        let step = [5, 7, 6, 9];
        for recorded in [3, 4, 40] {
            let sizes: Vec<u64> = step.into_iter().cycle().take(recorded).collect();
            let trial = tried(&of(&sizes), step.into_iter().cycle());
            assert!(trial.is_over() && trial.fits(), "{trial:?}");
        }
    }

    #[test]
    fn what_a_plans_room_holds_has_a_place() {
        // One size comes again, and batches of a length of their own lie in the room.
        let sizes = || (0..60).map(|it| if it % 3 == 0 { 4 } else { 8 + it * 7 % 50 });
        let mut plan = of(&[4; 60]);
        let fits = |plan: &Plan| tried(plan, sizes()).fits();
        assert!(plan.with_slots() == 1 && !fits(&plan));
        plan.regions.push(60 * MIB);
        assert!(fits(&plan));
    }

    #[test]
    fn a_program_that_asks_for_something_else_is_another_one() {
        let sizes: Vec<u64> = [5, 7, 6, 9].into_iter().cycle().take(40).collect();
        let trial = tried(&of(&sizes), [11, 5, 13, 12].into_iter().cycle());
        assert!(trial.is_over() && !trial.fits());
        let Served { served, asked } = trial.counted;
        assert!(asked == 40 && served <= 10, "{served} of {asked}");
        let said = format!("of its first 40 requests {served} had a place");
        assert_eq!(trial.why(), said);
    }

    #[test]
    fn an_amount_tells_by_how_much_lives_at_once() {
        let plan = Plan {
            regions: vec![64 * MIB],
            facts: pinbuddy_plan::file::Facts { requests: 100, peak: 60 * MIB, ..Default::default() },
            ..Plan::default()
        };
        let fits = |bytes| tried(&plan, std::iter::repeat(bytes)).fits();
        assert_eq!([4, 29, 30, 64, 128, 129].map(fits), [false, false, true, true, true, false]);
        let why = |bytes| tried(&plan, std::iter::repeat(bytes)).why();
        let used = |mib| format!("it has room for 64 MiB, and the first 100 requests use {mib} MiB at most");
        assert_eq!([4, 129].map(why), [4, 129].map(used));
        // Every third, and every twelfth, is larger than all of it.
        let word = |one_in| {
            let sizes = (1..).map(move |it| if it % one_in == 0 { 65 } else { 60 });
            let trial = tried(&plan, sizes);
            (trial.fits(), trial.keeps_its_word())
        };
        assert_eq!([3, 12].map(word), [(true, false), (true, true)]);
    }
}
