//! Values that may come again: words, texts, frames and stacks, in four bytes each.

use std::io::BufRead;

use super::Machine;
use crate::entry::Value;
use crate::error::What;
use crate::word::Word;

/// What is remembered of a value: its kind in the two highest bits, and its number. All else is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memo(u32);

/// Numbers are below this.
const KIND: u32 = 1 << 30;

/// Beyond all numbers of words.
const POOL: u32 = 1 << 8;

impl Memo {
    pub(super) fn of(value: Value) -> Self {
        let (kind, number) = match value {
            Value::Word(word) => (0, u32::from(word as u8)),
            Value::Pool => (0, POOL),
            Value::Text(number) => (1, number),
            Value::Frame(number) => (2, number),
            Value::Stack(number) => (3, number),
            _ => (0, 0),
        };
        // What is numbered is bounded far below.
        Self(if number < KIND { kind * KIND + number } else { 0 })
    }

    fn value(self) -> Value {
        let number = self.0 % KIND;
        match self.0 / KIND {
            0 if number == POOL => Value::Pool,
            0 => u8::try_from(number).ok().and_then(Word::numbered).map_or(Value::Plain, Value::Word),
            1 => Value::Text(number),
            2 => Value::Frame(number),
            _ => Value::Stack(number),
        }
    }
}

impl<R: BufRead> Machine<R> {
    pub(super) fn get<const N: usize>(&mut self) -> Result<(), What> {
        let found = self.length::<N>()?;
        let has = self.memo.len();
        let number = usize::try_from(found).ok().and_then(|it| self.memo.get(it));
        let memo = *number.ok_or(What::Memo { found, has })?;
        self.push(memo.value())
    }

    /// Memorizes the last value. Python numbers them as they come.
    pub(super) fn put(&mut self, number: u64) -> Result<(), What> {
        let top = self.above(1)?;
        let next = self.memo.len();
        let memo = Memo::of(self.stack[top]);
        match usize::try_from(number) {
            Ok(number) if number < next => self.memo[number] = memo,
            Ok(number) if number == next => self.memo.push(memo),
            _ => {
                let found = number;
                return Err(What::MemoOutOfTurn { found, next });
            }
        }
        // It is empty still, and may turn out to be of interest.
        if let Value::List(known) | Value::Dict(known) = &mut self.stack[top] {
            *known = u32::try_from(number).ok();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_what_it_was() {
        let values = [Value::Word(Word::Frames), Value::Pool, Value::Text(7), Value::Frame(0), Value::Stack(KIND - 1)];
        for value in values {
            assert_eq!(Memo::of(value).value(), value);
        }
        assert_eq!(Memo::of(Value::Stack(KIND)).value(), Value::Plain);
        assert_eq!(Memo::of(Value::Number(3)).value(), Value::Plain);
    }
}
