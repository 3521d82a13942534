//! Lifetimes in the order of their begin, with marks.
//!
//! Every so many pieces of lifetimes there is a *mark*. What overlaps a piece either lived at the mark
//! before it, or began after that mark and before the piece's end, which is a stretch of the sorted
//! pieces. So whoever keeps, for each mark, what lives there looks at little more than what overlaps.

use crate::instance::Piece;

#[derive(Debug)]
pub(crate) struct Lifetimes {
    pieces: Vec<Piece>,
    /// Of each rank of a moment, the first piece that begins then or later.
    begins: Vec<u32>,
    stride: usize,
    /// Of each block, its one or two pieces; the same one twice where it has one.
    of_block: Vec<[u32; 2]>,
}

impl Lifetimes {
    /// `pieces` are sorted by their begin.
    pub(crate) fn new(pieces: Vec<Piece>, moments: u32, blocks: usize) -> Self {
        let mut begins = vec![0_u32; moments as usize + 1];
        for piece in &pieces {
            begins[piece.lower as usize + 1] += 1;
        }
        for moment in 0..moments as usize {
            begins[moment + 1] += begins[moment];
        }
        let mut of_block = vec![[u32::MAX; 2]; blocks];
        for (index, piece) in (0_u32..).zip(&pieces) {
            let own = &mut of_block[piece.block as usize];
            *own = if own[0] == u32::MAX { [index; 2] } else { [own[0], index] };
        }
        // What lives at all marks together is then at most eight times the pieces.
        let stride = (mean_live(&pieces, moments) / 8).max(64);
        Self { pieces, begins, stride, of_block }
    }

    /// The pieces of a block, by their index: one, or two where it lives across the period's end.
    pub(crate) fn indices(&self, block: u32) -> impl Iterator<Item = usize> + use<> {
        let [first, second] = self.of_block[block as usize].map(|index| index as usize);
        let second = (second != first).then_some(second);
        [Some(first), second].into_iter().flatten()
    }

    /// The same as pieces.
    pub(crate) fn of(&self, block: u32) -> impl Iterator<Item = Piece> + '_ {
        self.indices(block).map(|index| self.pieces[index])
    }

    /// All of them, sorted by their begin.
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn piece(&self, index: usize) -> Piece {
        self.pieces[index]
    }

    pub(crate) fn marks(&self) -> usize {
        self.pieces.len().div_ceil(self.stride)
    }

    /// The piece at a mark.
    pub(crate) fn at_mark(&self, mark: usize) -> usize {
        mark * self.stride
    }

    /// The mark before a piece, or at it.
    pub(crate) fn mark_before(&self, index: usize) -> usize {
        index / self.stride
    }

    /// The mark before a piece, or at it; and the stretch of pieces from that mark to the last one
    /// that begins while the piece lives.
    pub(crate) fn since_mark(&self, index: usize) -> (usize, std::ops::Range<usize>) {
        let mark = self.mark_before(index);
        let end = self.begins[self.pieces[index].upper as usize] as usize;
        (mark, self.at_mark(mark)..end)
    }

    /// The marks after a piece's begin at which it lives.
    pub(crate) fn marks_of(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let upper = self.pieces[index].upper;
        (index / self.stride + 1..self.marks()).take_while(move |&mark| self.pieces[mark * self.stride].lower < upper)
    }
}

fn mean_live(pieces: &[Piece], moments: u32) -> usize {
    let lived: u64 = pieces.iter().map(|piece| u64::from(piece.upper - piece.lower)).sum();
    usize::try_from(lived / u64::from(moments.max(1))).expect("no more live than there are")
}
