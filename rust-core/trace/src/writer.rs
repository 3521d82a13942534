//! Writes a header and events as lines, each in its one form.

use std::io::{self, Write};

use super::{Event, Op, header};

/// Writes a trace, which is complete only after [`Self::finish`].
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Writes the header to `to`. Writes are small and many: `to` should be buffered.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn new(mut to: W) -> io::Result<Self> {
        header::write(&mut to)?;
        Ok(Self(to))
    }

    /// Writes an event.
    ///
    /// # Errors
    ///
    /// Those of the stream; the line may then be written in part.
    pub fn write(&mut self, Event { t, op }: &Event) -> io::Result<()> {
        let to = &mut self.0;
        match op {
            Op::Alloc { id, bytes, thread } => writeln!(
                to,
                r#"{{"t":{t},"op":"alloc","id":{id},"bytes":{bytes},"thread":{thread}}}"#
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
            Op::Clear => writeln!(to, r#"{{"t":{t},"op":"clear"}}"#),
            Op::Iter => writeln!(to, r#"{{"t":{t},"op":"iter"}}"#),
        }
    }

    /// Flushes and returns the stream.
    ///
    /// # Errors
    ///
    /// Those of the stream: the trace is then incomplete.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}
