//! Plans of trainings: nearly nothing lies idle, beside stock on the same requests, and requests find their slots again.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use pinbuddy_events::{Checker, Event, Op};
use pinbuddy_plan::{Options, Plan, Record, check_plan, plan, try_out};
use pinbuddy_replay::policy::stock::Stock;
use pinbuddy_replay::replay::{Replay, Run as _};
use pinbuddy_replay::step::Step;

#[path = "../../plan/tests/programs/mod.rs"]
mod programs;
use programs::{Random, Training, changed, record, shifted, twice};

fn planned(record: &Record) -> Plan {
    let options = Options { threads: 2, ..Options::default() };
    // No clock: so many questions.
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) > 2_000;
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
    let mut checker = Checker::default();
    let mut stock = Replay::new(Stock::default());
    for (line, event) in (1..).zip(events) {
        let step = Step::checked(&mut checker, line, Event::host(0, *event));
        step.unwrap().into_iter().for_each(|it| stock.step(it));
    }
    1.0 - 1.0 / stock.outcome().pinned_over_requested.unwrap()
}

/// Percent of a run's requests that slots of a plan serve.
fn hits(plan: &Plan, events: &[Op]) -> f64 {
    let record = record(events);
    100.0 * try_out(&record, plan).hits as f64 / record.len() as f64
}

#[test]
fn trainings_waste_nothing_and_requests_of_other_runs_find_their_slots() {
    type Change = fn(&mut Training);
    let deep: Change = |it| (it.layers, it.micro_batches) = (60, 16);
    // The least efficiency, and percent of hits: of the run itself, and of others of which one request in twenty is another one, or
    // one in forty is left out and one added, which has any size or that of the one before it.
    let kinds: [(Change, f64, f64, f64); 12] = [
        (|_| {}, 0.99, 100.0, 90.0),
        (|it| it.recompute = true, 0.99, 100.0, 90.0),
        (|it| it.clear = true, 0.99, 100.0, 90.0),
        (|it| it.marks = false, 0.99, 100.0, 90.0),
        (|it| it.loader = true, 0.99, 99.0, 90.0),
        (|it| (it.loader, it.marks) = (true, false), 0.99, 99.0, 90.0),
        (|it| (it.evaluate, it.iterations) = (2, 8), 0.99, 95.0, 88.0),
        (|it| (it.evaluate, it.iterations) = (3, 8), 0.99, 95.0, 88.0),
        (|it| (it.evaluate, it.iterations) = (7, 8), 0.99, 95.0, 88.0),
        (deep, 0.99, 100.0, 90.0),
        (|it| (it.experts, it.jitter) = (25, 5), 0.95, 70.0, 60.0),
        (|it| it.experts = 25, 0.95, 70.0, 60.0),
    ];
    for (change, efficiency, own, others) in kinds {
        let mut training = Training::default();
        change(&mut training);
        let events = training.events();
        let recorded = record(&events);
        let plan = planned(&recorded);
        let (found, stock) = (plan.facts.efficiency, stock_fragmentation(&events));
        training.seed = 9;
        let again = training.events();
        let other = [changed(&again, 50, 5), shifted(&again, 25, 3), twice(&again, 25, 3)];
        let own_hits = hits(&plan, &events);
        let hits = other.map(|it| hits(&plan, &it));
        println!(
            "{training:?}: efficiency {found:.3}, stock's {:.3}, gap {:.2} %, hits in percent {own_hits:.2}, {hits:.2?}",
            1.0 - stock,
            plan.facts.gap_percent,
        );
        assert!(found >= efficiency, "{found}");
        assert!(1.0 - found <= 0.15 * stock, "fragmentation of {stock}");
        assert!(own_hits >= own, "{own_hits}");
        assert!(hits.iter().all(|it| *it >= others), "{hits:?}");
        if own == 100.0 {
            assert_eq!(check_plan(&recorded, &plan).busy, 0);
        }
    }
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
    assert_eq!(replayed.busy, 0);
    let (hits, all) = (replayed.hits as usize, recorded.len());
    println!("{:.3} hits {hits} of {all}", plan.facts.efficiency);
    assert!(hits * 10 >= all * 9, "{hits}");
    assert!(plan.facts.efficiency >= 0.75, "{}", plan.facts.efficiency);
}

#[test]
fn a_plan_is_there_at_once() {
    let recorded = record(&Training::default().events());
    let plan = plan(&recorded, &Options::default(), &|| true);
    plan.check().unwrap();
    let replayed = check_plan(&recorded, &plan);
    assert_eq!((replayed.busy, replayed.hits), (0, recorded.len() as u64));
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
