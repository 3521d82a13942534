//! Plans of trainings: nearly nothing lies idle, beside stock on the same requests, and requests find their slots again.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use pinbuddy_events::Op;
use pinbuddy_plan::{Options, Plan, Record, check_plan, plan};
use pinbuddy_replay::policy::{Policy, stock::Stock};

#[path = "../../plan/tests/programs/mod.rs"]
mod programs;
use programs::{LOAD, Random, TRAIN, Training, changed, record};

fn planned(record: &Record) -> Plan {
    let options = Options {
        threads: 2,
        ..Options::default()
    };
    // No clock: so many questions.
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2_000;
    let plan = plan(record, &options, &stop);
    plan.check().unwrap();
    let mut text = Vec::new();
    plan.write(&mut text).unwrap();
    let again = Plan::read(std::str::from_utf8(&text).unwrap()).unwrap();
    assert_eq!((&again.slots, &again.lanes), (&plan.slots, &plan.lanes));
    plan
}

/// How much of what stock pins is not requested, where it needs most.
fn stock_fragmentation(events: &[Op]) -> f64 {
    let mut stock = Stock::default();
    let (mut sizes, mut live, mut peak) = (std::collections::HashMap::new(), 0, 0_u64);
    for event in events {
        match *event {
            Op::Request { id, bytes, .. } => {
                sizes.insert(id, bytes);
                live += bytes;
                peak = peak.max(live);
                stock.allocate(0, id as u32, bytes);
            }
            Op::Free { id, .. } => {
                live -= sizes.remove(&id).unwrap();
                stock.free(id as u32, &[]);
            }
            Op::Clear => stock.clear(0),
            _ => {}
        }
    }
    1.0 - peak as f64 / stock.pins().peak as f64
}

/// Plans one run and replays it, and another one with one request in twenty changed: the other one's hits
/// in percent. `efficiency` is the least.
fn try_out(training: Training, efficiency: f64) -> f64 {
    let events = training.events();
    let recorded = record(&events);
    let plan = planned(&recorded);
    let own = check_plan(&recorded, &plan);
    let (found, stock) = (plan.facts.efficiency, stock_fragmentation(&events));
    let other = record(&changed(
        &Training {
            seed: 9,
            ..training
        }
        .events(),
        50,
        5,
    ));
    let replayed = check_plan(&other, &plan);
    let hits = 100.0 * replayed.hits as f64 / other.len() as f64;
    println!(
        "{training:?}: efficiency {found:.3}, stock's {:.3}, gap {:.2} %, {} iterations, own hits {} of {}, \
         with 5 % changed {hits:.2} %",
        1.0 - stock,
        plan.facts.gap_percent,
        plan.facts.iterations,
        own.hits,
        recorded.len(),
    );
    assert!(found >= efficiency, "{found}");
    assert!(1.0 - found <= 0.15 * stock, "fragmentation of {stock}");
    assert!(own.hits >= recorded.len() as u64 / 20 * 14);
    if training.experts == 0 && training.evaluate == 0 {
        assert_eq!(own.overlap, None);
        assert_eq!(own.hits, recorded.len() as u64);
    }
    hits
}

#[test]
fn dense_training() {
    let plain = Training::default();
    for training in [
        plain,
        Training {
            recompute: true,
            ..plain
        },
        Training {
            clear: true,
            ..plain
        },
        Training {
            marks: false,
            ..plain
        },
        Training {
            loader: true,
            ..plain
        },
        Training {
            loader: true,
            marks: false,
            ..plain
        },
    ] {
        let hits = try_out(training, 0.99);
        assert!(hits >= 90.0, "{hits}");
    }
}

#[test]
fn evaluation_phases() {
    for every in [2, 3, 7] {
        let training = Training {
            evaluate: every,
            iterations: 8,
            ..Training::default()
        };
        let hits = try_out(training, 0.99);
        assert!(hits >= 90.0, "{hits}");
    }
}

#[test]
fn sizes_of_experts_that_vary() {
    for jitter in [5, 30] {
        let training = Training {
            experts: 25,
            jitter,
            ..Training::default()
        };
        let hits = try_out(training, 0.95);
        // A third of the layers is irregular.
        assert!(hits >= 60.0, "{hits}");
    }
}

#[test]
fn sizes_that_never_come_again_get_an_amount() {
    // Steps of sequences whose lengths differ, as with batches of texts.
    let mut random = Random::new(3);
    let (mut events, mut id) = (Vec::new(), 0);
    for _ in 0..200 {
        let length = 1000 + random.below(3000);
        let first = id;
        for layer in 0..24 {
            for hidden in [8 << 10, 5 << 10, 12 << 10] {
                let bytes = length * hidden + layer % 3;
                events.push(Op::request(id, bytes).on_thread(TRAIN));
                id += 1;
            }
        }
        events.extend((first..id).rev().map(Op::free));
    }
    let plan = planned(&record(&events));
    println!(
        "efficiency {:.3}, {:?}",
        plan.facts.efficiency, plan.regions
    );
    assert!(plan.slots.is_empty());
    assert!(
        plan.facts.efficiency >= 1.0 / 1.08,
        "{}",
        plan.facts.efficiency
    );
}

#[test]
fn an_amount_is_roomy_where_blocks_go_in_no_order() {
    let mut random = Random::new(3);
    let (mut events, mut live) = (Vec::new(), Vec::new());
    for id in 0..20_000 {
        let bytes = (4 << 20) + random.below(60 << 20);
        events.push(Op::request(id, bytes).on_thread(TRAIN));
        live.push(id);
        while live.len() > 60 + (id as usize / 100) % 40 {
            let gone = live.swap_remove(random.below(live.len() as u64) as usize);
            events.push(Op::free(gone));
        }
    }
    let plan = planned(&record(&events));
    println!(
        "efficiency {:.3}, {:?}",
        plan.facts.efficiency, plan.regions
    );
    assert!(plan.slots.is_empty());
    assert!(plan.facts.efficiency >= 0.78, "{}", plan.facts.efficiency);
}

#[test]
fn blocks_that_live_for_several_iterations_take_turns() {
    let mut events = Vec::new();
    for iteration in 0..12 {
        events.push(Op::Iteration);
        let id = iteration * 10;
        events.push(Op::request(id, 6 << 20).on_thread(LOAD));
        for own in 1..4 {
            events.push(Op::request(id + own, (8 + own) << 20).on_thread(TRAIN));
        }
        (1..4).for_each(|own| events.push(Op::free(id + own)));
        if iteration >= 2 {
            events.push(Op::free(id - 20));
        }
    }
    let recorded = record(&events);
    let plan = planned(&recorded);
    assert_eq!(plan.lanes[LOAD as usize].period.len(), 3, "{plan:?}");
    let replayed = check_plan(&recorded, &plan);
    assert_eq!(
        (replayed.overlap, replayed.hits),
        (None, recorded.len() as u64)
    );
    assert_eq!(plan.regions, [recorded.peak()]);
}

#[test]
fn threads_with_no_order_between_them_do_not_share() {
    let mut random = Random::new(11);
    let mut scripts: Vec<std::collections::VecDeque<Op>> = (0..3_u32)
        .map(|lane| {
            let mut own = std::collections::VecDeque::new();
            for iteration in 0..6 {
                for layer in 0..40_u64 {
                    let id = (u64::from(lane) << 32) + iteration * 1000 + layer;
                    let bytes = (5 + layer % 7 + u64::from(lane)) << 20;
                    own.push_back(Op::request(id, bytes).on_thread(lane));
                    if layer >= 2 {
                        own.push_back(Op::free(id - 2));
                    }
                }
                let last = (u64::from(lane) << 32) + iteration * 1000 + 38;
                own.extend([Op::free(last), Op::free(last + 1)]);
            }
            own
        })
        .collect();
    let mut events = Vec::new();
    while scripts.iter().any(|it| !it.is_empty()) {
        let lane = random.below(3) as usize;
        events.extend(scripts[lane].pop_front());
    }
    let recorded = record(&events);
    let plan = planned(&recorded);
    let replayed = check_plan(&recorded, &plan);
    assert_eq!(replayed.overlap, None);
    println!(
        "{:.3} hits {} of {}",
        plan.facts.efficiency,
        replayed.hits,
        recorded.len()
    );
    assert!(
        replayed.hits as usize * 10 >= recorded.len() * 9,
        "{}",
        replayed.hits
    );
    assert!(plan.facts.efficiency >= 0.75, "{}", plan.facts.efficiency);
}

#[test]
fn a_plan_is_there_at_once() {
    let recorded = record(&Training::default().events());
    let plan = plan(&recorded, &Options::default(), &|| true);
    plan.check().unwrap();
    let replayed = check_plan(&recorded, &plan);
    assert_eq!(
        (replayed.overlap, replayed.hits),
        (None, recorded.len() as u64)
    );
    assert!(plan.facts.efficiency >= 0.78, "{}", plan.facts.efficiency);
}

#[test]
fn a_full_record_takes_no_more_and_is_planned() {
    let events = Training::default().events();
    let mut cut = Record::new(events.len() as u32 * 3 / 4);
    let taken = events.iter().take_while(|&&event| cut.push(event)).count();
    assert!(cut.is_full() && taken < events.len());
    assert!(!cut.push(events[taken]));
    let plan = planned(&cut);
    let replayed = check_plan(&record(&events), &plan);
    assert_eq!(replayed.hits, record(&events).len() as u64);
}
