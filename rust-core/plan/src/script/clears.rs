//! What is known of clears: where the loop empties the cache, and what should not lie beside what a clear can return.
//!
//! A region is unpinned only while nothing lies in it. Programs empty the cache where little is in use, but not in each
//! run at the same place: in the loop, and once more at the end. So all that lives at such times is placed apart from
//! what never does, whether the record has a clear there or not.

use super::spans::{Span, Spans};
use crate::record::{Levels, NEVER, Record, Request};

/// Little is in use: one part of the most in so many at most, as at the engine's low-water marks.
const LITTLE: i128 = 8;

/// What is in use then is so many times less than what is at the next level, or else it is the least of all.
const GAP: i128 = 4;

/// So many pools at most have regions of their own, the longest: each is an allocation.
const MOST_POOLS: usize = 4;

/// A pool is large from one part in so many of the most in use on.
const LARGE: u64 = 8;

/// The loop empties the cache if it did so this often in the record; once may be its end.
const AGAIN: usize = 2;

/// Of each of `spans`, whether it lives where the cache may be emptied; nothing if the program never does that, unless it is
/// `wanted` nevertheless.
pub(super) fn across(spans: &Spans<'_>, record: &Record, wanted: bool) -> Option<Vec<bool>> {
    let begin = spans.first_begin();
    if !wanted && record.clears.iter().all(|&it| it < begin) {
        return None;
    }
    let low = LowWater::of(spans);
    let iterations = begin..spans.end();
    let in_them = record.clears.iter().filter(|it| iterations.contains(it));
    let emptied = in_them.count() >= AGAIN;
    let across = |span: &Span| {
        let lives = |number| lives_at_a_clear(record, number);
        low.meets(span) || emptied && spans.requests(span).any(lives)
    };
    Some(spans.spans.iter().map(across).collect())
}

fn lives_at_a_clear(record: &Record, number: u32) -> bool {
    let own = &record.requests[number as usize];
    let next = record.clears.partition_point(|&it| it < own.begin);
    let clear = record.clears.get(next);
    own.over != NEVER && clear.is_some_and(|&it| it < own.over)
}

/// Where on the line pools begin: what is `kept` of the `early` requests, and was asked for behind a clear. `places` are all offsets
/// and lengths, those of `early` first; no place is cut. A program that empties its cache often looks next how much the device
/// has left, and makes a pool that large; so it lies in a region of its own, which is not there, or idle, while the cache is
/// emptied.
pub(super) fn pools(
    record: &Record,
    early: &[u32],
    kept: impl Fn(&Request) -> bool,
    places: &[(u64, u64)],
) -> Vec<u64> {
    let mut pools: Vec<(u64, u64)> = Vec::new();
    let mut clears = record.clears.iter().copied().peekable();
    for (&number, &(offset, bytes)) in early.iter().zip(places) {
        let own = &record.requests[number as usize];
        if !kept(own) {
            continue;
        }
        let mut was_emptied = false;
        while clears.next_if(|&it| it < own.begin).is_some() {
            was_emptied = true;
        }
        if was_emptied {
            pools.push((0, offset));
        }
        if let Some(pool) = pools.last_mut() {
            pool.0 += bytes;
        }
    }
    pools.sort_unstable_by_key(|it| std::cmp::Reverse(*it));
    let offsets = pools.into_iter().map(|it| it.1);
    offsets.filter(|it| !is_cut(places, *it)).take(MOST_POOLS).collect()
}

/// Where on the line that begins which stays and is asked for after the first block that does not: an optimizer's states, behind
/// weights. An edited program shows that it is one between the two, and does not take their region. `places` as above.
pub(super) fn states(record: &Record, early: &[u32], spans: &Spans<'_>, places: &[(u64, u64)]) -> Option<u64> {
    let request = |number: &u32| &record.requests[*number as usize];
    let passing = early.iter().map(request).find(|it| !spans.keeps(it));
    let first = passing.map_or(spans.first_begin(), |it| it.begin);
    let kept = early.iter().zip(places);
    let states = kept.filter(|(number, _)| spans.keeps(request(number)) && request(number).begin > first);
    let begin = states.map(|it| it.1.0).min()?;
    (!is_cut(places, begin)).then_some(begin)
}

/// Whether a place lies on both sides of this point.
fn is_cut(places: &[(u64, u64)], at: u64) -> bool {
    places.iter().any(|it| it.0 < at && at < it.0 + it.1)
}

/// Whether it is part of a pool: asked for behind a clear in the record's first half, and there for three quarters of the time from
/// the clear to the record's end. A program frees a pool before it ends, and may ask for something afterwards. Activations and
/// gradients live shorter, but behind a clear in each iteration: of the last one's tail they live most.
pub(super) fn is_pooled(record: &Record, request: &Request) -> bool {
    let before = record.clears.partition_point(|&it| it < request.begin);
    let Some(clear) = before.checked_sub(1).map(|it| record.clears[it]) else {
        return false;
    };
    let rest = u64::from(record.now - clear);
    let lived = u64::from(request.over.min(record.now) - request.begin);
    rest * 2 >= u64::from(record.now) && lived * 4 >= rest * 3
}

/// Whether the record has a pool, or something is kept that was asked for behind a clear.
pub(crate) fn has_pool(record: &Record) -> bool {
    let first = record.clears.first();
    let is_behind = |begin: u32| first.is_some_and(|&it| it < begin);
    let is_kept = |it: &Request| it.over == NEVER && is_behind(it.begin);
    let mut all = record.requests.iter();
    all.any(|it| is_kept(it) || is_pooled(record, it))
}

/// The clears behind which large pools are made, by their numbers.
pub(crate) fn looks(record: &Record) -> Vec<usize> {
    let mut made = vec![0; record.clears.len() + 1];
    for request in record.requests.iter().filter(|it| is_pooled(record, it)) {
        made[record.clears.partition_point(|&it| it < request.begin)] += request.bytes();
    }
    let is_large = |it: &usize| made[*it] * LARGE >= record.peak();
    (1..made.len()).filter(is_large).map(|it| it - 1).collect()
}

/// The steps of a lane before which the loop empties the cache. `early` are its requests that have places before the
/// iterations begin; steps behind them are those of one iteration. In order. A clear behind which no iteration like the others
/// comes may be the loop's end: it foresees none. Where the loop does it at several steps, and so perhaps every so many
/// steps, all others count at which no more was in use.
pub(super) fn foreseen(record: &Record, spans: &Spans<'_>, lane: usize, early: &[u32]) -> Vec<u32> {
    let begun =
        |numbers: &[u32], moment: u32| numbers.partition_point(|&it| record.requests[it as usize].begin < moment);
    let positions = spans.of_lane(lane);
    let steps_of = |iteration: usize| {
        let numbered = positions.iter().enumerate();
        numbered.filter_map(move |(at, span)| Some((at, spans.request(span, iteration)?)))
    };
    let begin = |number: u32| record.requests[number as usize].begin;
    let mut early_steps = Vec::new();
    // Those of an iteration, and the request that follows the clear.
    let mut steps = Vec::new();
    for &moment in &record.clears {
        if moment < spans.first_begin() {
            early_steps.push(begun(early, moment));
        } else if let Some(iteration) = spans.iteration_at(moment)
            && !spans.is_last(iteration)
        {
            let next = steps_of(iteration).find(|it| begin(it.1) >= moment);
            steps.push(next.or_else(|| steps_of(iteration + 1).next()));
        }
    }
    let mut steps: Vec<(usize, u32)> = steps.into_iter().flatten().collect();
    // Once the iterations have begun the cache is not emptied any more: that the program begins does not foresee it.
    if steps.is_empty() {
        return Vec::new();
    }
    if steps.iter().any(|it| it.0 != steps[0].0) {
        let levels = Levels::of(record);
        let level = |it: &(usize, u32)| levels.before[it.1 as usize];
        let most = steps.iter().map(level).max();
        let all = (0..spans.iterations()).flat_map(steps_of);
        steps.extend(all.filter(|it| Some(level(it)) <= most));
    }
    let late = steps.into_iter().map(|it| early.len() + it.0);
    let mut found: Vec<u32> = early_steps.into_iter().chain(late).map(|it| it as u32).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// When little is in use in an iteration.
struct LowWater {
    iteration: u64,
    /// Moments at which something begins or ends, from 0 on.
    moments: Vec<u64>,
    /// How many of the times between two moments are low, up to each.
    low: Vec<u32>,
}

impl LowWater {
    fn of(spans: &Spans<'_>) -> Self {
        let iteration = spans.iteration();
        let mut changes: Vec<(u64, i128)> = vec![(0, 0)];
        for span in &spans.spans {
            let bytes = i128::from(span.bytes);
            let whole = (span.upper - span.lower) / iteration;
            changes.push((0, bytes * i128::from(whole)));
            for (from, to) in parts(span, iteration) {
                changes.extend([(from, bytes), (to, -bytes)]);
            }
        }
        changes.sort_unstable_by_key(|it| it.0);
        let (mut moments, mut live, mut used) = (Vec::new(), 0, Vec::new());
        for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
            live += at_once.iter().map(|it| it.1).sum::<i128>();
            moments.push(at_once[0].0);
            used.push(live);
        }
        // Behind the last moment of an iteration is the next one's first.
        if moments.last() == Some(&iteration) {
            moments.pop();
            used.pop();
        }
        let little = little(&used);
        let mut count = 0;
        let low = used.iter().map(|&it| {
            count += u32::from(it <= little);
            count
        });
        Self { low: std::iter::once(0).chain(low).collect(), iteration, moments }
    }

    /// Whether it lives while little is in use.
    fn meets(&self, span: &Span) -> bool {
        let within = |from: u64, to: u64| {
            let at = |moment| self.moments.partition_point(|&it| it < moment);
            self.low[at(to)] > self.low[at(from)]
        };
        if span.upper - span.lower >= self.iteration {
            return within(0, self.iteration);
        }
        parts(span, self.iteration).any(|(from, to)| within(from, to))
    }
}

/// The most that counts as little, of what is in use at all times: below the widest gap between two levels.
fn little(used: &[i128]) -> i128 {
    let mut levels = used.to_vec();
    levels.sort_unstable();
    levels.dedup();
    let (Some(&least), Some(&most)) = (levels.first(), levels.last()) else {
        return 0;
    };
    let pairs = levels.windows(2).map(|it| (it[0], it[1]));
    let low = pairs.filter(|it| it.0 > 0 && it.0 * LITTLE <= most);
    let wide = low.map(|(below, above)| (above / below, below));
    let widest = wide.max().filter(|it| it.0 >= GAP);
    widest.map_or(least, |it| it.1)
}

/// The times of an iteration in which a span lives, without whole iterations: two where it goes on in the next one.
fn parts(span: &Span, iteration: u64) -> impl Iterator<Item = (u64, u64)> {
    let from = span.lower % iteration;
    let to = from + (span.upper - span.lower) % iteration;
    let wrapped = (0, to.saturating_sub(iteration));
    let parts = [(from, to.min(iteration)), wrapped];
    parts.into_iter().filter(|(from, to)| from < to)
}
