//! The trace reader.

use pinbuddy_trace::checked::{Act, Checker, MOST_LIVE};
use pinbuddy_trace::{Event, LATEST, MOST_BYTES, Op, Reader, Writer};

/// Reads `bytes` as a trace: what was read is written and read again, the same; errors name a line
/// that is there, and nothing follows them.
pub fn run(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    let (mut events, mut failed, mut last) = (Vec::new(), false, 0);
    for item in Reader::new(bytes) {
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
    let mut writer = Writer::new(Vec::new()).unwrap();
    events.iter().for_each(|event| writer.write(event).unwrap());
    let written = writer.finish().unwrap();
    let again: Vec<Event> = Reader::new(&*written).map(|it| it.unwrap().1).collect();
    assert_eq!(again, events);
    check_order(&events);
}

fn check_limits(event: &Event) {
    assert!(event.t <= LATEST);
    if let Op::Alloc { bytes, .. } = event.op {
        assert!((1..=MOST_BYTES).contains(&bytes));
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
            Act::Clear | Act::Iter => {}
        }
    }
}
