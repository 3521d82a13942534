//! Plans in the hands of what serves requests with them: `pinbuddy-slots`, as in a run.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region};
use pinbuddy_events::Op;
use pinbuddy_plan::{Options, Plan, plan};
use pinbuddy_slots::Slots;

use crate::programs::{Training, changed, record, shifted, twice};

fn slots(plan: &Plan) -> Slots {
    let mut slots = Slots::new(&plan.layout(plan.regions.len())).unwrap();
    for region in 0..plan.regions.len() {
        slots.pinned(region, (region + 1) << 40);
    }
    slots
}

/// Where a request lies.
enum Place {
    Slot(u32),
    Borrowed(usize),
    Engine(Block),
}

/// What serves requests without a slot: the regions that no slot names, and what is pinned for one request.
struct Without {
    engine: Engine,
    pinned: usize,
}

impl Without {
    fn new(plan: &Plan) -> Self {
        let spare = &plan.regions[plan.with_slots()..];
        let config = Config {
            segment_bytes: spare.iter().max().map_or(1 << 30, |it| *it as usize),
            threshold_bytes: 0,
        };
        let engine = Engine::new(config).mixing();
        let mut new = Self { engine, pinned: 0 };
        spare.iter().for_each(|it| new.adopt(*it as usize));
        new
    }

    fn adopt(&mut self, bytes: usize) {
        self.pinned += 1;
        let region = Region {
            base: self.pinned << 38,
            bytes,
        };
        self.engine.adopt(NewSegment::new(region).unwrap()).unwrap();
    }

    /// A block, or else how much to pin.
    fn request(&mut self, bytes: usize) -> Result<Block, usize> {
        match self.engine.request(bytes) {
            Decision::Block(block) => Ok(block),
            Decision::Pin { bytes } => Err(bytes),
            other => panic!("{other:?}"),
        }
    }
}

/// The requests that slots serve, in percent. Others get what is idle, as in a run.
fn hits(plan: &Plan, events: &[Op]) -> f64 {
    let mut slots = slots(plan);
    let mut live = HashMap::new();
    let (mut requests, mut engine) = (0, Without::new(plan));
    for event in events {
        match *event {
            Op::Request {
                id,
                bytes,
                thread: lane,
                ..
            } => {
                requests += 1;
                if let Some(taken) = slots.request(lane, bytes as usize) {
                    live.insert(id, Place::Slot(taken.slot));
                    continue;
                }
                let place = match engine.request(bytes as usize) {
                    Ok(block) => Place::Engine(block),
                    Err(needed) => {
                        if let Some(borrowed) = slots.borrow(bytes as usize) {
                            Place::Borrowed(borrowed.address)
                        } else {
                            engine.adopt(needed);
                            Place::Engine(engine.request(bytes as usize).unwrap())
                        }
                    }
                };
                live.insert(id, place);
            }
            Op::Free { id, .. } => {
                let released = match live.remove(&id) {
                    Some(Place::Slot(slot)) => slots.release(slot),
                    Some(Place::Borrowed(address)) => slots.give_back(address),
                    Some(Place::Engine(block)) => engine.engine.release(block).is_ok(),
                    None => true,
                };
                assert!(released);
            }
            Op::Iteration => slots.iteration(0),
            _ => {}
        }
    }
    println!(
        "{requests} requests, {} pinned, {:?}",
        engine.pinned,
        slots.counts()
    );
    100.0 * slots.counts().hits as f64 / f64::from(requests)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn requests_find_their_slots_in_a_run() {
    let plain = Training::default();
    for (training, own, other) in [
        (plain, 100.0, 90.0),
        (
            Training {
                recompute: true,
                ..plain
            },
            100.0,
            90.0,
        ),
        (
            Training {
                marks: false,
                ..plain
            },
            100.0,
            90.0,
        ),
        (
            Training {
                loader: true,
                ..plain
            },
            99.0,
            90.0,
        ),
        (
            Training {
                clear: true,
                ..plain
            },
            100.0,
            90.0,
        ),
        (
            Training {
                evaluate: 2,
                iterations: 8,
                ..plain
            },
            95.0,
            90.0,
        ),
        (
            Training {
                evaluate: 7,
                iterations: 8,
                ..plain
            },
            95.0,
            88.0,
        ),
        (
            Training {
                layers: 60,
                micro_batches: 16,
                ..plain
            },
            100.0,
            90.0,
        ),
        (
            Training {
                experts: 25,
                ..plain
            },
            70.0,
            60.0,
        ),
    ] {
        let events = training.events();
        let options = Options {
            threads: 2,
            ..Options::default()
        };
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2_000;
        let plan = plan(&record(&events), &options, &stop);
        let again = Training {
            seed: 2,
            ..training
        }
        .events();
        let others = [
            changed(&again, 50, 3),
            shifted(&again, 25, 3),
            shifted(&again, 50, 3),
        ];
        let found = [&events, &again].into_iter().chain(&others);
        let found: Vec<f64> = found.map(|it| hits(&plan, it)).collect();
        println!(
            "{training:?}: own {:.2} %, again {:.2} %, 5 % changed {:.2} %, shifted {:.2} % {:.2} %",
            found[0], found[1], found[2], found[3], found[4]
        );
        assert!(
            found[0] >= own && found[2] >= other && found[3] >= other,
            "{training:?}: {found:?}"
        );
    }
}

#[test]
fn blocks_that_live_for_several_iterations_take_turns() {
    let mut events = Vec::new();
    for iteration in 0..30 {
        events.push(Op::Iteration);
        let id = iteration * 100;
        for own in 0..30 {
            let bytes = (5 + own % 11) << 20;
            events.push(Op::request(id + own, bytes));
            // One in three lives for two iterations and a half.
            if own % 3 > 0 {
                events.push(Op::free(id + own));
            }
            if own == 15 && iteration >= 2 {
                let gone = (0..30).step_by(3).map(|own| Op::free(id - 200 + own));
                events.extend(gone);
            }
        }
    }
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2_000;
    let plan = plan(&record(&events), &Options::default(), &stop);
    let (steps, turns) = (plan.lanes[0].period.len(), plan.lanes[0].turns);
    assert_eq!((steps % 90, turns as usize), (0, steps / 30));
    let found = hits(&plan, &events);
    assert!(found >= 99.0, "{found}");
}

/// Layers of five sizes: all of a step lives until its end, or a pipeline stage's batches take turns.
fn layers(ahead: usize, batches: usize) -> Vec<Op> {
    let (mut events, mut next) = (Vec::new(), 0);
    for _ in 0..12 {
        let mut open = std::collections::VecDeque::new();
        for batch in 0..batches + ahead {
            if batch >= ahead {
                let ids: std::ops::Range<u64> = open.pop_front().unwrap();
                events.extend(ids.rev().map(Op::free));
            }
            if batch < batches {
                let begin = next;
                for at in 0..30 {
                    let bytes = [8, 12, 8, 8, 28][at % 5] << 20;
                    let (id, lane) = (next, 0);
                    events.push(Op::request(id, bytes).on_thread(lane));
                    next += 1;
                }
                open.push_back(begin..next);
            }
        }
    }
    events
}

#[test]
fn equal_layers_find_their_slots_although_requests_differ() {
    for (ahead, batches) in [(1, 1), (4, 12), (3, 16)] {
        let events = layers(ahead, batches);
        let plan = plan(&record(&events), &Options::default(), &|| true);
        let others = [
            changed(&events, 50, 3),
            shifted(&events, 25, 3),
            shifted(&events, 50, 3),
            twice(&events, 25, 3),
            twice(&events, 50, 3),
        ];
        let found: Vec<f64> = others.iter().map(|it| hits(&plan, it)).collect();
        println!("{ahead} {batches}: {found:.2?}");
        let least = found.into_iter().fold(100.0, f64::min);
        assert!(least >= 90.0, "{ahead}, {batches}: {least}");
    }
}

#[test]
fn what_is_freed_when_the_program_ends_is_kept_for_good() {
    // The optimizer's state is made in the first iteration; the interpreter frees it at the end.
    let mut events = Vec::new();
    let mut next = 0..;
    let mut ask = |events: &mut Vec<Op>, mib: u64| {
        let (id, bytes, lane) = (next.next().unwrap(), mib << 20, 0);
        events.push(Op::request(id, bytes).on_thread(lane));
        id
    };
    let mut state = Vec::new();
    for iteration in 0..8 {
        let live: Vec<u64> = [5, 9, 6, 12].map(|mib| ask(&mut events, mib)).into();
        events.extend(live.into_iter().map(Op::free));
        if iteration == 0 {
            state.extend([20, 31, 22].map(|mib| ask(&mut events, mib)));
        }
    }
    let at_the_end = state.into_iter().map(Op::free);
    let whole: Vec<Op> = events.iter().copied().chain(at_the_end).collect();
    for events in [&events, &whole] {
        let plan = plan(&record(events), &Options::default(), &|| true);
        assert_eq!(plan.regions, [105 << 20]);
        assert!(hits(&plan, events) >= 100.0);
    }
}
