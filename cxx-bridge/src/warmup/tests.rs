//! Turns, waits and what is owed.

use super::*;
use std::thread;

#[test]
fn one_turn_at_a_time_and_only_with_something_to_do() {
    let warm_up = WarmUp::new(1);
    assert_eq!(warm_up.progress().phase, "cold");
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    assert!(warm_up.begin(Task::Growth).is_none());
    assert_eq!(warm_up.progress().phase, "running");
    assert!(ticket.next());
    ticket.brought();
    assert!(!ticket.next(), "only one was owed");
    drop(ticket);
    assert_eq!(warm_up.progress().phase, "done");
    assert!(warm_up.begin(Task::WarmUp).is_none());
    assert!(warm_up.begin(Task::Growth).unwrap().next());
}

#[test]
fn a_waiter_wakes_for_each_segment_and_for_the_end() {
    let warm_up = WarmUp::new(2);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            warm_up.wait(0);
            let first = warm_up.brought();
            warm_up.wait(1);
            warm_up.wait_until_over();
            (first, warm_up.under_way().is_none())
        });
        ticket.brought();
        drop(ticket);
        assert_eq!(waiter.join().unwrap(), (1, true));
    });
}

#[test]
fn progress_made_before_the_wait_is_not_slept_through() {
    let warm_up = WarmUp::new(1);
    let seen = warm_up.brought();
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    ticket.brought();
    warm_up.wait(seen);
}

#[test]
fn the_warm_up_lets_requests_go_first() {
    let warm_up = WarmUp::new(2);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    let aside = warm_up.step_aside();
    thread::scope(|scope| {
        let warming = scope.spawn(|| ticket.next());
        thread::sleep(Duration::from_millis(20));
        assert!(!warming.is_finished());
        drop(aside);
        assert!(warming.join().unwrap());
    });
}

#[test]
fn it_lets_nobody_go_first_while_others_wait_for_it() {
    let warm_up = WarmUp::new(2);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    let _aside = warm_up.step_aside();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| warm_up.wait(0));
        assert!(ticket.next());
        ticket.brought();
        waiter.join().unwrap();
    });
}

#[test]
fn it_does_not_wait_for_others_once_it_owes_nothing() {
    let warm_up = WarmUp::new(1);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    let _aside = warm_up.step_aside();
    thread::scope(|scope| {
        let warming = scope.spawn(|| ticket.next());
        thread::sleep(Duration::from_millis(20));
        warm_up.credit(100, 100);
        assert!(!warming.join().unwrap());
    });
}

#[test]
fn what_requests_pin_by_themselves_is_owed_no_more() {
    let warm_up = WarmUp::new(3);
    warm_up.credit(60, 100);
    assert_eq!(warm_up.progress().owed, 3);
    warm_up.credit(60, 100);
    assert_eq!(warm_up.progress().owed, 2);
    warm_up.credit(480, 100);
    assert_eq!(warm_up.progress().owed, 0);
    warm_up.credit(1000, 100);
    warm_up.owe(2);
    assert_eq!(
        warm_up.progress().owed,
        2,
        "after the warm-up nothing is credited"
    );
}

#[test]
fn a_pause_ends_the_turn_and_keeps_the_rest_owed() {
    let warm_up = WarmUp::new(5);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    assert!(ticket.next());
    warm_up.pause();
    ticket.brought();
    assert!(!ticket.next() && ticket.is_paused());
    drop(ticket);
    warm_up.owe(1);
    let progress = warm_up.progress();
    assert_eq!((progress.phase, progress.owed), ("paused", 5));
    let again = warm_up.begin(Task::WarmUp).unwrap();
    assert!(again.next(), "a new turn is not paused");
}

#[test]
fn giving_up_owes_nothing_and_says_why() {
    let warm_up = WarmUp::new(5);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    warm_up.give_up("no memory");
    assert!(!ticket.next());
    drop(ticket);
    assert_eq!(warm_up.progress().stopped.as_deref(), Some("no memory"));
    assert!(warm_up.begin(Task::WarmUp).is_none());
}

#[test]
fn closing_waits_for_the_turn_but_not_for_ever() {
    let warm_up = WarmUp::new(1);
    let ticket = warm_up.begin(Task::WarmUp).unwrap();
    warm_up.close(Duration::from_millis(20));
    assert!(!ticket.next());
    thread::scope(|scope| {
        let closer = scope.spawn(|| warm_up.close(Duration::from_secs(100)));
        drop(ticket);
        closer.join().unwrap();
    });
    assert!(warm_up.begin(Task::Growth).is_none());
}

#[test]
fn a_panic_while_warming_up_ends_the_turn() {
    let warm_up = WarmUp::new(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ticket = warm_up.begin(Task::WarmUp).unwrap();
        panic!("a pin that blew up");
    }));
    assert!(caught.is_err());
    warm_up.wait(0);
    assert!(warm_up.begin(Task::WarmUp).is_some());
}
