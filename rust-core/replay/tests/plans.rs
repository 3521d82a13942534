//! Plans of trainings: nearly nothing lies idle, beside stock on the same requests, and requests find their slots again.

use pinbuddy_events::{Checker, Event, Op};
use pinbuddy_plan::{Plan, Record, check_plan, try_out};
use pinbuddy_replay::policy::stock::Stock;
use pinbuddy_replay::replay::{Replay, Run as _};
use pinbuddy_replay::step::Step;

use crate::programs::{Random, Training, added, changed, planned, record, repeated};

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
        let plan = planned(&recorded, 2_000);
        let (found, stock) = (plan.facts.efficiency, stock_fragmentation(&events));
        training.seed = 9;
        let again = training.events();
        let any = added(&again, 25, 3, |_, random| (4 << 20) + random.below(40 << 20));
        let other = [changed(&again, 50, 5), any, added(&again, 25, 3, |bytes, _| bytes)];
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
    let turns: Vec<u8> = (0..997).map(|_| random.below(3) as u8).collect();
    let body = |lane: u64| (0..40).map(|layer| ((5 + layer % 7 + lane) * 256, 2)).collect();
    let recorded = record(&repeated(&[0, 1, 2].map(body), 6, &turns, false));
    let plan = planned(&recorded, 2_000);
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
    let plan = planned(&recorded, 0);
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
    let plan = planned(&cut, 2_000);
    let replayed = check_plan(&record(&events), &plan);
    assert_eq!(replayed.hits, record(&events).len() as u64);
}
