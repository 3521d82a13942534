//! A header and events to lines, each in the one form that it has.

use std::io::{self, Write};

use super::{Event, Op, header};

/// Writes a trace. What was written is on its way only after [`Self::finish`].
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Writes the header to `to`; all comes in many small pieces: best a buffer.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub fn new(mut to: W) -> io::Result<Self> {
        header::write(&mut to)?;
        Ok(Self(to))
    }

    /// One more line.
    ///
    /// # Errors
    ///
    /// Those of the stream; the line may then be there in part.
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

    /// Writes what is still in buffers and gives the stream back.
    ///
    /// # Errors
    ///
    /// Those of the stream: the trace is then not whole.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}
