//! Writes a header and events as lines, each in its one form.

use std::io::{self, Write};

use super::{Header, header};
use crate::{Event, Op, Whose};

/// Writes a trace, which is complete only after [`Self::finish`].
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    line: Line,
    /// Nanoseconds in what `t` counts.
    unit: u64,
}

impl<W: Write> Writer<W> {
    /// Writes a header with the version alone to `to`. Writes are small and many: `to` should be buffered.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn new(to: W) -> io::Result<Self> {
        Self::with_header(to, &Header::default())
    }

    /// The same with this header. In microseconds, times are rounded down.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn with_header(mut to: W, header: &Header) -> io::Result<Self> {
        header::write(header, &mut to)?;
        let unit = header.unit.nanoseconds();
        let line = Line::default();
        Ok(Self { to, line, unit })
    }

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// Those of the stream; the line may then be written in part.
    pub fn write(&mut self, Event { at, whose, op }: &Event) -> io::Result<()> {
        let line = self.line.begin(at / self.unit);
        match *op {
            Op::Request { id, bytes, thread, stream, private } => {
                let line = line.op("alloc").with("id", id).with("bytes", bytes);
                line.with("thread", thread).only_if(private, "private");
                if let Whose::Device(device) = *whose {
                    line.with("device", device).with("stream", stream);
                }
            }
            Op::SegmentAlloc { bytes } => line.segment("segment_alloc", *whose, bytes),
            Op::SegmentFree { bytes } => line.segment("segment_free", *whose, bytes),
            Op::Free { id, thread, .. } => {
                line.op("free").with("id", id).with("thread", thread);
            }
            Op::Use { id, stream } => {
                line.op("event").with("id", id).with("stream", stream);
            }
            Op::Safe { id } => {
                line.op("safe").with("id", id);
            }
            Op::Wait { id, took, thread } => {
                let line = line.op("wait");
                if let Some(id) = id {
                    line.with("id", id);
                }
                line.with("took", took / self.unit).with("thread", thread);
            }
            Op::Node { node, pinned, used } => {
                let line = line.op("node").with("node", node);
                line.with("pinned", pinned).with("used", used);
            }
            Op::Lost { events } => {
                line.op("lost").with("events", events);
            }
            Op::Clear => {
                line.op("clear");
            }
            Op::Iteration => {
                line.op("iter");
            }
        }
        self.to.write_all(self.line.end())
    }

    /// The stream, between two lines.
    pub fn stream(&mut self) -> &mut W {
        &mut self.to
    }

    /// Flushes and returns the stream.
    ///
    /// # Errors
    ///
    /// Those of the stream: the trace is then incomplete.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// A line that is being made. A recording program pays for each, so numbers are not formatted as `std::fmt` does it, which
/// takes three times as long.
#[derive(Debug, Default)]
struct Line(Vec<u8>);

impl Line {
    fn begin(&mut self, t: u64) -> &mut Self {
        self.0.clear();
        self.0.extend(br#"{"t":"#);
        self.number(t)
    }

    #[inline]
    fn op(&mut self, name: &str) -> &mut Self {
        self.0.extend(br#","op":""#);
        self.0.extend(name.as_bytes());
        self.0.push(b'"');
        self
    }

    #[inline]
    fn with(&mut self, name: &str, value: impl Into<u64>) -> &mut Self {
        self.0.extend(br#",""#);
        self.0.extend(name.as_bytes());
        self.0.extend(br#"":"#);
        self.number(value.into())
    }

    /// Segments of pinned memory have no device, and are not in traces: their line has none and is refused.
    fn segment(&mut self, op: &str, whose: Whose, bytes: u64) {
        self.op(op);
        if let Whose::Device(device) = whose {
            self.with("device", device);
        }
        self.with("bytes", bytes);
    }

    fn only_if(&mut self, set: bool, name: &str) -> &mut Self {
        if set { self.with(name, 1_u64) } else { self }
    }

    fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend(itoa::Buffer::new().format(value).as_bytes());
        self
    }

    fn end(&mut self) -> &[u8] {
        self.0.extend(b"}\n");
        &self.0
    }
}
