//! Writes a header and events as lines, each in its one form.

use std::io::{self, Write};

use super::{Event, Header, Op, header};

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
    pub fn write(&mut self, Event { t, op }: &Event) -> io::Result<()> {
        let line = self.line.begin(t / self.unit);
        match *op {
            Op::Alloc {
                id,
                bytes,
                thread,
                private,
            } => line
                .op("alloc")
                .with("id", id)
                .with("bytes", bytes)
                .with("thread", thread.into())
                .only_if(private, "private"),
            Op::DeviceAlloc {
                id,
                bytes,
                thread,
                private,
                device,
                stream,
            } => line
                .op("alloc")
                .with("id", id)
                .with("bytes", bytes)
                .with("thread", thread.into())
                .only_if(private, "private")
                .with("device", device.into())
                .with("stream", stream.into()),
            Op::SegmentAlloc { device, bytes } => line
                .op("segment_alloc")
                .with("device", device.into())
                .with("bytes", bytes),
            Op::SegmentFree { device, bytes } => line
                .op("segment_free")
                .with("device", device.into())
                .with("bytes", bytes),
            Op::Free { id, thread } => line.op("free").with("id", id).with("thread", thread.into()),
            Op::Event { id, stream } => line
                .op("event")
                .with("id", id)
                .with("stream", stream.into()),
            Op::Safe { id } => line.op("safe").with("id", id),
            Op::Wait { id, took, thread } => {
                let line = line.op("wait");
                if let Some(id) = id {
                    line.with("id", id);
                }
                line.with("took", took / self.unit)
                    .with("thread", thread.into())
            }
            Op::Lost { events } => line.op("lost").with("events", events),
            Op::Clear => line.op("clear"),
            Op::Iter => line.op("iter"),
        };
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
    fn with(&mut self, name: &str, value: u64) -> &mut Self {
        self.0.extend(br#",""#);
        self.0.extend(name.as_bytes());
        self.0.extend(br#"":"#);
        self.number(value)
    }

    fn only_if(&mut self, set: bool, name: &str) -> &mut Self {
        if set { self.with(name, 1) } else { self }
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
