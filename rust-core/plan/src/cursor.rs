//! A lane's place in its sequence of sizes: which entry a request is.
//!
//! The cursor looks at the next few entries for one of the request's size, and moves behind it. Where it
//! left out some it may have been wrong: if the next request fits where it was, it goes back. After
//! several misses in a row it looks for the last few sizes anywhere, and takes the nearest place,
//! before it or behind it. A period may be several iterations. At an iteration's
//! mark, a cursor that is not near the begin of one, on either side, goes on to the next such begin.

use std::collections::HashMap;

/// How many entries a cursor looks at.
const LOOK_AHEAD: usize = 8;

/// After so many misses in a row a lane looks for its place.
const LOST: u32 = 4;

/// So many sizes tell a place.
const CLUE: usize = 4;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cursor {
    sizes: Vec<u64>,
    /// Entries from this one on come again and again.
    period: usize,
    /// The entries of an iteration; 0 where nothing comes again.
    iteration: usize,
    next: usize,
    /// Where the cursor was before it left out entries, if no request since then decided.
    before: Option<usize>,
    misses: u32,
    /// The last sizes, the newest last.
    clue: [u64; CLUE],
    /// Where the sequence has which sizes in a row: made when the lane is lost for the first time.
    places: Option<HashMap<[u64; CLUE], Vec<u32>>>,
}

impl Cursor {
    /// A cursor before the first of `sizes`, which come again and again from number `period` on, in so many
    /// iterations.
    pub(crate) fn new(sizes: Vec<u64>, period: usize, turns: u32) -> Self {
        Self {
            iteration: (sizes.len() - period) / turns as usize,
            sizes,
            period,
            next: 0,
            before: None,
            misses: 0,
            clue: [0; CLUE],
            places: None,
        }
    }

    /// The entry for a request of `bytes`, if there is one.
    pub(crate) fn next(&mut self, bytes: u64) -> Option<usize> {
        self.clue.rotate_left(1);
        self.clue[CLUE - 1] = bytes;
        let next = self.next;
        if let Some(at) = self.ahead(next, 1, bytes) {
            self.before = None;
            return Some(self.found(at));
        }
        // The entry that was left out, or the one behind it: another request stood for the first.
        let back = self.before.take();
        if let Some(at) = back.and_then(|before| self.ahead(before, 2, bytes)) {
            return Some(self.found(at));
        }
        if let Some(at) = self.ahead(next, LOOK_AHEAD, bytes) {
            self.before = Some(next);
            return Some(self.found(at));
        }
        self.misses += 1;
        if self.misses < LOST {
            return None;
        }
        let (sizes, period) = (&self.sizes, self.period);
        let places = self.places.get_or_insert_with(|| places(sizes, period));
        let places = places.get(&self.clue)?;
        // The nearest: the last before here or the first from here on; the sequence's ends are near each
        // other for want of a better one.
        let after = places.partition_point(|&it| (it as usize) < next);
        let near = [places.len() + after - 1, after].map(|it| places[it % places.len()] as usize);
        let far = |place: usize| match place.abs_diff(next) {
            far if place.min(next) < period => far,
            far => far.min(sizes.len() - period - far),
        };
        let place = near.into_iter().min_by_key(|&place| far(place))?;
        Some(self.found(place))
    }

    /// The first of `count` entries from `from` on that has this size.
    fn ahead(&self, from: usize, count: usize, bytes: u64) -> Option<usize> {
        let mut at = from;
        for _ in 0..count {
            at = self.wrapped(at);
            if *self.sizes.get(at)? == bytes {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    fn found(&mut self, at: usize) -> usize {
        self.next = at + 1;
        self.misses = 0;
        at
    }

    /// Behind the last entry comes the period's first.
    fn wrapped(&self, at: usize) -> usize {
        if at < self.sizes.len() { at } else { self.period }
    }

    /// An iteration begins.
    pub(crate) fn mark(&mut self) {
        let Some(own) = self.next.checked_sub(self.period) else {
            return;
        };
        if self.iteration == 0 {
            return;
        }
        let past = own % self.iteration;
        if past.min(self.iteration - past) > LOOK_AHEAD {
            self.next = self.wrapped(self.next - past + self.iteration);
            self.misses = 0;
        }
    }
}

/// For each few sizes in a row: the entries that end them, in order. What comes before the period's first
/// entries is its end.
fn places(sizes: &[u64], period: usize) -> HashMap<[u64; CLUE], Vec<u32>> {
    let mut places: HashMap<[u64; CLUE], Vec<u32>> = HashMap::new();
    let length = sizes.len() - period;
    for last in 0..sizes.len() {
        let clue = match last.checked_sub(period) {
            None if last + 1 < CLUE => continue,
            None => std::array::from_fn(|at| sizes[last + 1 + at - CLUE]),
            Some(own) => std::array::from_fn(|at| sizes[period + (length * CLUE + own + 1 + at - CLUE) % length]),
        };
        places.entry(clue).or_default().push(last as u32);
    }
    places
}
