//! Every way in which a line can be wrong, with its message. That whatever is written can be read, and that no bytes make it
//! panic, `tests/fuzz` shows.

use std::io::{self, BufReader, Read};

use super::*;
use crate::{MICROSECOND, Op, Whose};

fn read(text: impl AsRef<[u8]>) -> Vec<Result<(u64, Event), Error>> {
    Reader::new(text.as_ref()).collect()
}

/// The message about the only line, or the last one.
fn refused(text: impl AsRef<[u8]>) -> String {
    let last = read(text).pop().expect("an item");
    last.expect_err("an error").to_string()
}

#[test]
fn the_lines_of_the_documentation() {
    let text = r#"{"format":"pinbuddy-trace","version":5,"memory":"both"}
{"t":0,"op":"alloc","id":1,"bytes":135790592,"thread":3}
{"t":12,"op":"event","id":1,"stream":7}
 { "op" : "free", "id" : 1, "t" : 90 }
{"t":91,"op":"alloc","id":2,"bytes":5,"private":1}
{"t":93,"op":"safe","id":1}
{"t":95,"op":"iter"}
{"t":97,"op":"lost","events":3}
{"t":99,"op":"clear"}
{"t":100,"op":"alloc","id":3,"bytes":6,"thread":1,"device":2,"stream":4}
{"t":101,"op":"segment_alloc","device":2,"bytes":20}
{"t":102,"op":"segment_free","device":2,"bytes":20}
{"t":103,"op":"wait","id":2,"took":103,"thread":1}
{"t":104,"op":"wait","took":0}"#;
    let (id, bytes, private, pending) = (1, 135_790_592, false, false);
    let (stream, thread) = (0, 3);
    let expected = [
        (0, Op::Request { id, bytes, thread, stream, private }),
        (12, Op::Use { id, stream: 7 }),
        (90, Op::Free { id, thread: 0, pending }),
        (91, Op::Request { id: 2, bytes: 5, thread: 0, stream, private: true }),
        (93, Op::Safe { id }),
        (95, Op::Iteration),
        (97, Op::Lost { events: 3 }),
        (99, Op::Clear),
        (100, Op::Request { id: 3, bytes: 6, thread: 1, stream: 4, private }),
        (101, Op::SegmentAlloc { bytes: 20 }),
        (102, Op::SegmentFree { bytes: 20 }),
        (103, Op::Wait { id: Some(2), took: 103_000, thread: 1 }),
        (104, Op::Wait { id: None, took: 0, thread: 0 }),
    ];
    let found: Vec<_> = read(text).into_iter().map(Result::unwrap).collect();
    let expected: Vec<_> = (2..)
        .zip(expected.map(|(at, op)| Event {
            at: at * MICROSECOND,
            whose: match at {
                100..=102 => Whose::Device(2),
                _ => Whose::Host,
            },
            op,
        }))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_said_of_lines_that_make_no_sense() {
    let lines: [&[u8]; 31] = [
        b"null\n",
        b"[1,\"iter\",null,null,null,null]\n",
        b"{}\n",
        b"\n",
        b"{\"t\":1,\"op\":\"iter\"} extra\n",
        b"{\"t\":1,\"op\":\"iter\",\"colour\":3}\n",
        b"{\"t\":1,\"op\":\"iter\",\"\\u001b]0;x\\u0007\":3}\n",
        b"{\"t\":1,\"t\":2,\"op\":\"iter\"}\n",
        b"{\"t\":1,\"op\":\"realloc\"}\n",
        b"{\"t\":1,\"op\":5}\n",
        b"{\"op\":\"iter\"}\n",
        b"{\"t\":-1,\"op\":\"iter\"}\n",
        b"{\"t\":1e3,\"op\":\"iter\"}\n",
        b"{\"t\":99999999999999999999,\"op\":\"iter\"}\n",
        b"{\"t\":[[[1]]],\"op\":\"iter\"}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":1}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":1,\"bytes\":0}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":1,\"bytes\":-4096}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":1,\"bytes\":1099511627777}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":\"one\",\"bytes\":1}\n",
        b"{\"t\":1,\"op\":\"alloc\",\"id\":1,\"bytes\":null}\n",
        b"{\"t\":1,\"op\":\"free\",\"id\":1,\"stream\":0}\n",
        b"{\"t\":1,\"op\":\"event\",\"id\":1,\"stream\":4294967296}\n",
        b"{\"t\":1,\"op\":\"lost\"}\n",
        b"{\"t\":1,\"op\":\"safe\",\"id\":1,\"events\":1}\n",
        b"{\"t\":7,\"op\":\"wait\",\"took\":8}\n",
        b"{\"t\":7,\"op\":\"wait\",\"id\":1}\n",
        b"{\"t\":7,\"op\":\"wait\",\"took\":7,\"bytes\":1}\n",
        b"{\"t\":7,\"op\":\"wait\",\"took\":7,\"thread\":-1}\n",
        b"{\"t\":1,\"op\":\"it\x1b[31mer\"}\n",
        b"{\"t\":1,\"op\":\"\xffiter\"}\n",
    ];
    let said: Vec<_> = lines.iter().map(refused).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_is_said_of_headers_that_make_no_sense() {
    let nested = format!("{{\"format\":\"pinbuddy-trace\",\"version\":{}1{}}}\n", "[".repeat(100), "]".repeat(100));
    let lines = [
        "{\"format\":\"pinbuddy-trace\",\"version\":7}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":2,\"unit\":\"fortnights\"}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":2,\"unit\":\"ns\"}\n{\"t\":1125899906842624001,\"op\":\"iter\"}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":18446744073709551615,\"colour\":[3]}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":18446744073709551616}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":0}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":-1}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":1.0}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":\"1\"}\n",
        "{\"format\":\"pinbuddy-trace\",\"version\":1,\"version\":2}\n",
        "{\"format\":\"pinbuddy-trace\"}\n",
        "{\"format\":\"chrome\x1b[31m-trace\",\"version\":1}\n",
        "{\"format\":\"chrome-trace\",\"version\":1}\n",
        "{\"format\":7,\"version\":1}\n",
        "{\"version\":1}\n",
        "[\"pinbuddy-trace\",1]\n",
        "{\"format\":\"pinbuddy-trace\",\"vers",
        "{\"format\":\"pinbuddy-trace\",\"version\":1}\n{\"format\":\"pinbuddy-trace\",\"version\":1}\n",
        "{\"t\":1,\"op\":\"iter\"}\n{\"format\":\"pinbuddy-trace\",\"version\":9}\n",
        &nested,
    ];
    let said: Vec<_> = lines.iter().map(refused).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_header_is_no_event_and_may_have_notes() {
    let header = "{\"writer\":{\"torch\":\"2.15.0\"},\"version\":1,\"format\":\"pinbuddy-trace\"}\n";
    assert!(read(header).is_empty());
    let event = "{\"t\":1,\"op\":\"iter\"}\n";
    let with: Vec<_> = read(header.to_owned() + event).into_iter().map(Result::unwrap).collect();
    let without: Vec<_> = read(event).into_iter().map(Result::unwrap).collect();
    assert_eq!((with[0].0, without[0].0), (2, 1), "lines are those of the file");
    assert_eq!(with[0].1, without[0].1);
}

#[test]
fn the_error_names_its_line_and_what_came_before_stands() {
    let items = read("{\"t\":1,\"op\":\"iter\"}\n{\"t\":2,\"op\":\"iter\"}\nno\n{\"t\":3,\"op\":\"iter\"}\n");
    assert_eq!(items.len(), 3, "nothing is read after an error");
    assert!(items[0].is_ok() && items[1].is_ok());
    assert_eq!(items[2].as_ref().unwrap_err().line, 3);
    let whole = "{\"t\":1,\"op\":\"iter\"}\n{\"t\":2,\"op\":\"alloc\",\"id\":3,\"bytes\":4}";
    // Only the end of the last line may be missing.
    assert!(read(whole).iter().all(Result::is_ok));
    let first = whole.find('\n').unwrap() + 1;
    for end in first + 1..whole.len() {
        let items = read(&whole[..end]);
        let last = items.last().unwrap().as_ref().unwrap_err();
        assert!(matches!(last.what, What::CutOff(_)), "{end}: {last}");
        assert_eq!((last.line, items.len()), (2, 2));
    }
}

#[test]
fn a_line_of_any_length_takes_no_memory() {
    let long = |most| format!("{{\"t\":1,\"op\":\"iter\"{}}}\n", " ".repeat(most));
    assert_eq!(
        refused("{\"t\":1,\"op\":\"iter\"}\n".to_owned() + &long(LONGEST_LINE)),
        "line 2: expected at most 1024 bytes, found more"
    );
    assert_eq!(refused(long(LONGEST_HEADER)), "line 1: expected at most 16384 bytes, found more");
    // A line of a gibibyte, of which only the beginning is read.
    let mut reader = Reader::new(BufReader::new(io::repeat(b' ').take(1 << 30)));
    let error = reader.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("at most 16384 bytes"), "{error}");
    assert!(reader.text.capacity() <= 2 * LONGEST_HEADER && reader.next().is_none());
}

#[test]
fn a_stream_that_breaks() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let whole: &[u8] = b"{\"t\":1,\"op\":\"iter\"}\n";
    let items: Vec<_> = Reader::new(BufReader::new(whole.chain(Broken))).collect();
    let error = items[1].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "line 2: expected more of the trace, found that it cannot be read: the disk is gone");
}

#[test]
fn a_lenient_reader_ends_at_the_line_that_was_cut_off_and_says_so() {
    let whole = "{\"format\":\"pinbuddy-trace\",\"version\":2}\n{\"t\":2,\"op\":\"safe\",\"id\":3}\n";
    for end in 1..whole.len() {
        let mut reader = Reader::lenient(&whole.as_bytes()[..end]);
        let events = reader.by_ref().map(Result::unwrap).count();
        let line = whole[..end].matches('\n').count() as u64 + 1;
        // A line of which only the end is missing is whole.
        let cut = !whole[..end].ends_with(['}', '\n']);
        assert_eq!(reader.cut_off(), cut.then_some(line), "{end}");
        assert_eq!(events, usize::from(end == whole.len() - 1));
    }
    // Nor is another kind of file a trace that was cut off.
    for other in ["{\"t\":2,\"op\":\"safe\"}\n", "{\"traceEvents\":[]}", "<html>", "\0\0"] {
        assert!(Reader::lenient(other.as_bytes()).next().unwrap().is_err());
    }
}

#[test]
fn the_version_is_the_headers_and_what_it_says_that_makes_no_sense_is_left_out() {
    let of = |it: u64| {
        format!("{{\"format\":\"pinbuddy-trace\",\"version\":{it},\"torch\":7,\"rank\":-1,\"settings\":[1]}}")
    };
    let without = "{\"t\":1,\"op\":\"iter\"}\n".to_owned();
    for (text, version) in [(without, 1), (of(4), 4), (of(5), 5), (of(6), 6)] {
        let mut reader = Reader::new(text.as_bytes());
        assert_eq!(reader.next().is_some(), version == 1);
        assert_eq!((reader.version(), reader.header()), (version, &Header::default()));
    }
}
