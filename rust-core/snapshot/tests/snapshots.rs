//! Snapshots that Python's own pickle wrote, with every protocol, and pickles that no PyTorch would write.

use std::path::Path;
use std::process::Command;

use pinbuddy_events::{Event, MICROSECOND, Op, Whose};
use pinbuddy_snapshot::{Action, Call, Snapshot};

fn read(bytes: &[u8]) -> Result<Snapshot, String> {
    Snapshot::read(bytes).map_err(|why| why.to_string())
}

fn written(protocol: u8, events: u32) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{}-{protocol}-{events}.pickle", std::process::id()));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generate.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(&file).args([protocol.to_string(), events.to_string()]);
    let output = python.output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    bytes
}

#[test]
fn every_protocol_gives_the_same_events_and_who_asked_for_them() {
    for protocol in 2..=5 {
        let snapshot = read(&written(protocol, 9_000)).unwrap();
        assert_eq!(snapshot.devices.len(), 2);
        assert!(snapshot.devices[0].is_empty());
        assert_eq!(snapshot.devices[1].len(), 9_000, "without what is no request");
        assert_eq!(snapshot.host.len(), 4_500);
        assert_eq!(snapshot.whose(), Some(Whose::Host));
        let second = snapshot.devices[1][3];
        assert_eq!((second.bytes, second.stream), (1001, 1));
        assert_eq!(second.address, 140_000_000_000_000 + (1 << 20));
        assert_eq!(snapshot.host[0].address, 1 << 63, "beyond what an i64 holds");
        assert_eq!(snapshot.devices[1][2].action, Action::FreeCompleted);
        assert_eq!(snapshot.steps, [second.at + 1]);

        let whose = Whose::Device(1);
        let stacks: Vec<Option<u32>> = snapshot.stacks_of_requests(whose).collect();
        let requests = snapshot.events(whose);
        let requests = requests.filter(|it| matches!(it.op, Op::Request { .. }));
        assert_eq!(stacks.len(), requests.count());
        let alloc = Call { function: "alloc", file: "/somewhere/model.py", line: 0 };
        for (number, stack) in (0_u64..).zip(&stacks) {
            // The time of the request, which is what `generate.py` picks frames by.
            let line = (1_795_413_779_000_000 + number * 6) % 300;
            let function = format!("function_{line}");
            let inner = Call { function: if line == 0 { "alloc" } else { &function }, line, ..alloc };
            let calls: Vec<Call<'_>> = snapshot.stacks.calls(stack.unwrap()).collect();
            assert_eq!(calls, [inner, alloc], "{protocol}: {number}");
        }
        assert_eq!(snapshot.stacks.calls(u32::MAX).count(), 0);
    }
}

/// When, in microseconds, and what.
fn at_and_op(event: &Event) -> (u64, Op) {
    (event.at / MICROSECOND, event.op)
}

fn alloc(id: u64, bytes: u64, stream: u32) -> Op {
    Op::Request { id, bytes, thread: 0, stream, private: false }
}

fn free(id: u64) -> Op {
    Op::Free { id, thread: 0, pending: true }
}

#[test]
fn addresses_become_ids_and_steps_end_iterations() {
    let snapshot = read(&written(4, 9)).unwrap();
    let events: Vec<Event> = snapshot.events(Whose::Device(1)).collect();
    let ops: Vec<(u64, Op)> = events.iter().map(at_and_op).collect();
    assert_eq!(
        ops,
        [
            (0, alloc(0, 1000, 0)),
            (2, free(0)),
            (4, Op::Safe { id: 0 }),
            (6, alloc(1, 1001, 1)),
            (7, Op::Iteration),
            (8, free(1)),
            (10, Op::Safe { id: 1 }),
            (12, alloc(2, 1002, 0)),
            (14, free(2)),
            (16, Op::Safe { id: 2 }),
        ]
    );
}

#[test]
fn what_has_a_private_pool_is_private_and_its_stream_has_no_number() {
    for protocol in 2..=5 {
        let snapshot = read(&written(protocol, 9)).unwrap();
        let first = snapshot.devices[0].iter();
        assert_eq!(first.map(|it| (it.private, it.stream)).collect::<Vec<_>>(), [(true, 0); 4]);
        let second = &snapshot.devices[1];
        assert!(second.iter().all(|it| !it.private));
        assert_eq!((second[0].stream, second[3].stream), (0, 1));
        let mut ops = snapshot.events(Whose::Device(0)).map(|it| it.op);
        assert!(ops.any(|it| matches!(it, Op::Request { private: true, .. })));
    }
}

#[test]
fn a_file_that_was_cut_off_is_refused_wherever_it_ends() {
    for protocol in [2, 5] {
        let whole = written(protocol, 9);
        for length in 0..whole.len() {
            let said = read(&whole[..length]).unwrap_err();
            assert!(said.contains("end of the file"), "{length}: {said}");
        }
    }
}

/// A pickle of protocol 4 with these opcodes.
fn pickle(opcodes: &[u8]) -> Vec<u8> {
    [b"\x80\x04", opcodes, b"."].concat()
}

#[test]
fn classes_and_calls_are_refused_by_their_names() {
    let hostile: [(&[u8], &str, u64); 16] = [
        (b"cos\nsystem\n", "GLOBAL", 2),
        (b"\x8c\x02os\x8c\x06system\x93", "STACK_GLOBAL", 14),
        (b"NNR", "REDUCE", 4),
        (b"NNb", "BUILD", 4),
        (b"(ios\nsystem\n", "INST", 3),
        (b"(No", "OBJ", 4),
        (b"NN\x81", "NEWOBJ", 4),
        (b"NNN\x92", "NEWOBJ_EX", 5),
        (b"Pname\n", "PERSID", 2),
        (b"NQ", "BINPERSID", 3),
        (b"\x82\x01", "EXT1", 2),
        (b"\x83\x01\x00", "EXT2", 2),
        (b"\x84\x01\x00\x00\x00", "EXT4", 2),
        (b"\x97", "NEXT_BUFFER", 2),
        (b"\x98", "READONLY_BUFFER", 2),
        (b"\x8f", "EMPTY_SET", 2),
    ];
    for (opcodes, name, at) in hostile {
        let said = read(&pickle(opcodes)).unwrap_err();
        let start = format!("byte {at} ({name}): expected plain values");
        assert!(said.starts_with(&start), "{said}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let deep = b"(".repeat((1 << 20) + 1);
    let many = b"N".repeat((1 << 20) + 1);
    let entry = |addr: &[u8]| [b"}(\x8c\x06action\x8c\x05alloc\x8c\x06streamK\x00\x8c\x04addr", addr, b"u"].concat();
    // The byte at which it is, and what is expected there.
    let cases: Vec<(Vec<u8>, &str, &str)> = vec![
        (b"".to_vec(), "0", "more of the snapshot, found the end of the file"),
        (b"PK\x03\x04".to_vec(), "0", "a pickle of protocol 2 to 5, found a zip archive"),
        (b"{\"t\":0}".to_vec(), "0", "a pickle of protocol 2 to 5, found a JSON file"),
        (b"(dp0\n.".to_vec(), "0", "a pickle of protocol 2 to 5, found a pickle of protocol 0"),
        (b"\x80\x06N.".to_vec(), "0", "a pickle of protocol 2 to 5, found protocol 6"),
        (pickle(b"\x80\x04"), "2 (PROTO)", "an opcode for plain values, found 0x80"),
        (pickle(b"\xff"), "2", "an opcode for plain values, found 0xff"),
        (pickle(b"2"), "2", "an opcode for plain values, found 0x32"),
        (pickle(b"h\x00"), "2 (BINGET)", "one of the 0 values memorized so far, found a reference to number 0"),
        (
            pickle(b"Nr\xff\xff\xff\xff"),
            "3 (LONG_BINPUT)",
            "values to be memorized as numbers up to 0, found number 4294",
        ),
        (pickle(b"\x94"), "2 (MEMOIZE)", "1 values before it, found 0"),
        (pickle(b"]N(a"), "5 (APPEND)", "1 values before it, found 0"),
        (pickle(b"]e"), "3 (APPENDS)", "a mark before it, found none"),
        (pickle(b"NNa"), "4 (APPEND)", "a list before the values, found another value"),
        (pickle(b"]NNs"), "5 (SETITEM)", "a dict before the values, found another value"),
        (pickle(b"}(Nu"), "5 (SETITEMS)", "as many values as keys, found 1 of both together"),
        (pickle(b"(a"), "3 (APPEND)", "1 values before it, found 0"),
        (pickle(&deep), "1048578 (MARK)", "at most 1048576 values that wait"),
        (pickle(&many), "1048578 (NONE)", "at most 1048576 values that wait"),
        (pickle(b"\x8b\xff\xff\xff\xff"), "2 (LONG4)", "a whole number of at most 16 bytes, found one of 4294967295"),
        (pickle(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "2 (BINUNICODE8)", "more of the snapshot, found the end"),
        (pickle(b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff"), "2 (BINBYTES8)", "more of the snapshot, found the end"),
        (pickle(b"\x95\xff\xff\xff\xff\xff\xff\xff\xff"), "11 (STOP)", "the history of an allocator, found none"),
        (
            pickle(&entry(b"N")),
            "36 (SETITEMS)",
            "an event of a trace to have addr, a whole number from 0 to 18446744073709551615; found another value",
        ),
        (pickle(&entry(b"J\xff\xff\xff\xff")), "40 (SETITEMS)", "an event of a trace to have addr"),
        (
            pickle(&entry(b"K\x01")),
            "37 (SETITEMS)",
            "an event of a trace to have size, a whole number from 0 to 1125899906842624; found none",
        ),
    ];
    for (bytes, at, expected) in cases {
        let (said, start) = (read(&bytes).unwrap_err(), format!("byte {at}: expected {expected}"));
        assert!(said.starts_with(&start), "{said}\nnot: {start}");
    }
}

#[test]
fn a_history_that_begins_in_the_middle_is_told_from_there() {
    let mut snapshot = Snapshot::default();
    let entry = |action, address, at| pinbuddy_snapshot::Entry {
        address,
        bytes: 8,
        at,
        stream: 0,
        stack: None,
        private: false,
        action,
    };
    snapshot.host = vec![
        entry(Action::FreeRequested, 1, 100),
        entry(Action::FreeCompleted, 1, 100),
        entry(Action::Alloc, 2, 110),
        // Time may go back a little where threads note down their events.
        entry(Action::Alloc, 2, 105),
        entry(Action::FreeCompleted, 2, 120),
        entry(Action::SegmentFree, 2, 130),
    ];
    snapshot.steps = vec![99, 115, 131];
    let mut events = snapshot.events(Whose::Host);
    let ops: Vec<(u64, Op)> = events.by_ref().map(|it| at_and_op(&it)).collect();
    assert_eq!(
        ops,
        [
            (10, alloc(0, 8, 0)),
            (10, free(0)),
            (10, Op::Safe { id: 0 }),
            (10, alloc(1, 8, 0)),
            (15, Op::Iteration),
            (20, free(1)),
            (20, Op::Safe { id: 1 }),
            (30, Op::SegmentFree { bytes: 8 }),
        ]
    );
    assert_eq!((events.summary().before, events.summary().unfreed), (1, 1));
}
