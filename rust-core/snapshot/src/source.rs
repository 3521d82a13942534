//! Bytes in their order, and how many there were.

use std::io::{BufRead, ErrorKind};

use crate::error::What;
use crate::stack::LONGEST_TEXT;
use crate::word::{LONGEST, Word};

pub(crate) struct Source<R> {
    from: R,
    /// How many bytes were read.
    pub(crate) offset: u64,
}

impl<R: BufRead> Source<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, offset: 0 }
    }

    /// What is at hand: at least a byte.
    fn some(&mut self) -> Result<&[u8], What> {
        // Twice, since a borrow that is returned from a loop would last for all of it.
        loop {
            match self.from.fill_buf() {
                Ok([]) => return Err(What::CutOff),
                Ok(_) => break,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(What::Unreadable(why)),
            }
        }
        self.from.fill_buf().map_err(What::Unreadable)
    }

    fn take(&mut self, bytes: usize) {
        self.from.consume(bytes);
        self.offset += bytes as u64;
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, What> {
        let byte = *self.some()?.first().ok_or(What::CutOff)?;
        self.take(1);
        Ok(byte)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], What> {
        let mut all = [0; N];
        self.fill(&mut all)?;
        Ok(all)
    }

    #[inline]
    fn fill(&mut self, to: &mut [u8]) -> Result<(), What> {
        let mut done = 0;
        while done < to.len() {
            let found = self.some()?;
            let part = found.len().min(to.len() - done);
            to[done..done + part].copy_from_slice(&found[..part]);
            done += part;
            self.take(part);
        }
        Ok(())
    }

    /// Passes over so many bytes.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), What> {
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX);
            let part = self.some()?.len().min(part);
            self.take(part);
            left -= part as u64;
        }
        Ok(())
    }

    /// A whole number of so many bytes, the least first, at most 16 of them; negative ones count as one.
    pub(crate) fn number(&mut self, bytes: u64) -> Result<Option<u64>, What> {
        let mut all = [0; 16];
        let to = usize::try_from(bytes).ok().and_then(|bytes| all.get_mut(..bytes));
        let to = to.ok_or(What::LongNumber(bytes))?;
        self.fill(to)?;
        let negative = to.last().is_some_and(|last| *last >= 0x80);
        let number = u128::from_le_bytes(all);
        Ok(if negative { None } else { u64::try_from(number).ok() })
    }

    /// A text of so many bytes, as the word that it is.
    pub(crate) fn word(&mut self, length: u64) -> Result<Option<Word>, What> {
        let mut text = [0; LONGEST];
        let first = self.beginning(length, &mut text)?;
        self.skip(length - first.len() as u64)?;
        Ok(Word::of(first, length))
    }

    /// A text of so many bytes, as the word that it is, or its beginning.
    pub(crate) fn text(&mut self, length: u64) -> Result<Result<Word, String>, What> {
        let mut text = [0; LONGEST_TEXT];
        let first = self.beginning(length, &mut text)?;
        self.skip(length - first.len() as u64)?;
        let word = Word::of(&first[..first.len().min(LONGEST)], length);
        Ok(word.ok_or_else(|| String::from_utf8_lossy(first).into_owned()))
    }

    /// The first bytes of a text of this length, as many as there is room for.
    fn beginning<'t>(&mut self, length: u64, to: &'t mut [u8]) -> Result<&'t [u8], What> {
        let first = usize::try_from(length).unwrap_or(to.len()).min(to.len());
        self.fill(&mut to[..first])?;
        Ok(&to[..first])
    }
}
