//! Stacks of calls, as far as a snapshot has them: who asked for memory.
//!
//! Texts, frames and stacks are kept once each, as PyTorch shares them. Bounded, whatever a file claims: what is beyond
//! the bounds is left out, and a request then has no stack.

use std::collections::HashMap;

/// Bytes of a name that are kept.
pub(crate) const LONGEST_TEXT: usize = 240;
/// The most texts, and frames in all stacks together: 64 and 16 MB.
const MOST_TEXTS: usize = 200_000;
const MOST_FRAMES: usize = 4_000_000;

/// The stacks of a snapshot.
#[derive(Debug, Default)]
pub struct Stacks {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    frames: Vec<Frame>,
    stacks: Vec<Vec<u32>>,
    /// Frames in all stacks.
    used: usize,
}

/// A frame: numbers of texts, and a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: u64,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'s> {
    /// The function.
    pub function: &'s str,
    /// The file that it is in.
    pub file: &'s str,
    /// The line, from 1 on; 0 where it is not known.
    pub line: u64,
}

impl Stacks {
    /// The calls of a stack, the innermost first. None for a number that [`crate::Entry::stack`] never had.
    pub fn calls(&self, stack: u32) -> impl Iterator<Item = Call<'_>> {
        let frames = self.stacks.get(stack as usize).into_iter().flatten();
        frames.map(|frame| {
            let Frame { name, file, line } = self.frames[*frame as usize];
            Call { function: self.text_of(name), file: self.text_of(file), line }
        })
    }

    fn text_of(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", |it| it)
    }

    /// The number of a text, if there is room for it.
    pub(crate) fn text(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if self.texts.len() >= MOST_TEXTS {
            return None;
        }
        let number = u32::try_from(self.texts.len()).ok()?;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Some(number)
    }

    /// The number of a new frame.
    pub(crate) fn frame(&mut self, frame: Frame) -> Option<u32> {
        if self.frames.len() >= MOST_FRAMES {
            return None;
        }
        self.frames.push(frame);
        u32::try_from(self.frames.len() - 1).ok()
    }

    /// Puts frames on a stack, or on a new one, and returns its number.
    pub(crate) fn extend(&mut self, stack: Option<u32>, frames: impl Iterator<Item = u32>) -> Option<u32> {
        let number = match stack {
            Some(number) => number as usize,
            None if self.used >= MOST_FRAMES => return None,
            None => {
                self.stacks.push(Vec::new());
                self.stacks.len() - 1
            }
        };
        let frames = frames.take(MOST_FRAMES - self.used);
        let before = self.stacks[number].len();
        self.stacks[number].extend(frames);
        self.used += self.stacks[number].len() - before;
        u32::try_from(number).ok()
    }
}
