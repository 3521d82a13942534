//! Memory as pieces: from when to when each address was pinned, and which pieces lie together.

use std::collections::BTreeMap;

/// Memory from one address to another, from one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) address: u64,
    pub(super) end: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Segments, in the order of a history.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Pinned now, by address: where it ends, and since when.
    open: BTreeMap<u64, (u64, u64)>,
    closed: Vec<Piece>,
}

impl Piece {
    pub(super) fn new(address: u64, end: u64, from: u64, to: u64) -> Self {
        Self { address, end, from, to }
    }
}

impl Pieces {
    pub(super) fn open(&mut self, address: u64, bytes: u64, at: u64) {
        let end = address.saturating_add(bytes);
        // An end that was not recorded.
        self.cut(address, end, at);
        self.open.insert(address, (end, at));
    }

    pub(super) fn close(&mut self, address: u64, bytes: u64, at: u64) {
        let end = address.saturating_add(bytes);
        if !self.cut(address, end, at) {
            self.closed.push(Piece::new(address, end, 0, at));
        }
    }

    /// Ends what is pinned there; an expandable segment may lose a part. Returns whether there was any.
    fn cut(&mut self, address: u64, end: u64, at: u64) -> bool {
        let within = self.open.range(..end).rev();
        let hit: Vec<(u64, u64, u64)> =
            within.take_while(|it| it.1.0 > address).map(|(begin, (to, from))| (*begin, *to, *from)).collect();
        for &(begin, to, from) in &hit {
            self.open.remove(&begin);
            if begin < address {
                self.open.insert(begin, (address, from));
            }
            if to > end {
                self.open.insert(end, (to, from));
            }
            let piece = Piece::new(begin.max(address), to.min(end), from, at);
            self.closed.push(piece);
        }
        !hit.is_empty()
    }

    pub(super) fn end(mut self, at: u64) -> Vec<Piece> {
        let open = self.open.into_iter();
        let rest = open.map(|(address, (end, from))| Piece::new(address, end, from, at));
        self.closed.extend(rest);
        self.closed.retain(|it| it.address < it.end);
        self.closed
    }
}

/// Ranges of addresses, by where they begin: where they end.
pub(super) fn ranges(pieces: impl Iterator<Item = (u64, u64)>) -> BTreeMap<u64, u64> {
    let mut pieces: Vec<(u64, u64)> = pieces.collect();
    pieces.sort_unstable();
    let mut ranges: BTreeMap<u64, u64> = BTreeMap::new();
    for (address, end) in pieces {
        match ranges.last_entry() {
            Some(mut last) if *last.get() >= address => {
                let to = (*last.get()).max(end);
                last.insert(to);
            }
            _ => {
                ranges.insert(address, end);
            }
        }
    }
    ranges
}

/// The range in which memory lies, by where it begins.
pub(super) fn range_of(ranges: &BTreeMap<u64, u64>, address: u64, end: u64) -> Option<u64> {
    let (begin, to) = ranges.range(..=address).next_back()?;
    (end <= *to).then_some(*begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expandable_segment_loses_a_part() {
        let mut pieces = Pieces::default();
        pieces.open(0, 20, 0);
        pieces.open(20, 20, 1);
        pieces.close(10, 20, 5);
        let left = pieces.end(9).into_iter();
        let mut left: Vec<_> = left.map(|it| (it.address, it.end, it.from, it.to)).collect();
        left.sort_unstable();
        let expected = [(0, 10, 0, 9), (10, 20, 0, 5), (20, 30, 1, 5), (30, 40, 1, 9)];
        assert_eq!(left, expected);
    }
}
