//! Plans in the hands of what serves requests with them: `pinbuddy-slots`, as in a run.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use pinbuddy_plan::{Event, Options, Plan, plan};
use pinbuddy_slots::{Lane, Layout, Slot, Slots};

mod programs;
use programs::{Training, changed, record, shifted};

fn slots(plan: &Plan) -> Slots {
    let slot = |it: &pinbuddy_plan::file::Slot| Slot {
        bytes: it.bytes as usize,
        region: it.region,
        offset: it.offset as usize,
    };
    let lane = |it: &pinbuddy_plan::file::Lane| Lane {
        prologue: it.prologue.clone(),
        period: it.period.clone(),
        turns: it.turns,
    };
    let mut slots = Slots::new(&Layout {
        regions: plan.regions.iter().map(|&it| it as usize).collect(),
        slots: plan.slots.iter().map(slot).collect(),
        lanes: plan.lanes.iter().map(lane).collect(),
    })
    .unwrap();
    for region in 0..plan.regions.len() {
        slots.pinned(region, (region + 1) << 40);
    }
    slots
}

/// The requests that slots serve, in percent.
fn hits(plan: &Plan, events: &[Event]) -> f64 {
    let mut slots = slots(plan);
    let mut live = HashMap::new();
    let mut requests = 0;
    for event in events {
        match *event {
            Event::Request { id, bytes, lane } => {
                requests += 1;
                if let Some(taken) = slots.request(lane, bytes as usize) {
                    live.insert(id, taken.slot);
                }
            }
            Event::Over { id } => {
                if let Some(slot) = live.remove(&id) {
                    assert!(slots.release(slot));
                }
            }
            Event::Iteration => slots.iteration(0),
            Event::Clear => {}
        }
    }
    100.0 * slots.counts().hits as f64 / f64::from(requests)
}

#[test]
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
            found[0] >= own && found[2] >= other,
            "{training:?}: {found:?}"
        );
    }
}

#[test]
fn blocks_that_live_for_several_iterations_take_turns() {
    let mut events = Vec::new();
    for iteration in 0..30 {
        events.push(Event::Iteration);
        let id = iteration * 100;
        for own in 0..30 {
            let bytes = (5 + own % 11) << 20;
            events.push(Event::Request {
                id: id + own,
                bytes,
                lane: 0,
            });
            // One in three lives for two iterations and a half.
            if own % 3 > 0 {
                events.push(Event::Over { id: id + own });
            }
            if own == 15 && iteration >= 2 {
                let gone = (0..30)
                    .step_by(3)
                    .map(|own| Event::Over { id: id - 200 + own });
                events.extend(gone);
            }
        }
    }
    let plan = plan(&record(&events), &Options::default(), &|| true);
    assert_eq!((plan.lanes[0].period.len(), plan.lanes[0].turns), (90, 3));
    let found = hits(&plan, &events);
    assert!(found >= 99.0, "{found}");
}
