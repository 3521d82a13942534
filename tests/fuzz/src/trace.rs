//! The trace reader.

use pinbuddy_events::trace::{Header, Reader, Unit, Writer};
use pinbuddy_events::{Checker, Event, LATEST, MOST_BYTES, MOST_LIVE, Op, Whose};

/// Reads `bytes` as a trace: what was read is written and read again, the same; errors name a line
/// that is there, and nothing follows them.
pub fn run(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    let (mut events, mut failed, mut last) = (Vec::new(), false, 0);
    let mut reader = Reader::new(bytes);
    for item in reader.by_ref() {
        assert!(!failed, "an item after an error");
        match item {
            Ok((line, event)) => {
                assert!(line > last && line <= lines, "line {line} after {last}");
                last = line;
                check_limits(&event);
                events.push(event);
            }
            Err(why) => {
                assert!(!why.to_string().is_empty());
                failed = true;
            }
        }
    }
    let whole = Header {
        // The header too; times are the same in nanoseconds.
        unit: Unit::Nanoseconds,
        ..reader.header().clone()
    };
    let mut writer = Writer::with_header(Vec::new(), &whole).unwrap();
    events.iter().for_each(|event| writer.write(event).unwrap());
    let written = writer.finish().unwrap();
    let mut reader = Reader::new(&*written);
    let again: Vec<Event> = reader.by_ref().map(|it| it.unwrap().1).collect();
    assert_eq!(again, events);
    assert_eq!(reader.header(), &whole);
    check_leniency(bytes, &events, failed);
    check_order(&events);
}

/// A lenient reader reads the same, and says where it ended early; whatever is cut off, it reads what is before.
fn check_leniency(bytes: &[u8], events: &[Event], failed: bool) {
    let mut reader = Reader::lenient(bytes);
    let (mut same, mut refused) = (0, false);
    for item in reader.by_ref() {
        match item {
            Ok((_, event)) => {
                assert_eq!(event, events[same]);
                same += 1;
            }
            Err(_) => refused = true,
        }
    }
    assert_eq!(same, events.len());
    assert_eq!(failed, refused || reader.cut_off().is_some());
    assert!(!(refused && reader.cut_off().is_some()));
}

fn check_limits(event: &Event) {
    assert!(event.at <= LATEST);
    if let Op::Request { bytes, .. } | Op::SegmentAlloc { bytes, .. } | Op::SegmentFree { bytes, .. } = event.op {
        assert!((1..=MOST_BYTES).contains(&bytes));
    }
    if let Op::Wait { took, .. } = event.op {
        assert!(took <= event.at);
    }
}

/// What the checker lets through makes sense, whether or not it was recorded: numbers are small, and only what lives is
/// freed.
fn check_order(events: &[Event]) {
    for (whose, recorded) in [(Whose::Host, false), (Whose::Host, true), (Whose::Device(0), true)] {
        let mut checker = Checker::new(whose, recorded);
        // By number: the block's id and bytes.
        let (mut held, mut at) = (std::collections::BTreeMap::new(), 0);
        for (line, event) in (1..).zip(events) {
            let Ok(item) = checker.check(line, *event) else {
                continue;
            };
            assert!(checker.bytes() <= MOST_LIVE);
            let Some(item) = item else { continue };
            assert!(item.at() >= at);
            at = item.at();
            let (Some(block), Some(id)) = (item.block, item.event.op.id()) else {
                continue;
            };
            assert!((block as usize) < events.len());
            let known = Some((id, item.bytes));
            match item.event.op {
                Op::Request { bytes, .. } => {
                    assert_eq!(bytes, item.bytes);
                    assert_eq!(held.insert(block, (id, bytes)), None, "a number twice");
                }
                Op::Free { .. } | Op::Safe { .. } => assert_eq!(held.remove(&block), known),
                _ => assert_eq!(held.get(&block).copied(), known),
            }
        }
    }
}
