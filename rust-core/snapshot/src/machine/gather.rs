//! What lists and dicts become by their items.

use std::io::BufRead;

use super::Machine;
use super::memo::Memo;
use crate::entry::{Read, Value, read};
use crate::error::What;
use crate::word::Word;

impl<R: BufRead> Machine<R> {
    /// Removes the values from `from` on, with what they stand for.
    pub(super) fn drop_from(&mut self, from: usize) {
        let mut entries = 0;
        for value in self.stack.drain(from..) {
            match value {
                Value::Entry => entries += 1,
                Value::Trace(trace) => self.traces[trace as usize] = Vec::new(),
                Value::Traces(list) => {
                    for trace in self.lists[list as usize].drain(..).flatten() {
                        self.traces[trace as usize] = Vec::new();
                    }
                }
                _ => {}
            }
        }
        self.loose.truncate(self.loose.len() - entries);
    }

    /// Where the list or dict lies that the values from `from` on are for.
    fn target(&self, from: usize) -> Result<usize, What> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if from == floor {
            return Err(What::TooFew { needs: 1, has: 0 });
        }
        Ok(from - 1)
    }

    /// Puts the values from `from` on into the list below them.
    pub(super) fn append(&mut self, from: usize) -> Result<(), What> {
        let target = self.target(from)?;
        let list = self.stack[target];
        if !matches!(list, Value::List(_) | Value::Trace(_) | Value::Traces(_) | Value::Stack(_)) {
            return Err(What::NotA { expected: "a list" });
        }
        let items = &mut self.stack[from..];
        let entries = items.iter().filter(|it| **it == Value::Entry).count();
        if entries > 0 && !matches!(list, Value::Traces(_)) {
            let trace = match list {
                Value::Trace(trace) => trace,
                _ => push_to(&mut self.traces),
            };
            let first = self.loose.len() - entries;
            self.traces[trace as usize].extend(self.loose.drain(first..));
            for value in items.iter_mut().filter(|it| **it == Value::Entry) {
                *value = Value::Plain;
            }
            self.stack[target] = Value::Trace(trace);
        } else if items.iter().any(|it| matches!(it, Value::Trace(_))) {
            let number = match list {
                Value::Traces(number) => number,
                _ => push_to(&mut self.lists),
            };
            let traces = items.iter_mut().map(|it| match *it {
                Value::Trace(trace) => {
                    *it = Value::Plain;
                    Some(trace)
                }
                _ => None,
            });
            self.lists[number as usize].extend(traces);
            self.stack[target] = Value::Traces(number);
        } else if matches!(items.first(), Some(Value::Frame(_))) {
            let frames = items.iter().filter_map(|it| match it {
                Value::Frame(number) => Some(*number),
                _ => None,
            });
            let (stack, known) = match list {
                Value::Stack(number) => (Some(number), None),
                Value::List(known) => (None, known),
                _ => (None, None),
            };
            if let Some(number) = self.stacks.extend(stack, frames) {
                self.become_known(target, Value::Stack(number), known);
            }
        }
        self.drop_from(from);
        Ok(())
    }

    /// Puts the keys and values from `from` on into the dict below them.
    pub(super) fn set(&mut self, from: usize) -> Result<(), What> {
        let target = self.target(from)?;
        if !matches!(self.stack[target], Value::Dict(_) | Value::Entry) {
            return Err(What::NotA { expected: "a dict" });
        }
        let items = &mut self.stack[from..];
        if !items.len().is_multiple_of(2) {
            return Err(What::Odd(items.len()));
        }
        for pair in items.chunks_exact_mut(2) {
            let (place, key) = match pair {
                [Value::Word(Word::DeviceTraces), Value::Traces(_)] => (&mut self.devices, "device_traces"),
                [Value::Word(Word::HostTraces), Value::Trace(_)] => (&mut self.host, "host_traces"),
                _ => continue,
            };
            if place.replace(pair[1]).is_some() {
                return Err(What::Twice(key));
            }
            pair[1] = Value::Plain;
        }
        let read = read(items, &mut self.streams, &mut self.stacks)?;
        self.drop_from(from);
        match read {
            Read::Nothing => {}
            Read::Step(at) => self.steps.push(at),
            Read::Frame(frame) => {
                if let Value::Dict(known) = self.stack[target]
                    && let Some(number) = self.stacks.frame(frame)
                {
                    self.become_known(target, Value::Frame(number), known);
                }
            }
            Read::Entry(entry) => {
                if matches!(self.stack[target], Value::Dict(_)) {
                    self.stack[target] = Value::Entry;
                    self.loose.push(entry);
                }
            }
        }
        Ok(())
    }

    /// A list or dict turns out to be of interest, also where the memo has it.
    fn become_known(&mut self, target: usize, value: Value, known: Option<u32>) {
        self.stack[target] = value;
        if let Some(number) = known {
            self.memo[number as usize] = Memo::of(value);
        }
    }
}

/// One more, and its number. A pickle would need gigabytes for more than a `u32` counts.
fn push_to<T>(all: &mut Vec<Vec<T>>) -> u32 {
    all.push(Vec::new());
    u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
}
