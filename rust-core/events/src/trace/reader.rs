//! Reads lines from a stream of bytes, one at a time and none longer than an event can be.
//!
//! Memory is bounded by [`LONGEST_HEADER`] whatever the stream holds. Nothing is read after an error, since
//! the lines that follow an invalid one cannot be trusted.

use std::io::{BufRead, ErrorKind};

use serde::de::IgnoredAny;

use super::error::{Error, Excerpt, What};
use super::{Header, header, line};
use crate::Event;

/// The longest line of an event, in bytes and without its end. The writer's longest line has 160.
pub const LONGEST_LINE: usize = 1024;

/// The longest header.
pub const LONGEST_HEADER: usize = 1 << 14;

/// The events of a trace, in order; the first error is the last item. Each comes with the number
/// of its line. The header is read and is no item.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// The line being read.
    text: Vec<u8>,
    line: u64,
    header: Header,
    version: u64,
    lenient: bool,
    cut_off: Option<u64>,
    over: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `from`.
    pub fn new(from: R) -> Self {
        Self {
            from,
            text: Vec::with_capacity(LONGEST_LINE),
            line: 0,
            header: Header::default(),
            version: 1,
            lenient: false,
            cut_off: None,
            over: false,
        }
    }

    /// The same; a last line that is cut off ends the trace and is no error.
    pub fn lenient(from: R) -> Self {
        Self { lenient: true, ..Self::new(from) }
    }

    /// What the header says, once the first event was read.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The version of the format, once the first event was read.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The last line, if a lenient reader found it cut off.
    pub fn cut_off(&self) -> Option<u64> {
        self.cut_off
    }

    /// Reads one line into `self.text`; returns whether it has an end, or `None` at the end of the file.
    fn read_line(&mut self) -> Result<Option<bool>, What> {
        let most = if self.line == 1 { LONGEST_HEADER } else { LONGEST_LINE };
        self.text.clear();
        loop {
            let found = match self.from.fill_buf() {
                Ok(found) => found,
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) => return Err(What::Unreadable(why)),
            };
            if found.is_empty() {
                return Ok((!self.text.is_empty()).then_some(false));
            }
            let end = found.iter().position(|byte| *byte == b'\n');
            let part = &found[..end.unwrap_or(found.len())];
            if self.text.len() + part.len() > most {
                let said = format!("expected at most {most} bytes, found more");
                return Err(What::Other(said));
            }
            self.text.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(true));
            }
        }
    }

    /// The event of this line; `None` for the header.
    fn event(&mut self, has_end: bool) -> Result<Option<Event>, What> {
        let text = std::str::from_utf8(&self.text).map_err(|why| {
            let (at, byte) = (why.valid_up_to(), self.text[why.valid_up_to()]);
            let column = at + 1;
            What::Other(format!("expected UTF-8, found the byte {byte:#04x} at column {column}"))
        })?;
        if text.trim_ascii().is_empty() {
            return Err(What::Other("expected an event, found an empty line".to_owned()));
        }
        if self.line == 1
            && let Some(read) = header::parse(text)
        {
            (self.version, self.header) = read?;
            return Ok(None);
        }
        let unit = self.header.unit.nanoseconds();
        line::parse(text, unit).map(Some).map_err(|what| match what {
            What::NotAnEvent { .. } if header::parse(text).is_some() => What::Other(
                "expected an event, found a header, which is for line 1 alone: \
                     if several traces are in one file, split it before each header"
                    .to_owned(),
            ),
            What::NotAnEvent { .. } if !has_end && (self.line > 1 || is_begun(text)) => {
                let from = text.char_indices().rev().nth(30).map_or(0, |(at, _)| at);
                What::CutOff(Excerpt::of(&text[from..]))
            }
            what => what,
        })
    }
}

/// Whether it is the beginning of an object: of a file's only line, all else is of another kind of file.
fn is_begun(text: &str) -> bool {
    let read = serde_json::from_str::<IgnoredAny>(text);
    text.starts_with('{') && read.is_err_and(|why| why.is_eof())
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<(u64, Event), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        loop {
            self.line += 1;
            let event = match self.read_line() {
                Ok(None) => {
                    self.over = true;
                    return None;
                }
                Ok(Some(has_end)) => self.event(has_end),
                Err(what) => Err(what),
            };
            self.over = event.is_err();
            let line = self.line;
            if self.lenient && matches!(event, Err(What::CutOff(_))) {
                self.cut_off = Some(line);
                return None;
            }
            match event {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok((line, event))),
                Err(what) => return Some(Err(what.on(line))),
            }
        }
    }
}

#[cfg(test)]
mod tests;
