//! The sink that writes a trace into a file.
//!
//! Whole lines reach the file at each pause, so that a crash loses some hundredths of a second and tears at most the
//! last line. An error is said once and ends it.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use pinbuddy_trace::{Event as Line, Header, Op, Writer};

use super::place;
use super::sink::{Event, Sink, What};
use crate::log;

/// So many bytes are written at once, though there is no pause.
const CHUNK: usize = 1 << 16;

/// See the module's documentation.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file: File,
    lines: Writer<Vec<u8>>,
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
        self.at = event.at;
        self.line(match event.what {
            What::Request { id, bytes, thread } => Op::Alloc { id, bytes, thread },
            What::Free { id, thread, .. } => Op::Free { id, thread },
            What::Safe { id } => Op::Safe { id },
            What::Use { id, stream } => Op::Event { id, stream },
            What::Clear => Op::Clear,
            What::Iteration => Op::Iter,
        });
    }

    fn lost(&mut self, events: u64) {
        self.line(Op::Lost { events });
    }

    fn pause(&mut self) {
        self.flush();
    }

    fn is_trace(&self) -> bool {
        true
    }

    fn wants_more(&self) -> bool {
        !self.failed
    }

    fn end(&mut self) {
        self.flush();
    }
}
