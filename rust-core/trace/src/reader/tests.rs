//! Every way in which a line can be wrong, with its message; whatever is written can be read.

use std::io::{self, BufReader, Read};

use proptest::prelude::*;

use super::*;
use crate::{LATEST, MOST_BYTES, Op, Writer};

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
    let text = r#"{"format":"pinbuddy-trace","version":1}
{"t":0,"op":"alloc","id":1,"bytes":135790592,"thread":3}
{"t":12,"op":"event","id":1,"stream":7}
 { "op" : "free", "id" : 1, "t" : 90 }
{"t":95,"op":"iter"}
{"t":99,"op":"clear"}"#;
    let (id, bytes) = (1, 135_790_592);
    let expected = [
        (
            0,
            Op::Alloc {
                id,
                bytes,
                thread: 3,
            },
        ),
        (12, Op::Event { id, stream: 7 }),
        (90, Op::Free { id, thread: 0 }),
        (95, Op::Iter),
        (99, Op::Clear),
    ];
    let found: Vec<_> = read(text).into_iter().map(Result::unwrap).collect();
    let expected: Vec<_> = (2..).zip(expected.map(|(t, op)| Event { t, op })).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_is_said_of_lines_that_make_no_sense() {
    let lines: [&[u8]; 24] = [
        b"null\n",
        b"[1,\"iter\",null,null,null,null]\n",
        b"{}\n",
        b"\n",
        b"{\"t\":1,\"op\":\"iter\"} extra\n",
        b"{\"t\":1,\"op\":\"iter\",\"colour\":3}\n",
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
        b"{\"t\":1,\"op\":\"it\x1b[31mer\"}\n",
        b"{\"t\":1,\"op\":\"\xffiter\"}\n",
    ];
    let said: Vec<_> = lines.iter().map(refused).collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_is_said_of_headers_that_make_no_sense() {
    let nested = format!(
        "{{\"format\":\"pinbuddy-trace\",\"version\":{}1{}}}\n",
        "[".repeat(100),
        "]".repeat(100)
    );
    let lines = [
        "{\"format\":\"pinbuddy-trace\",\"version\":2}\n",
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
    let header =
        "{\"writer\":{\"torch\":\"2.15.0\"},\"version\":1,\"format\":\"pinbuddy-trace\"}\n";
    assert!(read(header).is_empty());
    let event = "{\"t\":1,\"op\":\"iter\"}\n";
    let with: Vec<_> = read(header.to_owned() + event)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let without: Vec<_> = read(event).into_iter().map(Result::unwrap).collect();
    assert_eq!(
        (with[0].0, without[0].0),
        (2, 1),
        "lines are those of the file"
    );
    assert_eq!(with[0].1, without[0].1);
}

#[test]
fn the_error_names_its_line_and_what_came_before_stands() {
    let items = read(
        "{\"t\":1,\"op\":\"iter\"}\n{\"t\":2,\"op\":\"iter\"}\nno\n{\"t\":3,\"op\":\"iter\"}\n",
    );
    assert_eq!(items.len(), 3, "nothing is read after an error");
    assert!(items[0].is_ok() && items[1].is_ok());
    assert_eq!(items[2].as_ref().unwrap_err().line, 3);
}

#[test]
fn a_line_that_was_cut_off() {
    let whole = "{\"t\":1,\"op\":\"iter\"}\n{\"t\":2,\"op\":\"alloc\",\"id\":3,\"bytes\":4}";
    // Only the end of the last line may be missing.
    assert!(read(whole).iter().all(Result::is_ok));
    let first = whole.find('\n').unwrap() + 1;
    for end in first + 1..whole.len() {
        let items = read(&whole[..end]);
        let last = items.last().unwrap().as_ref().unwrap_err();
        assert!(matches!(last.what, What::CutOff { .. }), "{end}: {last}");
        assert_eq!((last.line, items.len()), (2, 2));
    }
}

#[test]
fn a_line_of_any_length_takes_no_memory() {
    let long = format!("{{\"t\":1,\"op\":\"iter\"{}}}\n", " ".repeat(LONGEST_LINE));
    assert_eq!(
        refused(long),
        "line 1: expected at most 1024 bytes, found more"
    );
    // A line of a gibibyte, of which only the beginning is read.
    let mut reader = Reader::new(BufReader::new(io::repeat(b' ').take(1 << 30)));
    let error = reader.next().unwrap().unwrap_err();
    assert!(matches!(error.what, What::TooLong));
    assert!(reader.text.capacity() <= 2 * LONGEST_LINE && reader.next().is_none());
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
    assert_eq!(
        error.to_string(),
        "line 2: expected more of the trace, found that it cannot be read: the disk is gone"
    );
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<u64>(), 1..=MOST_BYTES, any::<u32>()).prop_map(|(id, bytes, thread)| Op::Alloc {
            id,
            bytes,
            thread
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(id, thread)| Op::Free { id, thread }),
        (any::<u64>(), any::<u32>()).prop_map(|(id, stream)| Op::Event { id, stream }),
        Just(Op::Clear),
        Just(Op::Iter),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(events in prop::collection::vec((0..=LATEST, op()), 0..20)) {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let events: Vec<_> = events.into_iter().map(|(t, op)| Event { t, op }).collect();
        for event in &events {
            writer.write(event).unwrap();
        }
        let found: Vec<_> = read(writer.finish().unwrap()).into_iter().map(|it| it.unwrap().1).collect();
        prop_assert_eq!(found, events);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(bytes);
    }

    /// Bytes that are nearly a header.
    #[test]
    fn no_change_of_a_header_makes_it_panic(at in 0..60_usize, byte: u8) {
        let mut line = br#"{"format":"pinbuddy-trace","version":1}"#.to_vec();
        let at = at % line.len();
        line[at] = byte;
        read(line);
    }

    /// Bytes that are nearly an event.
    #[test]
    fn no_change_of_a_line_makes_it_panic(at in 0..60_usize, byte: u8) {
        let mut line = br#"{"t":12,"op":"alloc","id":7,"bytes":4194304,"thread":1}"#.to_vec();
        let at = at % line.len();
        line[at] = byte;
        read(line);
    }
}
