//! First fit with holes: blocks are placed one after the other, each in a gap between those that are
//! placed and live at the same time.
//!
//! Invariant: of each mark in time, `profiles` has what is placed and lives there, sorted by offset.

use crate::instance::Instance;

/// Which gap a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The lowest that is long enough.
    Lowest,
    /// The shortest that is long enough; the lowest of those.
    Shortest,
}

/// Bytes that are taken until a moment.
#[derive(Clone, Copy, Debug)]
struct Taken {
    from: u64,
    to: u64,
    /// The rank of the moment at which they are free again.
    until: u32,
}

impl Taken {
    fn bytes(&self) -> (u64, u64) {
        (self.from, self.to)
    }
}

/// Places blocks; what it needs for that is kept from one order to the next.
#[derive(Debug)]
pub(crate) struct Packer<'i> {
    instance: &'i Instance,
    /// Pieces of what is placed, as bits.
    placed: Vec<u64>,
    profiles: Vec<Vec<Taken>>,
    /// What begins after a mark.
    recent: Vec<(u64, u64)>,
    offsets: Vec<u64>,
}

impl<'i> Packer<'i> {
    pub(crate) fn new(instance: &'i Instance) -> Self {
        Self {
            instance,
            placed: vec![0; instance.lifetimes.pieces().len().div_ceil(64)],
            profiles: vec![Vec::new(); instance.lifetimes.marks()],
            recent: Vec::new(),
            offsets: vec![0; instance.blocks.len()],
        }
    }

    /// The peak of placing the blocks in this order, if it is below `limit`; none as soon as it is
    /// not, or `stop` says so.
    pub(crate) fn pack(&mut self, order: &[u32], gap: Gap, limit: u64, stop: &dyn Fn() -> bool) -> Option<u64> {
        self.pack_around(std::iter::empty(), order, gap, limit, stop)
    }

    /// The same around blocks that have their places, at these offsets.
    pub(crate) fn pack_around(
        &mut self,
        placed: impl Iterator<Item = (u32, u64)>,
        order: &[u32],
        gap: Gap,
        limit: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<u64> {
        self.placed.fill(0);
        self.profiles.iter_mut().for_each(Vec::clear);
        let mut peak = 0;
        for (block, offset) in placed {
            let end = offset + self.instance.blocks[block as usize].size;
            if end >= limit {
                return None;
            }
            peak = peak.max(end);
            self.place(block, offset);
        }
        for (count, &block) in order.iter().enumerate() {
            if count % 1024 == 1023 && stop() {
                return None;
            }
            let offset = self.offset(block, gap);
            let end = offset + self.instance.blocks[block as usize].size;
            if end >= limit {
                return None;
            }
            peak = peak.max(end);
            self.place(block, offset);
        }
        Some(peak)
    }

    /// Where the blocks lie after [`Self::pack`] has answered with a peak.
    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    fn place(&mut self, block: u32, offset: u64) {
        let lifetimes = &self.instance.lifetimes;
        let end = offset + self.instance.blocks[block as usize].size;
        self.offsets[block as usize] = offset;
        for index in lifetimes.indices(block) {
            self.placed[index / 64] |= 1 << (index % 64);
            let until = lifetimes.piece(index).upper;
            for mark in lifetimes.marks_of(index) {
                let profile = &mut self.profiles[mark];
                let at = profile.partition_point(|taken| taken.from < offset);
                profile.insert(at, Taken { from: offset, to: end, until });
            }
        }
    }

    /// Where a block goes. What lives across the period's end has two pieces, and needs a gap that is
    /// one for both: then everything is sorted together.
    fn offset(&mut self, block: u32, gap: Gap) -> u64 {
        let lifetimes = &self.instance.lifetimes;
        let size = self.instance.blocks[block as usize].size;
        self.recent.clear();
        let mut own = lifetimes.indices(block);
        let (first, second) = (own.next().expect("a block lives"), own.next());
        let lower = lifetimes.piece(first).lower;
        let (mark, _) = lifetimes.since_mark(first);
        let late = if second.is_some() { None } else { self.late_mark(first) };
        for index in std::iter::once(first).chain(second) {
            self.begun(index, late);
        }
        if let Some(second) = second {
            for index in [first, second] {
                let lower = lifetimes.piece(index).lower;
                let (mark, _) = lifetimes.since_mark(index);
                let living = self.profiles[mark].iter().filter(|taken| taken.until > lower);
                self.recent.extend(living.map(Taken::bytes));
            }
        }
        self.recent.sort_unstable_by_key(|it| it.0);
        let profile: &[Taken] = if second.is_some() { &[] } else { &self.profiles[mark] };
        let late: &[Taken] = late.map_or(&[], |it| &self.profiles[it]);
        let living = profile.iter().filter(|taken| taken.until > lower).map(Taken::bytes);
        fit(merged(merged(living, late.iter().map(Taken::bytes)), self.recent.iter().copied()), size, gap)
    }

    /// The last mark at which a piece lives, if to merge what lives there is less than to sort what begins before it: most of that
    /// lives there.
    fn late_mark(&self, index: usize) -> Option<usize> {
        let lifetimes = &self.instance.lifetimes;
        let (mark, range) = lifetimes.since_mark(index);
        let last = lifetimes.mark_before(range.end - 1);
        let begun = lifetimes.at_mark(last) - range.start;
        (last > mark && self.profiles[last].len() <= begun * begun.ilog2() as usize).then_some(last)
    }

    /// Notes what is placed and begins between the mark before a piece and the piece's end; not what lives at the `late` mark.
    fn begun(&mut self, index: usize, late: Option<usize>) {
        let lifetimes = &self.instance.lifetimes;
        let lower = lifetimes.piece(index).lower;
        let (_, range) = lifetimes.since_mark(index);
        if range.is_empty() {
            return;
        }
        let late = late.map_or(0, |mark| lifetimes.at_mark(mark));
        let late_lower = lifetimes.piece(late).lower;
        let (first, last) = (range.start / 64, (range.end - 1) / 64);
        for word in first..=last {
            let mut bits = self.placed[word];
            if word == first {
                bits &= u64::MAX << (range.start % 64);
            }
            if word == last {
                bits &= u64::MAX >> (63 - (range.end - 1) % 64);
            }
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                let other = lifetimes.piece(at);
                bits &= bits - 1;
                if other.upper > lower && (at >= late || other.upper <= late_lower) {
                    let offset = self.offsets[other.block as usize];
                    let size = self.instance.blocks[other.block as usize].size;
                    self.recent.push((offset, offset + size));
                }
            }
        }
    }
}

/// Both lists as one, if each is sorted by the first number.
fn merged(
    one: impl Iterator<Item = (u64, u64)>,
    other: impl Iterator<Item = (u64, u64)>,
) -> impl Iterator<Item = (u64, u64)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if b.0 < a.0 => other.next(),
        (None, _) => other.next(),
        _ => one.next(),
    })
}

/// A gap between what is taken, which is sorted by its begin.
fn fit(taken: impl Iterator<Item = (u64, u64)>, size: u64, gap: Gap) -> u64 {
    let (mut free_from, mut shortest) = (0, None);
    for (from, to) in taken {
        // The same bytes may be there twice: then there is no gap.
        let length = from.saturating_sub(free_from);
        if length >= size {
            if gap == Gap::Lowest {
                return free_from;
            }
            if shortest.is_none_or(|(least, _)| length < least) {
                shortest = Some((length, free_from));
            }
        }
        free_from = free_from.max(to);
    }
    shortest.map_or(free_from, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;
    use crate::random::Random;

    /// Some live across many marks, most across few.
    fn instance(random: &mut Random, is_cyclic: bool) -> Instance {
        let mut block = |at: u64| {
            let most = if random.below(9) == 0 { 1900 } else { 500 };
            Block { lower: at, upper: at + 1 + random.below(most) as u64, size: 1 + random.below(60) as u64 }
        };
        let blocks = (0..2000).map(&mut block).collect();
        if is_cyclic { Instance::cyclic(blocks, 0..2000) } else { Instance::new(blocks) }.unwrap()
    }

    #[test]
    fn each_block_lies_in_the_first_gap_beside_those_that_were_placed_before_and_live_with_it() {
        let mut random = Random::new(5);
        for is_cyclic in [false, true] {
            let instance = instance(&mut random, is_cyclic);
            let mut order: Vec<u32> = (0..2000).collect();
            order.sort_by_cached_key(|_| random.below(1 << 20));
            let mut packer = Packer::new(&instance);
            packer.pack(&order, Gap::Lowest, u64::MAX, &|| false).unwrap();
            let of = |block: u32| instance.lifetimes.of(block);
            let meet = |a, b| of(a).any(|a| of(b).any(|b| a.lower < b.upper && b.lower < a.upper));
            let bytes = |it: u32| (packer.offsets[it as usize], instance.blocks[it as usize].size);
            for (at, &block) in order.iter().enumerate() {
                let beside = order[..at].iter().filter(|it| meet(block, **it)).map(|it| bytes(*it));
                let mut beside: Vec<(u64, u64)> = beside.map(|(from, size)| (from, from + size)).collect();
                beside.sort_unstable();
                let (offset, size) = bytes(block);
                assert_eq!(offset, fit(beside.into_iter(), size, Gap::Lowest));
            }
        }
    }
}
