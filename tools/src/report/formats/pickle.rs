//! Plain values as a pickle of protocol 2, as far as a snapshot needs it: dicts, lists, texts, numbers.
//!
//! Long lists are appended to in pieces, so that none has to be in memory, here or on the stack of a reader: memory_viz
//! hands all items of a piece to one call.

use std::io::{self, Write};

/// Writes values, one after the other.
pub(super) struct Pickle<'w> {
    to: &'w mut dyn Write,
}

impl<'w> Pickle<'w> {
    /// The beginning of a file.
    pub(super) fn new(to: &'w mut dyn Write) -> io::Result<Self> {
        to.write_all(b"\x80\x02")?;
        Ok(Self { to })
    }

    pub(super) fn end(self) -> io::Result<()> {
        self.to.write_all(b".")
    }

    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        // Names of this program's own.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.to.write_all(b"X")?;
        self.to.write_all(&length.to_le_bytes())?;
        self.to.write_all(text.as_bytes())
    }

    pub(super) fn number(&mut self, number: u64) -> io::Result<()> {
        match i32::try_from(number) {
            Ok(short) => {
                self.to.write_all(b"J")?;
                self.to.write_all(&short.to_le_bytes())
            }
            // Of eight bytes memory_viz makes a number; of nine a BigInt, which it cannot add to one.
            Err(_) if i64::try_from(number).is_ok() => {
                self.to.write_all(b"\x8a\x08")?;
                self.to.write_all(&number.to_le_bytes())
            }
            Err(_) => {
                // Nine bytes, the last of which says that it is not negative.
                self.to.write_all(b"\x8a\x09")?;
                self.to.write_all(&number.to_le_bytes())?;
                self.to.write_all(b"\0")
            }
        }
    }

    /// A list whose items `items` writes.
    pub(super) fn list(&mut self, items: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.to.write_all(b"](")?;
        items(self)?;
        self.to.write_all(b"e")
    }

    /// Ends a piece of the list that is being written and begins the next: between two items.
    pub(super) fn next_piece(&mut self) -> io::Result<()> {
        self.to.write_all(b"e(")
    }

    /// A dict whose keys and values `items` writes in turn.
    pub(super) fn dict(&mut self, items: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.to.write_all(b"}(")?;
        items(self)?;
        self.to.write_all(b"u")
    }

    /// Keys with texts, and keys with numbers.
    pub(super) fn entries(&mut self, texts: &[[&str; 2]], numbers: &[(&str, u64)]) -> io::Result<()> {
        texts.as_flattened().iter().try_for_each(|it| self.text(it))?;
        numbers.iter().try_for_each(|(key, number)| {
            self.text(key)?;
            self.number(*number)
        })
    }
}
