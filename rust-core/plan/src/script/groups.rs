//! Which lanes share memory.
//!
//! A lane joins the main lane's group if placing both together takes less than placing each by itself.
//! Threads that run side by side with no order between them have nothing to gain: together, their lifetimes
//! are so uncertain that all of them would meet. A lane by itself repeats itself at its own pace.

use super::iterations::steady_by;
use super::spans::Spans;
use super::steady::Steady;
use crate::record::Record;

/// How many lanes are tried with the main lane; others are by themselves.
const TRIED: usize = 8;

/// How many lanes but the main lane have slots.
const MOST: usize = 64;

/// Lanes that share memory, and what comes again in them.
#[derive(Debug)]
pub(super) struct Group {
    /// The first is the clock.
    pub(super) lanes: Vec<usize>,
    pub(super) steady: Steady,
}

impl Group {
    /// The requests before its iterations, in order. Where sizes vary, only those that are kept or known: others will not come again.
    pub(super) fn early(&self, record: &Record, lanes: &[Vec<u32>], spans: &Spans<'_>) -> Vec<u32> {
        let request = |number: u32| &record.requests[number as usize];
        let own = self.lanes.iter().flat_map(|&lane| &lanes[lane]).copied();
        let begin = self.steady.begin();
        let mut early: Vec<u32> = own.filter(|&it| request(it).begin < begin).collect();
        early.sort_unstable();
        if self.steady.varies(record, lanes) {
            let known = self.steady.sizes();
            early.retain(|&it| {
                let it = request(it);
                spans.keeps(it) || known.contains(&(it.lane, it.granules))
            });
        }
        early
    }
}

/// Groups of lanes, the main lane's first. Others in which nothing comes again are left out.
pub(super) fn groups(record: &Record, lanes: &[Vec<u32>], steady: Steady, main: usize) -> Vec<Group> {
    let mut others: Vec<usize> = (0..steady.lanes.len()).filter(|&it| it != main).collect();
    others.sort_by_cached_key(|&lane| {
        let granules = steady.lanes[lane].granules.iter();
        std::cmp::Reverse(granules.map(|&it| u64::from(it)).sum::<u64>())
    });
    others.truncate(MOST);
    let mut together = vec![main];
    let mut bound = Spans::of(record, &steady, &together).bound();
    let mut apart = Vec::new();
    for (count, lane) in others.into_iter().enumerate() {
        let mut alone = vec![Vec::new(); lanes.len()];
        alone[lane].clone_from(&lanes[lane]);
        let own = steady_by(record, &alone, lane);
        if count < TRIED && !steady.lanes[lane].granules.is_empty() {
            together.push(lane);
            let joined = Spans::of(record, &steady, &together).bound();
            let alone = own.as_ref().map(|it| Spans::of(record, it, &[lane]).bound());
            if alone.is_none_or(|alone| joined <= bound.saturating_add(alone)) {
                bound = joined;
                continue;
            }
            together.pop();
        }
        apart.extend(own.map(|steady| Group { lanes: vec![lane], steady }));
    }
    let first = Group { lanes: together, steady };
    std::iter::once(first).chain(apart).collect()
}
