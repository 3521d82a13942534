//! A history as a table: `action,addr,size,stream`, with `time_us` and `device` where there are such columns.
//!
//! The first line names the columns, in any order; columns of other names are passed over. Actions are those of a
//! snapshot. Memory is the events; a line has a limit.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

use crate::Snapshot;
use crate::entry::{self, Entry};
use crate::word::Word;

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 4096;

/// The most events: a compressed file may have any number.
const MOST_EVENTS: usize = 1 << 26;

/// The most devices.
const MOST_DEVICES: u64 = 1 << 10;

/// A table that cannot be read.
#[derive(Debug, Error)]
#[error("line {line}: {what}")]
pub struct TableError {
    line: u64,
    what: Wrong,
}

#[derive(Debug, Error)]
enum Wrong {
    #[error("expected a history's columns (action,addr,size,stream), found no {0}")]
    Column(&'static str),
    #[error("expected {column} to be a whole number up to {most}, found {found:?}")]
    Number { column: &'static str, most: u64, found: String },
    #[error(
        "expected action to be alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map, segment_unmap, oom or \
         snapshot, found {0:?}"
    )]
    Action(String),
    #[error("expected at most {LONGEST_LINE} bytes of text, found more, or an end in the middle of a line")]
    Long,
    #[error("expected at most {MOST_EVENTS} events, found more")]
    Events,
    #[error("expected more of the table, found that it cannot be read: {0}")]
    Unreadable(io::Error),
}

/// Where each column is.
struct Columns {
    action: usize,
    address: usize,
    bytes: usize,
    stream: usize,
    time: Option<usize>,
    device: Option<usize>,
}

impl Columns {
    fn of(line: &str) -> Result<Self, Wrong> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let find = |name| names.iter().position(|it| *it == name);
        let must = |name| find(name).ok_or(Wrong::Column(name));
        Ok(Self {
            action: must("action")?,
            address: must("addr")?,
            bytes: must("size")?,
            stream: must("stream")?,
            time: find("time_us"),
            device: find("device"),
        })
    }

    /// The action of a row that is no event, if it is not known as one that asks for nothing and frees nothing.
    fn unknown(&self, row: &str) -> Option<String> {
        let found = row.split(',').nth(self.action).unwrap_or_default().trim();
        let is_known = ["oom", "snapshot"].contains(&found);
        (!is_known).then(|| found.chars().take(40).collect())
    }
}

impl Snapshot {
    /// Whether a file that begins so may be such a table.
    #[must_use]
    pub fn is_table(first: &[u8]) -> bool {
        let line = first.split(|it| *it == b'\n').next().unwrap_or_default();
        let has = |name: &[u8]| line.split(|it| *it == b',').any(|it| it.trim_ascii() == name);
        has(b"action") && has(b"addr")
    }

    /// Whether a file that begins so is a table of another kind: with other separators, quotes, capitals, or in UTF-16.
    #[must_use]
    pub fn resembles_table(first: &[u8]) -> bool {
        let line = first.split(|it| *it == b'\n').next().unwrap_or_default();
        let plain = line.iter().filter(|it| it.is_ascii_alphabetic());
        let letters: Vec<u8> = plain.map(u8::to_ascii_lowercase).collect();
        let has = |name: &[u8]| letters.windows(name.len()).any(|it| it == name);
        !line.starts_with(b"{") && !line.starts_with(b"<") && has(b"action") && has(b"addr")
    }

    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The first line that is none.
    pub fn read_table(mut from: impl BufRead) -> Result<Self, TableError> {
        let mut snapshot = Self::default();
        let mut streams = entry::Streams::default();
        let (mut columns, mut text, mut events) = (None, String::new(), 0_usize);
        let (mut asks, mut unknown) = (false, None);
        for line in 1.. {
            let wrong = |what| TableError { line, what };
            text.clear();
            let read = from.by_ref().take(LONGEST_LINE).read_line(&mut text);
            match read.map_err(|it| wrong(Wrong::Unreadable(it)))? {
                0 => break,
                length if length as u64 == LONGEST_LINE => return Err(wrong(Wrong::Long)),
                _ => {}
            }
            let text = text.trim();
            events += 1;
            if events > MOST_EVENTS {
                return Err(wrong(Wrong::Events));
            }
            match &columns {
                None => columns = Some(Columns::of(text).map_err(wrong)?),
                Some(_) if text.is_empty() => {}
                Some(columns) => {
                    if let Some((device, entry)) = row(text, columns, &mut streams).map_err(wrong)? {
                        asks |= entry.is_request();
                        if snapshot.devices.len() <= device {
                            snapshot.devices.resize_with(device + 1, Vec::new);
                        }
                        snapshot.devices[device].push(entry);
                    } else if unknown.is_none() {
                        unknown = columns.unknown(text).map(Wrong::Action).map(wrong);
                    }
                }
            }
        }
        match columns {
            Some(_) => unknown.filter(|_| !asks).map_or(Ok(snapshot), Err),
            None => Err(TableError { line: 1, what: Wrong::Column("action") }),
        }
    }
}

/// An event; none for actions that ask for nothing and free nothing.
fn row(text: &str, columns: &Columns, streams: &mut entry::Streams) -> Result<Option<(usize, Entry)>, Wrong> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let number = |at: usize, column, most| {
        let found = fields.get(at).copied().unwrap_or_default();
        let number = found.parse::<u64>().ok().filter(|it| *it <= most);
        number.ok_or_else(|| Wrong::Number { column, most, found: found.chars().take(40).collect() })
    };
    let word = fields.get(columns.action).copied().unwrap_or_default();
    let word = Word::of(word.as_bytes(), word.len() as u64);
    let Some(action) = word.and_then(entry::action) else {
        return Ok(None);
    };
    let device = columns.device.map(|at| number(at, "device", MOST_DEVICES - 1));
    let time = columns.time.map(|at| number(at, "time_us", entry::LATEST));
    let entry = Entry {
        address: number(columns.address, "addr", u64::MAX)?,
        bytes: number(columns.bytes, "size", entry::LARGEST)?,
        at: time.transpose()?.unwrap_or(0),
        stream: streams.number(number(columns.stream, "stream", u64::MAX)?),
        stack: None,
        private: false,
        action,
    };
    Ok(Some((device.transpose()?.unwrap_or(0) as usize, entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;
    use pinbuddy_events::Whose;

    #[test]
    fn columns_are_found_by_their_names_and_unknown_actions_are_passed_over() {
        let text = "size,action,stream,note,addr\n8,alloc,7,x,100\r\n0,oom,7,,0\n\n8,free_completed,0,,100\n";
        assert!(Snapshot::is_table(text.as_bytes()));
        let snapshot = Snapshot::read_table(text.as_bytes()).unwrap();
        let found: Vec<_> = (snapshot.entries(Whose::Device(0)).iter())
            .map(|it| (it.action, it.address, it.bytes, it.at, it.stream))
            .collect();
        assert_eq!(found, [(Action::Alloc, 100, 8, 0, 0), (Action::FreeCompleted, 100, 8, 0, 1)]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        let long = format!("action,addr,size,stream\n{}", "1".repeat(5000));
        for (text, said) in [
            ("", "line 1: expected a history's columns (action,addr,size,stream), found no action"),
            ("id,lower,upper,size", "line 1: expected a history's columns (action,addr,size,stream), found no action"),
            (
                "action,addr,size,stream\nalloc,1,-2,0",
                "line 2: expected size to be a whole number up to 1125899906842624, found \"-2\"",
            ),
            (
                "action,addr,size,stream\nalloc,1",
                "line 2: expected size to be a whole number up to 1125899906842624, found \"\"",
            ),
            (&long, "line 2: expected at most 4096 bytes of text, found more, or an end in the middle of a line"),
        ] {
            let error = Snapshot::read_table(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), said);
        }
    }
}
