//! The machine that a pickle is a program for: a stack, marks on it, and a memo of values to be used again.
//!
//! Values lose what is of no interest as soon as they are made, so that the memo takes four bytes each (`memo`). `gather` is about lists and dicts. What a dict or list
//! is shows in its items: a dict with an `action` is an event, a list of events a trace. A list or dict that
//! comes again by its memo is of no interest any more; PyTorch shares frames and texts alone.
//!
//! Invariant: `loose` has as many entries as there are `Value::Entry` on the stack, in the same order.

mod gather;
mod memo;
mod opcodes;

use std::io::BufRead;

use crate::Snapshot;
use crate::entry::{Entry, Streams, Value};
use crate::error::{Error, MOST_VALUES, What};
use crate::source::Source;
use crate::stack::Stacks;
use crate::word::Word;
use memo::Memo;
use opcodes as op;

/// Runs the pickle.
pub(crate) fn run(from: impl BufRead) -> Result<Snapshot, Error> {
    let mut machine = Machine::new(Source::new(from));
    let (mut offset, mut opcode) = (0, None);
    let result = machine.begin().and_then(|()| {
        loop {
            offset = machine.source.offset;
            opcode = None;
            let code = machine.source.byte()?;
            opcode = op::name(code);
            if !machine.step(code)? {
                return machine.end();
            }
        }
    });
    result.map_err(|what| Error { offset, opcode, what })
}

struct Machine<R> {
    source: Source<R>,
    stack: Vec<Value>,
    /// Lengths that the stack had.
    marks: Vec<usize>,
    /// What is of interest of each value that may come again.
    memo: Vec<Memo>,
    streams: Streams,
    loose: Vec<Entry>,
    traces: Vec<Vec<Entry>>,
    /// Lists of traces; none stands for an empty one.
    lists: Vec<Vec<Option<u32>>>,
    devices: Option<Value>,
    host: Option<Value>,
    steps: Vec<u64>,
    stacks: Stacks,
}

impl<R: BufRead> Machine<R> {
    fn new(source: Source<R>) -> Self {
        Self {
            source,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            streams: Streams::default(),
            loose: Vec::new(),
            traces: Vec::new(),
            lists: Vec::new(),
            devices: None,
            host: None,
            steps: Vec::new(),
            stacks: Stacks::default(),
        }
    }

    /// The first two bytes.
    fn begin(&mut self) -> Result<(), What> {
        let first = self.source.byte()?;
        if first != op::PROTO {
            let found = match first {
                b'P' => {
                    "a zip archive, as torch.save writes it: save the snapshot with \
                         torch.cuda.memory._dump_snapshot(FILE)"
                }
                b'{' => "a JSON file, such as a trace",
                b'(' | b'c' | b']' | b'}' => "a pickle of protocol 0 or 1, or another kind of file",
                _ => "another kind of file",
            };
            return Err(What::NotAPickle { found });
        }
        match self.source.byte()? {
            2..=5 => Ok(()),
            other => Err(What::Protocol(other)),
        }
    }

    /// One opcode; returns whether there are more.
    fn step(&mut self, code: u8) -> Result<bool, What> {
        match code {
            op::STOP => return Ok(false),
            // A frame's length is advice to read ahead.
            op::FRAME => self.source.skip(8)?,
            op::MARK => self.mark_top()?,
            op::NONE | op::NEWTRUE | op::NEWFALSE | op::EMPTY_TUPLE => self.push(Value::Plain)?,
            op::BININT1 => self.number(1, false)?,
            op::BININT2 => self.number(2, false)?,
            op::BININT => self.number(4, true)?,
            op::LONG1 => self.long::<1>()?,
            op::LONG4 => self.long::<4>()?,
            op::BINFLOAT => self.pass_over(8)?,
            op::SHORT_BINUNICODE => self.text::<1>()?,
            op::BINUNICODE => self.text::<4>()?,
            op::BINUNICODE8 => self.text::<8>()?,
            op::SHORT_BINBYTES => self.bytes::<1>()?,
            op::BINBYTES => self.bytes::<4>()?,
            op::BINBYTES8 | op::BYTEARRAY8 => self.bytes::<8>()?,
            op::TUPLE1 => self.tuple(1)?,
            op::TUPLE2 => self.tuple(2)?,
            op::TUPLE3 => self.tuple(3)?,
            op::TUPLE => {
                let from = self.mark()?;
                self.drop_from(from);
                self.push(Value::Plain)?;
            }
            op::EMPTY_LIST => self.push(Value::List(None))?,
            op::EMPTY_DICT => self.push(Value::Dict(None))?,
            op::APPEND => self.append(self.above(1)?)?,
            op::APPENDS => {
                let from = self.mark()?;
                self.append(from)?;
            }
            op::SETITEM => self.set(self.above(2)?)?,
            op::SETITEMS => {
                let from = self.mark()?;
                self.set(from)?;
            }
            op::BINGET => self.get::<1>()?,
            op::LONG_BINGET => self.get::<4>()?,
            op::BINPUT => {
                let number = self.length::<1>()?;
                self.put(number)?;
            }
            op::LONG_BINPUT => {
                let number = self.length::<4>()?;
                self.put(number)?;
            }
            op::MEMOIZE => self.put(self.memo.len() as u64)?,
            other => return Err(op::refusal(other)),
        }
        Ok(true)
    }

    /// Marks the top of the stack, above which the items of a tuple, list or dict will lie.
    fn mark_top(&mut self) -> Result<(), What> {
        if self.marks.len() >= MOST_VALUES {
            return Err(What::TooMany);
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// A whole number behind its length, which has `N` bytes.
    fn long<const N: usize>(&mut self) -> Result<(), What> {
        let bytes = self.length::<N>()?;
        self.number(bytes, true)
    }

    #[inline]
    fn push(&mut self, value: Value) -> Result<(), What> {
        if self.stack.len() >= MOST_VALUES {
            return Err(What::TooMany);
        }
        self.stack.push(value);
        Ok(())
    }

    /// An unsigned number of N bytes, for lengths and references.
    #[inline]
    fn length<const N: usize>(&mut self) -> Result<u64, What> {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&self.source.array::<N>()?);
        Ok(u64::from_le_bytes(all))
    }

    /// A whole number. One that is negative or too large is of no interest.
    fn number(&mut self, bytes: u64, signed: bool) -> Result<(), What> {
        let value = if signed {
            self.source.number(bytes)?
        } else if bytes == 1 {
            Some(u64::from(self.source.byte()?))
        } else {
            Some(u64::from(u16::from_le_bytes(self.source.array()?)))
        };
        self.push(value.map_or(Value::Plain, Value::Number))
    }

    fn text<const N: usize>(&mut self) -> Result<(), What> {
        let length = self.length::<N>()?;
        let before = self.stack.last();
        let named = [Value::Word(Word::Name), Value::Word(Word::Filename)];
        let value = if before.is_some_and(|it| named.contains(it)) {
            match self.source.text(length)? {
                Ok(word) => Value::Word(word),
                Err(text) => self.stacks.text(&text).map_or(Value::Plain, Value::Text),
            }
        } else {
            let word = self.source.word(length)?;
            word.map_or(Value::Plain, Value::Word)
        };
        self.push(value)
    }

    fn bytes<const N: usize>(&mut self) -> Result<(), What> {
        let length = self.length::<N>()?;
        self.pass_over(length)
    }

    fn pass_over(&mut self, bytes: u64) -> Result<(), What> {
        self.source.skip(bytes)?;
        self.push(Value::Plain)
    }

    /// Where the values since the last mark begin, which is removed.
    fn mark(&mut self) -> Result<usize, What> {
        self.marks.pop().ok_or(What::NoMark)
    }

    /// Where the last `count` values begin, which lie above the last mark.
    fn above(&self, count: usize) -> Result<usize, What> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let has = self.stack.len() - floor;
        if has < count {
            return Err(What::TooFew { needs: count, has });
        }
        Ok(self.stack.len() - count)
    }

    fn tuple(&mut self, count: usize) -> Result<(), What> {
        let from = self.above(count)?;
        // (0, 0) is the pool of all that is not private.
        let value = match self.stack[from..] {
            [Value::Number(0), Value::Number(0)] => Value::Plain,
            [Value::Number(_), Value::Number(_)] => Value::Pool,
            _ => Value::Plain,
        };
        self.drop_from(from);
        self.push(value)
    }

    fn end(mut self) -> Result<Snapshot, What> {
        let mut take = |trace: u32| std::mem::take(&mut self.traces[trace as usize]);
        let devices = match self.devices {
            Some(Value::Traces(list)) => {
                let traces = self.lists[list as usize].iter();
                traces.map(|it| it.map(&mut take).unwrap_or_default()).collect()
            }
            _ => Vec::new(),
        };
        let host = match self.host {
            Some(Value::Trace(trace)) => take(trace),
            _ => Vec::new(),
        };
        let snapshot = Snapshot { devices, host, steps: self.steps, stacks: self.stacks };
        snapshot.whose().ok_or(What::NoTraces)?;
        Ok(snapshot)
    }
}
