//! Sinks that come, go, fail and panic, in front of rings that a test fills.

use std::sync::{Arc, Mutex};

use super::super::merge::tests::rings::Rings;
use super::super::source::{Allocation, Entry, Kind, Lost};
use super::*;
use crate::handle::tests::until;
use pinbuddy_events::{Event, Op, Whose};

/// What a sink has heard.
#[derive(Default)]
struct Heard {
    ops: Vec<Op>,
    ended: u32,
    enough: bool,
}

#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Heard>>, bool);

impl Listener {
    fn trace() -> Self {
        Self(Arc::default(), true)
    }
    /// The trace that begins now, if one may.
    fn started(recorder: &'static Tested) -> Result<Self, String> {
        let trace = Self::trace();
        recorder.start(|| Ok(Box::new(trace.clone()))).map(|()| trace)
    }
    fn count(&self) -> usize {
        self.0.lock().unwrap().ops.len()
    }
    fn ended(&self) -> u32 {
        self.0.lock().unwrap().ended
    }
}

impl Sink for Listener {
    fn event(&mut self, event: Event) {
        self.0.lock().unwrap().ops.push(event.op);
    }
    fn lost(&mut self, _: Lost) {}
    fn is_trace(&self) -> bool {
        self.1
    }
    fn wants_more(&self) -> bool {
        !self.0.lock().unwrap().enough
    }
    fn end(&mut self) {
        self.0.lock().unwrap().ended += 1;
    }
}

type Tested = Recorder<&'static Rings>;

/// For the rest of the process, as the real one.
fn recorder() -> (&'static Tested, &'static Rings) {
    let rings: &Rings = Box::leak(Box::default());
    (Box::leak(Box::new(Recorder::new(rings))), rings)
}

/// The same with a sink of the settings' that hears of all, once it has begun.
fn listening() -> (&'static Tested, &'static Rings, Listener) {
    let ((recorder, rings), heard) = (recorder(), Listener::default());
    rings.record(1);
    recorder.begin(|| vec![Box::new(heard.clone())]);
    (recorder, rings, heard)
}

const ASKED: Kind = Kind::Event(Op::request(0, 8));
const FREED: Kind = Kind::Free { events: 0 };

/// A program does this, if it is recorded.
fn act(rings: &'static Rings, number: u64, kind: Kind) {
    let session = rings.session.get();
    if session != 0 {
        let (ticks, allocation) = (rings.ticks(), Allocation(u64::from(session) << 48 | number));
        rings.put(0, 0, &[Entry { ticks, allocation, whose: Whose::Host, kind }]);
    }
}

/// It makes a request and frees it.
fn work(rings: &'static Rings, number: u64) {
    [ASKED, FREED].into_iter().for_each(|kind| act(rings, number, kind));
}

#[test]
fn the_settings_sinks_hear_of_the_first_request_and_of_the_last() {
    let (recorder, rings) = recorder();
    let heard = Listener::default();
    rings.record(1);
    work(rings, 1);
    recorder.begin(|| vec![Box::new(heard.clone())]);
    recorder.begin(|| panic!("once"));
    work(rings, 2);
    recorder.close();
    assert_eq!((heard.count(), heard.ended()), (4, 1));
    assert_eq!(rings.session.get(), 0);
    recorder.close();
}

#[test]
fn traces_come_and_go_beside_another_sink() {
    let (recorder, rings, other) = listening();
    assert!(!recorder.stop(), "there is no trace");
    for round in 0..5 {
        let trace = Listener::started(recorder).unwrap();
        let second = recorder.start(|| panic!("one at a time"));
        assert!(second.unwrap_err().contains("already"));
        work(rings, 10 * round + 1);
        assert!(recorder.stop());
        work(rings, 10 * round + 2);
        assert_eq!((trace.count(), trace.ended()), (2, 1));
    }
    recorder.close();
    assert_eq!((other.count(), other.ended()), (20, 1));
}

#[test]
fn a_sink_does_not_hear_of_blocks_from_before_it_came() {
    let (recorder, rings, other) = listening();
    act(rings, 9, ASKED);
    let trace = Listener::started(recorder).unwrap();
    act(rings, 9, FREED);
    assert!(recorder.stop());
    recorder.close();
    assert_eq!((other.count(), trace.count()), (2, 0));
}

#[test]
fn what_cannot_start_changes_nothing_and_what_has_enough_ends() {
    let (recorder, rings) = recorder();
    recorder.begin(Vec::new);
    let why = recorder.start(|| Err("no file".to_owned()));
    assert_eq!(why.unwrap_err(), "no file");
    let trace = Listener::started(recorder).unwrap();
    work(rings, 1);
    trace.0.lock().unwrap().enough = true;
    until("it ends", || rings.session.get() == 0);
    assert_eq!(trace.ended(), 1);
    until("the next one begins", || Listener::started(recorder).is_ok());
    assert!(recorder.stop());
}

#[test]
fn a_panic_of_a_sink_ends_the_recording_alone() {
    struct Bad;
    impl Sink for Bad {
        fn event(&mut self, _: Event) {
            panic!("a defect of ours");
        }
        fn lost(&mut self, _: Lost) {}
        fn end(&mut self) {}
    }
    let (recorder, rings) = recorder();
    rings.record(1);
    recorder.begin(|| vec![Box::new(Bad)]);
    work(rings, 1);
    until("it ends", || rings.session.get() == 0);
    recorder.close();
    let trace = Listener::trace();
    until("another one begins", || recorder.start(|| Ok(Box::new(trace.clone()))).is_ok());
    work(rings, 2);
    assert!(recorder.stop());
    assert_eq!(trace.count(), 2);
}

#[test]
fn a_child_records_only_if_its_parent_had_not_begun() {
    let (recorder, rings) = recorder();
    rings.record(1);
    recorder.enter_child();
    assert_eq!(rings.session.get(), 1, "still armed");
    let heard = Listener::default();
    recorder.begin(|| vec![Box::new(heard.clone())]);
    work(rings, 1);
    until("it is heard", || heard.count() == 2);
    recorder.enter_child();
    assert_eq!(rings.session.get(), 0);
    assert!(recorder.start(|| panic!("not here")).is_err());
    recorder.close();
    assert_eq!(heard.ended(), 0, "it is the parent's");
}

#[test]
fn rings_are_drained_before_they_are_full_and_no_oftener_than_needed() {
    let entries = ENTRIES as usize;
    assert_eq!(next_after(SELDOM, 0), SELDOM);
    assert_eq!(next_after(OFTEN, entries / 100), SELDOM);
    assert_eq!(next_after(SELDOM, 4 * entries), SELDOM / 4);
    assert_eq!(next_after(OFTEN, 8 * entries), OFTEN);
    // A steady rate is met at once.
    let every = next_after(SELDOM, 2 * entries);
    assert_eq!(next_after(every, entries), every);
}
