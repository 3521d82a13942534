//! The sink that writes a trace into a file.
//!
//! Whole lines reach the file at each pause, so that a crash loses some hundredths of a second and tears at most the
//! last line. An error is said once and ends it. How much serves each NUMA node is asked ten times a second, in the recorder's
//! thread: requests do not know of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pinbuddy_events::trace::{Header, Memory, Writer};
use pinbuddy_events::{Event, Op, Whose};
use pinbuddy_live::NodeUse;

use super::place;
use super::sink::Sink;
use super::source::Lost;
use crate::log;

/// So many bytes are written at once, though there is no pause.
const CHUNK: usize = 1 << 16;

/// See the module's documentation.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file: File,
    lines: Writer<Vec<u8>>,
    /// What the file is about.
    memory: Memory,
    /// The time of the last event.
    at: u64,
    failed: bool,
    nodes: Option<Nodes>,
}

/// How often nodes are looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Nodes {
    look: fn() -> Option<Vec<NodeUse>>,
    next: Instant,
    /// What the file says of each.
    said: BTreeMap<u32, NodeUse>,
}

impl FileSink {
    /// Opens the file of this name, in which `{rank}` and `{pid}` are replaced.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn create(name: &str, header: &Header) -> Result<Self, String> {
        let path = place::path(name);
        let file = place::open(&path)?;
        let lines = Writer::with_header(Vec::new(), header).map_err(|why| why.to_string())?;
        let mut sink = Self { path, file, lines, memory: header.memory, at: 0, failed: false, nodes: None };
        sink.write().map_err(|why| why.to_string())?;
        Ok(sink)
    }

    /// Has the file say what serves each NUMA node, as `look` returns it.
    #[must_use]
    pub fn with_nodes(mut self, look: fn() -> Option<Vec<NodeUse>>) -> Self {
        self.nodes = Some(Nodes { look, next: Instant::now(), said: BTreeMap::new() });
        self
    }

    /// Writes what has changed of nodes' memory, if it is time.
    fn look_at_nodes(&mut self, last: bool) {
        let now = Instant::now();
        let Some(nodes) = self.nodes.as_mut().filter(|it| last || now >= it.next) else {
            return;
        };
        nodes.next = now + LOOK;
        let Some(seen) = (nodes.look)() else {
            return;
        };
        let known = nodes.said.keys();
        let none = |&node: &u32| {
            let it = NodeUse::default();
            (node, NodeUse { node, ..it })
        };
        let mut found: BTreeMap<u32, NodeUse> = known.map(none).collect();
        found.extend(seen.into_iter().map(|it| (it.node, it)));
        let said = std::mem::replace(&mut nodes.said, found.clone());
        for (number, it) in found {
            if said.get(&number) != Some(&it) {
                let NodeUse { node, pinned, used } = it;
                self.line(&Event::host(self.at, Op::Node { node, pinned, used }));
            }
        }
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = self.lines.stream();
        let written = self.file.write_all(text);
        text.clear();
        written
    }

    /// Writes what there is.
    fn flush(&mut self) {
        if self.failed {
            return;
        }
        if let Err(why) = self.write() {
            self.failed = true;
            let path = self.path.display();
            log::warn(|| format!("{path} is no longer recorded to: {why}"));
        }
    }

    fn line(&mut self, event: &Event) {
        // Into memory, so it cannot fail.
        let _ = self.lines.write(event);
        if self.lines.stream().len() >= CHUNK {
            self.flush();
        }
    }
}

impl Sink for FileSink {
    fn event(&mut self, event: Event) {
        let wanted = match self.memory {
            Memory::Pinned => event.whose == Whose::Host,
            Memory::Device => event.whose != Whose::Host || event.op == Op::Iteration,
            Memory::Both => true,
        };
        if wanted {
            self.at = event.at;
            self.line(&event);
        }
    }

    fn lost(&mut self, lost: Lost) {
        let events = match self.memory {
            Memory::Pinned => lost.pinned,
            Memory::Device => lost.device,
            Memory::Both => lost.pinned + lost.device,
        };
        if events > 0 {
            self.line(&Event::host(self.at, Op::Lost { events }));
        }
    }

    fn pause(&mut self) {
        self.look_at_nodes(false);
        self.flush();
    }

    fn is_trace(&self) -> bool {
        // `pinbuddy.trace` is of pinned memory.
        self.memory != Memory::Device
    }

    fn wants_more(&self) -> bool {
        !self.failed
    }

    fn end(&mut self) {
        self.look_at_nodes(true);
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU64, Ordering};

    use pinbuddy_events::trace::{Reader, Unit};

    use super::*;

    fn sink(path: &std::path::Path) -> FileSink {
        let header = Header { unit: Unit::Nanoseconds, ..Header::default() };
        FileSink::create(path.to_str().unwrap(), &header).unwrap()
    }

    #[test]
    fn a_file_has_the_memory_that_it_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let ops = |memory| {
            let path = folder.path().join("memory");
            let header = Header { memory, rank: Some(3), ..Header::default() };
            let mut sink = FileSink::create(path.to_str().unwrap(), &header).unwrap();
            let device = Whose::Device(1);
            let on_stream = Op::Request { id: 2, bytes: 9, thread: 0, stream: 2, private: false };
            for (whose, op) in [
                (Whose::Host, Op::request(1, 9)),
                (device, on_stream),
                (Whose::Host, Op::free(1)),
                (device, Op::Safe { id: 2 }),
                (Whose::Host, Op::Clear),
                (Whose::Host, Op::Iteration),
            ] {
                sink.event(Event { at: 0, whose, op });
            }
            for (pinned, device) in [(7, 2), (0, 2), (7, 0)] {
                sink.lost(Lost { pinned, device });
            }
            sink.end();
            let text = fs::read(&path).unwrap();
            let mut reader = Reader::new(text.as_slice());
            let all: Vec<Event> = reader.by_ref().map(|it| it.unwrap().1).collect();
            assert_eq!((reader.header().memory, reader.header().rank), (memory, Some(3)));
            all
        };
        // The blocks' numbers, and how many were lost.
        let named = |memory| -> Vec<Option<u64>> {
            let number = |it: &Event| match it.op {
                Op::Lost { events } => Some(events),
                op => op.id(),
            };
            ops(memory).iter().map(number).collect()
        };
        let [one, two, nine, seven] = [1, 2, 9, 7].map(Some);
        assert_eq!(named(Memory::Pinned), [one, one, None, None, seven, seven]);
        let both = [one, two, one, two, None, None, nine, two, seven];
        assert_eq!(named(Memory::Both), both);
        assert_eq!(named(Memory::Device), [two, two, None, two, two]);
        let first = ops(Memory::Device)[0];
        assert_eq!(first.whose, Whose::Device(1));
        assert!(matches!(first.op, Op::Request { stream: 2, .. }));
    }

    #[test]
    fn a_nodes_memory_is_said_where_it_has_changed_and_at_the_end() {
        const UNKNOWN: u64 = u64::MAX;
        static PINNED: AtomicU64 = AtomicU64::new(0);
        let look = || match PINNED.load(Ordering::Relaxed) {
            0 => Some(Vec::new()),
            // It cannot be asked, which says nothing.
            UNKNOWN => None,
            pinned => Some(vec![NodeUse { node: 1, pinned, used: 5 }]),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes");
        let mut sink = sink(&path).with_nodes(look);
        sink.event(Event::host(7, Op::Clear));
        for pinned in [70, 80, 80] {
            PINNED.store(pinned, Ordering::Relaxed);
            sink.pause();
        }
        for pinned in [80, UNKNOWN] {
            PINNED.store(pinned, Ordering::Relaxed);
            std::thread::sleep(LOOK);
            sink.pause();
        }
        PINNED.store(0, Ordering::Relaxed);
        sink.end();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        let line = |said| format!(r#"{{"t":7,"op":"node","node":1,{said}}}"#);
        let said = [(70, 5), (80, 5), (0, 0)];
        let said = said.map(|(pinned, used)| line(format!(r#""pinned":{pinned},"used":{used}"#)));
        assert_eq!(lines, said);
    }

    #[test]
    fn whole_lines_are_there_before_the_end() {
        // As many as fill the memory that is written at once several times.
        let event = |id| Event::host(id, Op::request(id, id * 100));
        let events: Vec<Event> = (1..9000).map(event).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(&path);
        let mut lines = 1;
        for (count, event) in events.iter().enumerate() {
            sink.event(*event);
            if count % 1000 == 0 {
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.ends_with('\n'));
                assert!(text.lines().count() >= lines);
                lines = text.lines().count();
            }
        }
        assert!(lines > 1000, "without a pause, too");
        sink.pause();
        let text = fs::read(&path).unwrap();
        let found: Vec<Event> = Reader::new(&*text).map(|it| it.unwrap().1).collect();
        assert_eq!(found, events);
    }
}
