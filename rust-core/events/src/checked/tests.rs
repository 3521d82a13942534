//! What makes no sense is refused with its line; numbers of blocks are small, and used again when a replay may.

use super::*;
use crate::MOST_BYTES;
use crate::trace::Reader;

/// What happens to blocks, with their ids and numbers, and all else by its name.
fn told(text: &str, mut checker: Checker) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for item in Reader::new(text.as_bytes()) {
        let (line, event) = item?;
        let Some(item) = checker.check(line, event)? else {
            all.push("-".to_owned());
            continue;
        };
        let number = item.block.map_or_else(|| "-".to_owned(), |it| it.to_string());
        all.push(match item.event.op {
            Op::Request { id, bytes, .. } => format!("request {id}:{number} {bytes}"),
            Op::Free { id, pending, .. } if pending => format!("free {id}:{number} pending"),
            Op::Free { id, .. } => format!("free {id}:{number}"),
            Op::Safe { id } => format!("safe {id}:{number}"),
            Op::Use { id, stream } => format!("use {id}:{number} on {stream}"),
            other => format!("{other:?}"),
        });
    }
    Ok(all)
}

fn of_host(text: &str) -> Result<Vec<String>, String> {
    told(text, Checker::default()).map_err(|why| why.to_string())
}

#[test]
fn names_become_small_numbers_that_are_used_again() {
    let text = r#"{"t":1,"op":"alloc","id":900,"bytes":10}
{"t":1,"op":"alloc","id":7,"bytes":20}
{"t":2,"op":"free","id":900}
{"t":2,"op":"event","id":7,"stream":55}
{"t":3,"op":"alloc","id":900,"bytes":30}
{"t":3,"op":"alloc","id":8,"bytes":40}"#;
    let expected = ["request 0:0 10", "request 1:1 20", "free 0:0", "use 1:1 on 0", "request 2:0 30", "request 3:2 40"];
    assert_eq!(of_host(text).unwrap(), expected);
}

#[test]
fn a_recorded_trace_says_when_a_number_is_free_again() {
    let text = r#"{"t":1,"op":"alloc","id":10,"bytes":5}
{"t":2,"op":"event","id":10,"stream":7}
{"t":3,"op":"free","id":10}
{"t":4,"op":"alloc","id":11,"bytes":6}
{"t":5,"op":"safe","id":10}
{"t":6,"op":"alloc","id":12,"bytes":7}
{"t":7,"op":"free","id":11}"#;
    let recorded =
        ["request 0:0 5", "use 0:- on 0", "free 0:- pending", "request 1:1 6", "safe 0:0", "request 2:0 7", "free 1:1"];
    let found = told(text, Checker::new(Whose::Host, true)).unwrap();
    assert_eq!(found, recorded);
    let made_up = ["request 0:0 5", "use 0:0 on 0", "free 0:0", "request 1:0 6", "-", "request 2:1 7", "free 1:0"];
    assert_eq!(of_host(text).unwrap(), made_up);
}

#[test]
fn what_makes_no_sense_in_its_order_is_refused_with_its_line() {
    let event = |op: &str, id: u64, rest: &str| format!("{{\"t\":5,\"op\":\"{op}\",\"id\":{id}{rest}}}\n");
    let alloc = |id, bytes| event("alloc", id, &format!(",\"bytes\":{bytes}"));
    let (one, free) = (alloc(1, 10), event("free", 1, ""));
    for (text, line, expected, found) in [
        (one.clone() + &free + &free, 3, "free to name a block that lives", "id 1, which does not"),
        (event("event", 9, ",\"stream\":0"), 1, "event to name a block that lives", "id 9, which does not"),
        (one.clone() + &event("wait", 2, ",\"took\":1"), 2, "wait to name a block that lives", "id 2, which does not"),
        (alloc(2, 5) + &one + &one, 3, "alloc to name a new block", "id 1, which lives since line 2"),
        (one.clone() + &event("safe", 1, ""), 2, "safe to name a block that was freed", "id 1, which lives"),
        (one + "{\"t\":4,\"op\":\"iter\"}\n", 2, "t to be at least 5000 ns, as on the line before", "4000 ns"),
        (
            (0..=1024).map(|id| alloc(id, MOST_BYTES)).collect(),
            1025,
            "at most 1125899906842624 bytes to live at once",
            "1126999418470400",
        ),
    ] {
        assert_eq!(of_host(&text), Err(format!("line {line}: expected {expected}, found {found}")));
    }
}

#[test]
fn memory_of_others_is_checked_and_left_out() {
    let alloc = r#"{"t":1,"op":"alloc","id":1,"bytes":10,"thread":0,"device":0,"stream":6}"#;
    let text = format!(
        "{alloc}\n{}",
        r#"{"t":1,"op":"segment_alloc","device":0,"bytes":20}
{"t":1,"op":"alloc","id":2,"bytes":20}
{"t":2,"op":"event","id":1,"stream":5}
{"t":2,"op":"free","id":1}
{"t":3,"op":"safe","id":1}
{"t":3,"op":"clear"}
{"t":3,"op":"iter"}
{"t":3,"op":"free","id":2}"#
    );
    let host = ["-", "-", "request 0:0 20", "-", "-", "-", "Clear", "Iteration", "free 0:0"];
    assert_eq!(of_host(&text).unwrap(), host);
    let device =
        "request 0:0 10, SegmentAlloc { bytes: 20 }, -, use 0:- on 5, free 0:- pending, safe 0:0, -, Iteration, -";
    let found = told(&text, Checker::new(Whose::Device(0), false)).unwrap();
    assert_eq!(found.join(", "), device);
    let said = of_host(&format!("{alloc}\n{alloc}")).unwrap_err();
    assert!(said.contains("found id 1, which lives since line 1"), "{said}");
}

#[test]
fn a_refusal_changes_nothing() {
    let mut checker = Checker::default();
    let mut check = |line, at, op| checker.check(line, Event::host(at, op));
    check(1, 3, Op::request(1, 10)).unwrap();
    check(2, 9, Op::request(1, 10)).unwrap_err();
    check(3, 9, Op::free(2)).unwrap_err();
    let item = check(4, 3, Op::request(2, 10)).unwrap().unwrap();
    assert_eq!((item.event.op, item.block), (Op::request(1, 10), Some(1)));
    assert_eq!((checker.blocks(), checker.bytes()), (2, 20));
}
