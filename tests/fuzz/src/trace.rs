//! The trace reader.

use pinbuddy_trace::checked::{Act, Checker, MOST_LIVE};
use pinbuddy_trace::{Event, Header, LATEST, MOST_BYTES, Op, Reader, Unit, Writer};

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
    assert!(event.t <= LATEST);
    if let Op::Alloc { bytes, .. }
    | Op::DeviceAlloc { bytes, .. }
    | Op::SegmentAlloc { bytes, .. }
    | Op::SegmentFree { bytes, .. } = event.op
    {
        assert!((1..=MOST_BYTES).contains(&bytes));
    }
    if let Op::Wait { took, .. } = event.op {
        assert!(took <= event.t);
    }
}

/// What the checker lets through makes sense: numbers are small, and only what lives is freed.
fn check_order(events: &[Event]) {
    let mut checker = Checker::default();
    let (mut living, mut live_bytes, mut at) = (std::collections::BTreeMap::new(), 0, 0);
    for (line, event) in (1..).zip(events) {
        let Ok(step) = checker.check(line, *event) else {
            continue;
        };
        assert!(step.at >= at);
        at = step.at;
        match step.act {
            Act::Alloc { block, bytes } => {
                assert!((block as usize) < events.len());
                assert_eq!(living.insert(block, bytes), None, "a number twice");
                live_bytes += bytes;
                assert!(live_bytes <= MOST_LIVE);
            }
            Act::Free { block } => live_bytes -= living.remove(&block).unwrap(),
            Act::Use { block, .. } => assert!(living.contains_key(&block)),
            Act::Clear | Act::Iter | Act::Note => {}
        }
    }
}
