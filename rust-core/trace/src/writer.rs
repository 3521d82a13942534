//! Writes a header and events as lines, each in its one form.

use std::io::{self, Write};

use super::{Event, Header, Op, header};

/// Writes a trace, which is complete only after [`Self::finish`].
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
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
        Ok(Self { to, unit })
    }

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// Those of the stream; the line may then be written in part.
    pub fn write(&mut self, Event { t, op }: &Event) -> io::Result<()> {
        let to = &mut self.to;
        let t = t / self.unit;
        match op {
            Op::Alloc {
                id,
                bytes,
                thread,
                private,
            } => {
                let private = if *private { r#","private":1"# } else { "" };
                writeln!(
                    to,
                    r#"{{"t":{t},"op":"alloc","id":{id},"bytes":{bytes},"thread":{thread}{private}}}"#
                )
            }
            Op::DeviceAlloc {
                id,
                bytes,
                thread,
                private,
                device,
                stream,
            } => {
                let private = if *private { r#","private":1"# } else { "" };
                writeln!(
                    to,
                    r#"{{"t":{t},"op":"alloc","id":{id},"bytes":{bytes},"thread":{thread}{private},"device":{device},"stream":{stream}}}"#
                )
            }
            Op::SegmentAlloc { device, bytes } => writeln!(
                to,
                r#"{{"t":{t},"op":"segment_alloc","device":{device},"bytes":{bytes}}}"#
            ),
            Op::SegmentFree { device, bytes } => writeln!(
                to,
                r#"{{"t":{t},"op":"segment_free","device":{device},"bytes":{bytes}}}"#
            ),
            Op::Free { id, thread } => {
                writeln!(to, r#"{{"t":{t},"op":"free","id":{id},"thread":{thread}}}"#)
            }
            Op::Event { id, stream } => {
                writeln!(
                    to,
                    r#"{{"t":{t},"op":"event","id":{id},"stream":{stream}}}"#
                )
            }
            Op::Safe { id } => writeln!(to, r#"{{"t":{t},"op":"safe","id":{id}}}"#),
            Op::Lost { events } => writeln!(to, r#"{{"t":{t},"op":"lost","events":{events}}}"#),
            Op::Clear => writeln!(to, r#"{{"t":{t},"op":"clear"}}"#),
            Op::Iter => writeln!(to, r#"{{"t":{t},"op":"iter"}}"#),
        }
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
