//! Rings that are read out of order, late or full: what comes out is always valid.

use pinbuddy_events::Checker;
use pinbuddy_events::trace::{Header, Unit, Writer};

use super::*;
use crate::record::source::Lost;

mod memory;
pub(in crate::record) mod rings;

use rings::Rings;

const SESSION: u16 = 5;

fn request(bytes: u64) -> Kind {
    Kind::Event(Op::request(0, bytes))
}

fn wait(took: u64) -> Kind {
    let (id, thread) = (None, 0);
    Kind::Event(Op::Wait { id, took, thread })
}

const CLEAR: Kind = Kind::Event(Op::Clear);
const ITERATION: Kind = Kind::Event(Op::Iteration);

fn free(events: u64) -> Kind {
    Kind::Free { events }
}

fn use_on(stream: u64) -> Kind {
    Kind::Use { stream }
}

fn entry(ticks: u64, allocation: u64, kind: Kind) -> Entry {
    Entry { ticks, allocation: Allocation(u64::from(SESSION) << 48 | allocation), whose: Whose::Host, kind }
}

/// What came out, one line an event, and what was lost.
#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    lost: Lost,
}

impl Output for Seen {
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
    fn lost(&mut self, entries: Lost) {
        self.lost += entries;
    }
}

impl Seen {
    /// As a trace has it, and which frees wait for streams, which a trace leaves to be found.
    fn text(&self) -> String {
        let unit = Unit::Nanoseconds;
        let header = Header { unit, ..Header::default() };
        let mut lines = Writer::with_header(Vec::new(), &header).unwrap();
        lines.stream().clear();
        for event in &self.events {
            lines.write(event).unwrap();
            if matches!(event.op, Op::Free { pending: true, .. }) {
                lines.stream().pop();
                lines.stream().extend(b" pending\n");
            }
        }
        let text = String::from_utf8(lines.finish().unwrap()).unwrap();
        text.trim_end().to_owned()
    }
}

/// One tick is two nanoseconds.
fn moment(ticks: u64) -> Moment {
    Moment { ticks, ns: ticks * 2 }
}

fn merger() -> Merger {
    Merger::new(SESSION, moment(0))
}

/// What so many drains find of these entries, by the numbers of their rings and threads.
fn drained(drains: u64, rings: &[(usize, u32, &[Entry])], lost: Lost) -> (Merger, Seen) {
    let filled = &Rings::default();
    rings.iter().for_each(|(ring, thread, entries)| filled.put(*ring, *thread, entries));
    filled.lose(9, lost);
    let (mut merger, mut seen) = (merger(), Seen::default());
    for drain in 1..=drains {
        merger.drain(&filled, moment(drain * LATE), &mut seen);
    }
    (merger, seen)
}

/// Late enough for all that the tests write.
const LATE: u64 = 1_000_000;

#[test]
fn device_memory_keeps_its_device_and_stream() {
    let asked = |id| Op::Request { id, bytes: 9, thread: 0, stream: 3, private: false };
    let device =
        |ticks, allocation, whose, kind| Entry { whose: Whose::Device(whose), ..entry(ticks, allocation, kind) };
    let all = [
        device(10, 0, 1, Kind::Event(Op::SegmentAlloc { bytes: 20 })),
        device(20, 7, 1, Kind::Event(asked(0))),
        entry(30, 8, request(5)),
        device(40, 7, 0, use_on(4)),
        device(50, 7, 0, free(1)),
        entry(60, 8, free(0)),
        device(70, 7, 0, Kind::Done),
    ];
    let (_, seen) = drained(2, &[(0, 0, &all)], Lost::default());
    check(&seen.events);
    let (id, one, host) = (1, Whose::Device(1), Whose::Host);
    let whose: Vec<Whose> = seen.events.iter().map(|it| it.whose).collect();
    assert_eq!(whose, [one, one, host, one, one, host, one]);
    let ops: Vec<Op> = seen.events.iter().map(|it| it.op).collect();
    assert_eq!(ops[1], asked(id));
    assert_eq!(ops[3], Op::Use { id, stream: 4 });
    assert_eq!(ops[6], Op::Safe { id });
}

#[test]
fn entries_of_several_rings_are_in_the_order_of_their_times() {
    let block = |n: u64| 1 << 40 | n;
    let private = Op::Request { id: 0, bytes: 200, thread: 0, stream: 0, private: true };
    let one = [entry(10, 1, request(100)), entry(40, 1, use_on(0xabc)), entry(50, 1, free(1)), entry(90, 0, CLEAR)];
    let other = [
        entry(20, block(1), Kind::Event(private)),
        entry(30, block(1), free(0)),
        entry(60, 1, Kind::Done),
        entry(70, 0, ITERATION),
    ];
    let (merger, seen) = drained(1, &[(0, 0, &one), (1, 7, &other)], Lost::default());
    insta::assert_snapshot!(seen.text(), @r#"
    {"t":20,"op":"alloc","id":1,"bytes":100,"thread":0}
    {"t":40,"op":"alloc","id":2,"bytes":200,"thread":7,"private":1}
    {"t":60,"op":"free","id":2,"thread":7}
    {"t":80,"op":"event","id":1,"stream":0}
    {"t":100,"op":"free","id":1,"thread":0} pending
    {"t":120,"op":"safe","id":1}
    {"t":140,"op":"iter"}
    {"t":180,"op":"clear"}
    "#);
    assert_eq!((seen.lost, merger.blocks.len()), (Lost::default(), 0));
}

#[test]
fn what_is_too_new_waits_for_the_next_drain() {
    let rings = &Rings::default();
    let (mut merger, mut seen) = (merger(), Seen::default());
    // A free is found, and the request that it ends is only found the next time.
    rings.put(0, 0, &[entry(LATE, 1, free(0))]);
    merger.drain(&rings, moment(LATE), &mut seen);
    assert_eq!(seen.text(), "");
    rings.put(1, 1, &[entry(LATE - 1, 1, request(8))]);
    merger.drain(&rings, moment(2 * LATE), &mut seen);
    // What was written before the last drain, and not found by it, has that drain's time.
    insta::assert_snapshot!(seen.text(), @r#"
    {"t":2000000,"op":"alloc","id":1,"bytes":8,"thread":1}
    {"t":2000000,"op":"free","id":1,"thread":0}
    "#);
}

#[test]
fn an_event_all_of_whose_streams_count() {
    let rings = &Rings::default();
    let (mut merger, mut seen) = (merger(), Seen::default());
    let kinds = [request(8), use_on(1), use_on(2), free(2), Kind::Done];
    (1..).zip(kinds).for_each(|(at, kind)| rings.put(0, 0, &[entry(at, 1, kind)]));
    merger.drain(&rings, moment(LATE), &mut seen);
    assert!(seen.text().ends_with(" pending"));
    rings.put(0, 0, &[entry(LATE + 1, 1, Kind::Done)]);
    merger.drain(&rings, moment(2 * LATE), &mut seen);
    assert!(seen.text().ends_with(r#""op":"safe","id":1}"#));
}

#[test]
fn processors_whose_counters_differ_make_no_invalid_order() {
    // Each on a ring of its own, and each earlier than what it depends on.
    let [done, free, used, asked] =
        [(100, Kind::Done), (101, free(1)), (102, use_on(3)), (103, request(8))].map(|(at, kind)| [entry(at, 1, kind)]);
    let (_, seen) = drained(1, &[(0, 0, &done), (1, 1, &free), (2, 2, &used), (3, 3, &asked)], Lost::default());
    insta::assert_snapshot!(seen.text(), @r#"
    {"t":206,"op":"alloc","id":1,"bytes":8,"thread":3}
    {"t":206,"op":"event","id":1,"stream":0}
    {"t":206,"op":"free","id":1,"thread":1} pending
    {"t":206,"op":"safe","id":1}
    "#);
    assert_eq!(seen.lost, Lost::default());
}

#[test]
fn a_wait_is_of_the_request_that_lives_or_of_none() {
    let all = [
        entry(100, 1, request(8)),
        entry(100, 1, wait(150)),
        entry(110, 2, request(9)),
        entry(120, 2, free(0)),
        // Another thread has freed it, whose processor's counter is ahead.
        entry(130, 2, wait(20)),
        // Of a request that was dropped, and of no request.
        entry(140, 3, wait(30)),
        entry(150, 0, CLEAR),
        entry(160, 0, wait(40)),
        // It began before the recording did.
        entry(170, 0, wait(400)),
    ];
    let (merger, seen) = drained(1, &[(0, 3, &all)], Lost::default());
    insta::assert_snapshot!(seen.text(), @r#"
    {"t":200,"op":"alloc","id":1,"bytes":8,"thread":3}
    {"t":200,"op":"wait","id":1,"took":150,"thread":3}
    {"t":220,"op":"alloc","id":2,"bytes":9,"thread":3}
    {"t":240,"op":"free","id":2,"thread":3}
    {"t":260,"op":"wait","took":20,"thread":3}
    {"t":280,"op":"wait","took":30,"thread":3}
    {"t":300,"op":"clear"}
    {"t":320,"op":"wait","took":40,"thread":3}
    {"t":340,"op":"wait","took":340,"thread":3}
    "#);
    assert_eq!((seen.lost, merger.early.len()), (Lost::default(), 0));
    check(&seen.events);
}

#[test]
fn what_lacks_its_beginning_is_dropped_and_counted() {
    // Of another recording: not lost, since nobody wants it.
    let other = Entry { allocation: Allocation(4 << 48), ..entry(3, 0, CLEAR) };
    let of_device = Entry { whose: Whose::Device(0), ..entry(3, 8, free(0)) };
    let all = [entry(1, 9, free(0)), entry(2, 3, request(0)), of_device, other];
    let (merger, seen) = drained(2, &[(0, 0, &all)], Lost { pinned: 10, device: 100 });
    let lost = Lost { pinned: 12, device: 101 };
    assert_eq!((seen.text().as_str(), seen.lost), ("", lost));
    assert!(merger.early.is_empty() && merger.held.is_empty());
}

#[test]
fn whatever_rings_hold_what_comes_out_is_valid() {
    let mut random = 88_172_645_463_325_252_u64;
    let mut below = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    for _ in 0..200 {
        let rings = &Rings::default();
        let (mut merger, mut seen) = (merger(), Seen::default());
        let mut ticks = 0;
        for _ in 0..20 {
            for _ in 0..below(50) {
                ticks += below(100);
                let kind = match below(9) {
                    0 | 1 => request(below(5)),
                    2 | 3 => free(below(3)),
                    4 => Kind::Done,
                    5 | 6 => use_on(below(3)),
                    7 => wait(below(30_000)),
                    _ => ITERATION,
                };
                let early = ticks.saturating_sub(below(30));
                rings.put(below(4) as usize, 0, &[entry(early, below(20), kind)]);
            }
            ticks += below(20_000);
            merger.drain(&rings, moment(ticks), &mut seen);
        }
        check(&seen.events);
        assert!(merger.blocks.len() <= 20);
    }
}

/// The invariants of the module `sink`.
fn check(events: &[Event]) {
    let (mut checker, mut last) = (Checker::new(Whose::Host, false), 0);
    for (line, event) in (1..).zip(events) {
        let found = checker.check(line, *event).unwrap();
        match event.op {
            Op::Request { id, .. } => {
                last += 1;
                assert_eq!(id, last);
            }
            // Of a block that was not pending there would be nothing.
            Op::Safe { .. } => assert!(found.is_some() || event.whose != Whose::Host),
            Op::Wait { took, .. } => assert!(took <= event.at),
            _ => {}
        }
    }
}
