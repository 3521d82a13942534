//! Traces in the harness's binary format (`tests/bench/trace.h`).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use pinbuddy_events::trace::Reader;
use pinbuddy_events::{Checker, Event};
use pinbuddy_replay::step::{Act, Step};

/// A trace for the harness.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compact {
    slots: u64,
    events: u64,
    bytes: Vec<u8>,
    live: u64,
    peak_live: u64,
}

impl Compact {
    /// Converts checked events.
    pub fn of(events: impl IntoIterator<Item = Event>) -> Result<Self> {
        let mut checker = Checker::default();
        let mut compact = Self::default();
        for (event, line) in events.into_iter().zip(1..) {
            if let Some(step) = Step::checked(&mut checker, line, event)? {
                compact.push(step.at, step.act);
            }
            compact.live = checker.bytes();
            compact.peak_live = compact.peak_live.max(compact.live);
        }
        Ok(compact)
    }

    /// Reads a file of JSON lines.
    pub fn read(path: &Path) -> Result<Self> {
        let file = fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let events: Result<Vec<Event>, _> = Reader::new(std::io::BufReader::new(file))
            .map(|line| line.map(|(_, event)| event))
            .collect();
        let events = events.with_context(|| format!("reading {}", path.display()))?;
        Self::of(events).with_context(|| format!("reading {}", path.display()))
    }

    /// The most bytes that were live at once.
    pub fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<()> {
        let head = [
            *b"PBTRACE1",
            // At least one slot, also for a trace without blocks.
            self.slots.max(1).to_le_bytes(),
            self.events.to_le_bytes(),
        ];
        let mut text = head.concat();
        text.extend_from_slice(&self.bytes);
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn push(&mut self, at: u64, act: Act) {
        let (op, block, bytes, stream) = match act {
            Act::Alloc { block, bytes } => (0, block, bytes, 0),
            Act::Free { block } => (1, block, 0, 0),
            // PyTorch's pool has 32 streams; higher numbers share them.
            Act::Use { block, stream } => (2, block, 0, (stream % 32) as u16),
            Act::Clear => (3, 0, 0, 0),
            Act::Iter => (4, 0, 0, 0),
        };
        self.slots = self.slots.max(u64::from(block) + 1);
        self.events += 1;
        self.bytes.extend_from_slice(&at.to_le_bytes());
        self.bytes.extend_from_slice(&bytes.to_le_bytes());
        self.bytes.extend_from_slice(&block.to_le_bytes());
        self.bytes.extend_from_slice(&stream.to_le_bytes());
        self.bytes.extend_from_slice(&[op, 0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_json_lines_becomes_what_the_header_says() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.jsonl"), folder.path().join("a.trace"));
        let text = r#"{"t":5,"op":"alloc","id":900,"bytes":4096}
{"t":6,"op":"event","id":900,"stream":3}
{"t":7,"op":"free","id":900}
{"t":8,"op":"iter"}
{"t":9,"op":"clear"}
"#;
        fs::write(&from, text).unwrap();
        let compact = Compact::read(&from).unwrap();
        assert_eq!(compact.peak_live(), 4096);
        compact.write(&to).unwrap();
        let bytes = fs::read(&to).unwrap();
        assert_eq!(&bytes[..8], b"PBTRACE1");
        assert_eq!(bytes.len(), 24 + 5 * 24);
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!((number(8), number(16)), (1, 5), "slots, events");
        assert_eq!((number(24), number(32)), (5, 4096), "time, bytes");
        let ops: Vec<u8> = bytes[24..].chunks(24).map(|event| event[22]).collect();
        assert_eq!(ops, [0, 2, 1, 4, 3]);
        fs::write(&from, "{\"t\":1,\"op\":\"free\",\"id\":1}\n").unwrap();
        assert!(
            Compact::read(&from).is_err(),
            "of a block that does not live"
        );
    }
}
