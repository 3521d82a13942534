//! An event of an allocator's history, as the snapshot has it, and how a dict becomes one.

use std::collections::HashMap;

use crate::error::What;
use crate::stack::{Frame, Stacks};
use crate::word::Word;

/// What the allocator did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// A program got memory.
    Alloc,
    /// A program freed memory.
    FreeRequested,
    /// Memory that was freed may be used again.
    FreeCompleted,
    /// The allocator got memory from the driver.
    SegmentAlloc,
    /// The allocator gave memory back to the driver.
    SegmentFree,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the memory begins.
    pub address: u64,
    /// Its bytes, as the allocator counts them: stock's pinned allocator has rounded them up.
    pub bytes: u64,
    /// When, in microseconds.
    pub at: u64,
    /// The stream, as a small number.
    pub stream: u32,
    /// Who asked, for [`crate::Stacks::calls`]; none where it was not recorded.
    pub stack: Option<u32>,
    /// Whether it is of a private pool, as of a CUDA graph or a `MemPool`. No stream is numbered for such memory.
    pub private: bool,
    /// What happened.
    pub action: Action,
}

impl Entry {
    /// Whether a program asked for memory; nobody is given none.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.action == Action::Alloc && self.bytes > 0
    }
}

/// A value, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing that is of interest here.
    Plain,
    Number(u64),
    /// The id of a private pool.
    Pool,
    Word(Word),
    /// The name of a function or a file, by its number.
    Text(u32),
    /// With where it is in the memo, if it is there.
    List(Option<u32>),
    Dict(Option<u32>),
    /// A frame of a stack, by its number.
    Frame(u32),
    /// A list of them, by its number.
    Stack(u32),
    /// The next of the entries that are in no list yet.
    Entry,
    /// A list of entries, by its number.
    Trace(u32),
    /// A list of such lists, by its number.
    Traces(u32),
}

/// The latest time, in microseconds since 1970: beyond the year 30,000.
pub(crate) const LATEST: u64 = 1 << 60;

/// The most bytes of one event.
pub(crate) const LARGEST: u64 = 1 << 50;

/// Streams come as addresses; here they are numbered.
#[derive(Debug, Default)]
pub(crate) struct Streams(HashMap<u64, u32>);

impl Streams {
    pub(crate) fn number(&mut self, stream: u64) -> u32 {
        // More than a `u32` would need 2^32 events.
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(stream).or_insert(next)
    }
}

/// What the items of a dict come to.
pub(crate) enum Read {
    Nothing,
    Entry(Entry),
    /// An iteration ended then.
    Step(u64),
    /// A call.
    Frame(Frame),
}

/// What an event's action is called; none where it is of no interest here.
pub(crate) fn action(word: Word) -> Option<Action> {
    match word {
        Word::Alloc => Some(Action::Alloc),
        Word::FreeRequested => Some(Action::FreeRequested),
        Word::FreeCompleted => Some(Action::FreeCompleted),
        Word::SegmentAlloc | Word::SegmentMap => Some(Action::SegmentAlloc),
        Word::SegmentFree | Word::SegmentUnmap => Some(Action::SegmentFree),
        _ => None,
    }
}

/// The value of this key, among keys and values in turns.
fn value(items: &[Value], key: Word) -> Option<Value> {
    let mut pairs = items.chunks_exact(2);
    let pair = pairs.find(|pair| pair[0] == Value::Word(key));
    pair.map(|pair| pair[1])
}

/// A call, as far as it is known.
fn frame(items: &[Value], stacks: &mut Stacks) -> Frame {
    let mut text = |key| match value(items, key) {
        Some(Value::Text(number)) => Some(number),
        Some(Value::Word(word)) => stacks.text(word.text()),
        _ => None,
    };
    // A text that had no room has a number that none has.
    Frame {
        name: text(Word::Name).unwrap_or(u32::MAX),
        file: text(Word::Filename).unwrap_or(u32::MAX),
        line: match value(items, Word::Line) {
            Some(Value::Number(line)) => line,
            _ => 0,
        },
    }
}

/// Reads the items of a dict, keys and values in turns.
pub(crate) fn read(items: &[Value], streams: &mut Streams, stacks: &mut Stacks) -> Result<Read, What> {
    let get = |key| value(items, key);
    let number = |key: Word, field: &'static str, most: u64| match get(key) {
        Some(Value::Number(number)) if number <= most => Ok(number),
        Some(Value::Number(_)) => Err((field, most, "a larger one")),
        Some(_) => Err((field, most, "another value")),
        None => Err((field, most, "none")),
    };
    let wrong = |(field, most, found)| What::Field { field, most, found };
    let time = || number(Word::TimeUs, "time_us", LATEST).map_err(wrong);
    let action = match get(Word::Action) {
        // Others are such as oom, snapshot, annotate.
        Some(value) => match value {
            Value::Word(word) => action(word),
            _ => None,
        },
        None if get(Word::Filename).is_some() => return Ok(Read::Frame(frame(items, stacks))),
        None => {
            let ends = get(Word::Stage) == Some(Value::Word(Word::End));
            return Ok(if ends && get(Word::Name) == Some(Value::Word(Word::Step)) {
                Read::Step(time()?)
            } else {
                Read::Nothing
            });
        }
    };
    let Some(action) = action else {
        return Ok(Read::Nothing);
    };
    let stream = number(Word::Stream, "stream", u64::MAX).map_err(wrong)?;
    let private = get(Word::PoolId) == Some(Value::Pool);
    Ok(Read::Entry(Entry {
        address: number(Word::Addr, "addr", u64::MAX).map_err(wrong)?,
        bytes: number(Word::Size, "size", LARGEST).map_err(wrong)?,
        // Older releases of PyTorch note no times: there the order counts alone.
        at: get(Word::TimeUs).map_or(Ok(0), |_| time())?,
        stream: if private { 0 } else { streams.number(stream) },
        stack: match get(Word::Frames) {
            Some(Value::Stack(number)) => Some(number),
            _ => None,
        },
        private,
        action,
    }))
}
