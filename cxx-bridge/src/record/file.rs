//! The sink that writes a trace into a file.
//!
//! Whole lines reach the file at each pause, so that a crash loses some hundredths of a second and tears at most the
//! last line. An error is said once and ends it.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use pinbuddy_trace::{Event as Line, Header, Memory, Op, Writer};

use super::place;
use super::sink::{Event, Sink, What};
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
        let mut sink = Self {
            path,
            file,
            lines,
            memory: header.memory,
            at: 0,
            failed: false,
        };
        sink.write().map_err(|why| why.to_string())?;
        Ok(sink)
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

    fn line(&mut self, op: Op) {
        // Into memory, so it cannot fail.
        let _ = self.lines.write(&Line { t: self.at, op });
        if self.lines.stream().len() >= CHUNK {
            self.flush();
        }
    }
}

impl Sink for FileSink {
    fn event(&mut self, event: Event) {
        let other = match self.memory {
            Memory::Pinned => event.device,
            Memory::Device => !event.device && event.what != What::Iteration,
            Memory::Both => false,
        };
        if other {
            return;
        }
        self.at = event.at;
        self.line(match event.what {
            What::Request {
                id,
                bytes,
                thread,
                private,
            } => Op::Alloc {
                id,
                bytes,
                thread,
                private,
            },
            What::DeviceRequest {
                id,
                bytes,
                thread,
                private,
                device,
                stream,
            } => Op::DeviceAlloc {
                id,
                bytes,
                thread,
                private,
                device,
                stream,
            },
            What::Segment {
                device,
                bytes,
                gone: false,
            } => Op::SegmentAlloc { device, bytes },
            What::Segment { device, bytes, .. } => Op::SegmentFree { device, bytes },
            What::Free { id, thread, .. } => Op::Free { id, thread },
            What::Safe { id } => Op::Safe { id },
            What::Use { id, stream } => Op::Event { id, stream },
            What::Wait { id, took, thread } => Op::Wait { id, took, thread },
            What::Clear => Op::Clear,
            What::Iteration => Op::Iter,
        });
    }

    fn lost(&mut self, lost: Lost) {
        let events = match self.memory {
            Memory::Pinned => lost.pinned,
            Memory::Device => lost.device,
            Memory::Both => lost.pinned + lost.device,
        };
        if events > 0 {
            self.line(Op::Lost { events });
        }
    }

    fn pause(&mut self) {
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
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pinbuddy_trace::checked::{Act, Checker};
    use pinbuddy_trace::{Reader, Unit};

    use super::*;

    fn sink(path: &std::path::Path) -> FileSink {
        let header = Header {
            unit: Unit::Nanoseconds,
            rank: Some(3),
            ..Header::default()
        };
        FileSink::create(path.to_str().unwrap(), &header).unwrap()
    }

    /// As many as fill the memory that is written at once several times.
    fn events() -> Vec<Event> {
        let block = |id| {
            let (bytes, thread) = (id * 100, id as u32 % 3);
            let pending = true;
            [
                What::Request {
                    id,
                    bytes,
                    thread,
                    private: id % 5 == 0,
                },
                What::Wait {
                    id: (id % 2 == 0).then_some(id),
                    took: 0,
                    thread,
                },
                What::Use { id, stream: 1 },
                What::Free {
                    id,
                    thread,
                    pending,
                },
                What::Safe { id },
                What::Iteration,
                What::Clear,
            ]
        };
        let all = (1..2000).flat_map(block);
        let event = |(what, at)| Event {
            at,
            device: false,
            what,
        };
        all.zip(0..).map(event).collect()
    }

    #[test]
    fn what_is_written_is_valid_and_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(&path);
        for event in events() {
            sink.event(event);
        }
        // The file is about pinned memory.
        sink.lost(Lost {
            pinned: 7,
            device: 2,
        });
        sink.lost(Lost {
            pinned: 0,
            device: 2,
        });
        sink.end();
        let text = fs::read(&path).unwrap();
        let mut reader = Reader::new(text.as_slice());
        let (mut checker, mut seen, mut acts) = (Checker::default(), Vec::new(), 0);
        for item in reader.by_ref() {
            let (line, event) = item.unwrap();
            acts += u64::from(checker.check(line, event).unwrap().act != Act::Note);
            seen.push(event);
        }
        assert_eq!(reader.header().rank, Some(3));
        assert_eq!((checker.blocks(), acts), (0, 5 * 1999));
        let lost = seen.pop().unwrap();
        assert_eq!(lost.op, Op::Lost { events: 7 });
        let times = events().into_iter().map(|it| it.at);
        assert!(seen.iter().map(|it| it.t).eq(times));
    }

    #[test]
    fn a_file_has_the_memory_that_it_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let ops = |memory| {
            let path = folder.path().join("memory");
            let header = Header {
                memory,
                ..Header::default()
            };
            let mut sink = FileSink::create(path.to_str().unwrap(), &header).unwrap();
            let (thread, bytes, private, pending) = (0, 9, false, false);
            let (device, stream) = (1, 2);
            for (device, what) in [
                (
                    false,
                    What::Request {
                        id: 1,
                        bytes,
                        thread,
                        private,
                    },
                ),
                (
                    true,
                    What::DeviceRequest {
                        id: 2,
                        bytes,
                        thread,
                        private,
                        device,
                        stream,
                    },
                ),
                (
                    false,
                    What::Free {
                        id: 1,
                        thread,
                        pending,
                    },
                ),
                (true, What::Safe { id: 2 }),
                (false, What::Clear),
                (false, What::Iteration),
            ] {
                let at = 0;
                sink.event(Event { at, device, what });
            }
            sink.end();
            let text = fs::read(&path).unwrap();
            let mut reader = Reader::new(text.as_slice());
            let all: Vec<Op> = reader.by_ref().map(|it| it.unwrap().1.op).collect();
            assert_eq!(reader.header().memory, memory);
            all
        };
        let (pinned, both) = (ops(Memory::Pinned), ops(Memory::Both));
        assert_eq!((pinned.len(), both.len()), (4, 6));
        assert!(matches!(
            pinned[..],
            [
                Op::Alloc { id: 1, .. },
                Op::Free { id: 1, .. },
                Op::Clear,
                Op::Iter
            ]
        ));
        let device = ops(Memory::Device);
        assert!(matches!(
            device[..],
            [
                Op::DeviceAlloc {
                    id: 2,
                    device: 1,
                    stream: 2,
                    ..
                },
                Op::Safe { id: 2 },
                Op::Iter
            ]
        ));
    }

    #[test]
    fn whole_lines_are_there_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut sink = sink(&path);
        let mut lines = 1;
        for (count, event) in events().into_iter().enumerate() {
            sink.event(event);
            if count % 1000 == 0 {
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.ends_with('\n'));
                assert!(text.lines().count() >= lines);
                lines = text.lines().count();
            }
        }
        assert!(lines > 1000, "without a pause, too");
        sink.pause();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1 + events().len());
    }
}
