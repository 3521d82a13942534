//! How long the blocks of a record live, where its iterations end, and its acts with iterations in another order.
//!
//! What lives on from one iteration to the next stays: no iteration asks for it or frees it.

use std::ops::Range;

use pinbuddy_device::Act;
use rustc_hash::{FxHashMap, FxHashSet};

/// Between two iterations as much may be live of what is freed later: one part in so many of the most.
const SLACK: u64 = 64;

/// What has less than this part of the most at once belongs to the iteration before it.
const SHORT: u64 = 16;

/// Between valleys more is live than in them, by this part of the most.
const VALLEY: u64 = 4;

/// Requests, by their acts. Blocks of the orders have the same numbers.
#[derive(Default)]
pub(super) struct Lives {
    /// Of each act that asks or frees: the request.
    pub(super) births: Vec<Option<usize>>,
    /// Of each act: what it asks for.
    pub(super) bytes: Vec<u64>,
    /// Requests that no iteration frees.
    pub(super) stay: FxHashSet<usize>,
}

impl Lives {
    pub(super) fn of(acts: &[Act]) -> Self {
        let mut lives = Self::default();
        let mut live: FxHashMap<u32, usize> = FxHashMap::default();
        for (at, act) in acts.iter().enumerate() {
            lives.bytes.push(match *act {
                Act::Alloc { bytes, .. } => bytes,
                _ => 0,
            });
            lives.births.push(match *act {
                Act::Alloc { block, .. } => {
                    live.insert(block, at);
                    Some(at)
                }
                Act::Free { block } => live.remove(&block),
                _ => None,
            });
        }
        lives.stay = live.into_values().collect();
        lives
    }

    /// Whether an act asks for or frees what stays.
    pub(super) fn stays(&self, at: usize) -> bool {
        self.births[at].is_some_and(|it| self.stay.contains(&it))
    }

    /// The moments of least between two moments of far more.
    pub(super) fn valleys(&self) -> Vec<usize> {
        let passing = self.passing();
        let depth = passing.iter().max().copied().unwrap_or(0) / VALLEY;
        let (mut valleys, mut falls) = (Vec::new(), false);
        let (mut least, mut most) = (0, 0);
        for (at, &now) in passing.iter().enumerate() {
            if falls && now <= passing[least] {
                least = at;
            } else if falls && now >= passing[least] + depth {
                valleys.push(least);
                (falls, most) = (false, now);
            } else if !falls && now + depth <= most {
                (falls, least) = (true, at);
            }
            most = most.max(now);
        }
        valleys
    }

    /// What lives across one of these moments stays. The acts that free it.
    pub(super) fn carry(&mut self, moments: &[usize]) -> Vec<usize> {
        let turn = |at: usize| moments.partition_point(|it| *it <= at);
        let is_over = |at: &usize| self.births[*at].is_some_and(|birth| turn(birth) != turn(*at));
        let carried: Vec<usize> = (0..self.births.len()).filter(is_over).collect();
        self.stay.extend(carried.iter().filter_map(|it| self.births[*it]));
        carried
    }

    /// The acts that free what has lived for more than so many requests.
    pub(super) fn frees_after(&self, requests: usize) -> Vec<usize> {
        let all: Vec<usize> = self.requests(0..self.births.len()).collect();
        let before = |act: usize| all.partition_point(|it| *it < act);
        let is_long = |at: &usize| self.births[*at].is_some_and(|birth| before(*at) > before(birth) + requests);
        (0..self.births.len()).filter(is_long).collect()
    }

    pub(super) fn requests(&self, acts: Range<usize>) -> impl Iterator<Item = usize> {
        acts.filter(|at| self.births[*at] == Some(*at))
    }

    /// How long an iteration's requests are, without what stays.
    pub(super) fn shape(&self, iteration: &Range<usize>) -> Vec<u64> {
        let own = self.requests(iteration.clone());
        let own = own.filter(|it| !self.stay.contains(it));
        own.map(|it| self.bytes[it]).collect()
    }

    /// Bytes that will be freed, before each act and behind the last one.
    fn passing(&self) -> Vec<u64> {
        let mut now = 0;
        let mut passing = vec![0];
        for (at, birth) in self.births.iter().enumerate() {
            let own = birth.filter(|it| !self.stay.contains(it));
            let bytes = own.map_or(0, |it| self.bytes[it]);
            now = if own == Some(at) { now + bytes } else { now - bytes };
            passing.push(now);
        }
        passing
    }

    /// What lies between two moments at which nearly nothing is live but what stays.
    pub(super) fn iterations(&self) -> Vec<Range<usize>> {
        let passing = self.passing();
        let most = passing.iter().max().copied().unwrap_or(0);
        let is_rest =
            |at: &usize| passing[*at] <= most / SLACK && self.births.get(*at).is_none_or(|it| *it == Some(*at));
        let rests: Vec<usize> = (0..passing.len()).filter(is_rest).collect();
        let mut iterations: Vec<Range<usize>> = Vec::new();
        for part in rests.windows(2) {
            let is_short = passing[part[0]..part[1]].iter().all(|it| *it <= most / SHORT);
            match iterations.last_mut() {
                Some(last) if is_short => last.end = part[1],
                None if is_short => {}
                _ => iterations.push(part[0]..part[1]),
            }
        }
        iterations
    }

    /// The acts with another iteration in each turn, on the turn's stream. What stays is asked for and freed in its own turn.
    pub(super) fn in_order(&self, acts: &[Act], iterations: &[Range<usize>], order: &[usize]) -> Vec<Act> {
        let mut run = Run::default();
        let begin = iterations.first().map_or(0, |it| it.start);
        (0..begin).for_each(|at| run.act(self, acts[at], at));
        for (turn, &number) in iterations.iter().zip(order) {
            let streams = [&iterations[number], turn].map(|it| stream_of(&acts[it.clone()]));
            let stays = |at: &usize| self.stays(*at);
            // From the end back: what stays and is asked for or freed in this turn, and how many acts before its end.
            let mut left = 0;
            let mut made = Vec::new();
            for at in turn.clone().rev() {
                match stays(&at) {
                    true => made.push((left, at)),
                    false => left += 1,
                }
            }
            let own: Vec<usize> = iterations[number].clone().filter(|it| !stays(it)).collect();
            for (done, &at) in own.iter().enumerate() {
                while let Some((_, at)) = made.pop_if(|(left, _)| *left >= own.len() - done) {
                    run.act(self, acts[at], at);
                }
                run.act(self, on_other(acts[at], streams), at);
            }
            made.iter().rev().for_each(|it| run.act(self, acts[it.1], it.1));
            // What another iteration would free.
            run.end();
        }
        run.acts
    }
}

/// The stream of the first request.
fn stream_of(acts: &[Act]) -> Option<u32> {
    acts.iter().find_map(|it| match it {
        Act::Alloc { stream, .. } => Some(*stream),
        _ => None,
    })
}

/// The act, with the second stream in place of the first.
fn on_other(mut act: Act, [from, to]: [Option<u32>; 2]) -> Act {
    if let (Act::Alloc { stream, .. }, Some(to)) = (&mut act, to)
        && Some(*stream) == from
    {
        *stream = to;
    }
    act
}

/// Acts in another order.
#[derive(Default)]
pub(super) struct Run {
    pub(super) acts: Vec<Act>,
    /// Without what stays.
    live: FxHashSet<usize>,
}

impl Run {
    pub(super) fn act(&mut self, lives: &Lives, act: Act, at: usize) {
        match (act, lives.births[at]) {
            (Act::Alloc { bytes, stream, .. }, _) => {
                if !lives.stay.contains(&at) {
                    self.live.insert(at);
                }
                let block = at as u32;
                self.acts.push(Act::Alloc { block, bytes, stream });
            }
            // What is not live was freed when its own iteration ended.
            (Act::Free { .. }, Some(birth)) if lives.stays(at) || self.live.remove(&birth) => {
                let block = birth as u32;
                self.acts.push(Act::Free { block });
            }
            (Act::Iter | Act::Clear, _) => self.acts.push(act),
            _ => {}
        }
    }

    /// What lives and does not stay is freed.
    pub(super) fn end(&mut self) {
        let mut over: Vec<usize> = self.live.drain().collect();
        over.sort_unstable();
        let frees = over.into_iter().map(|it| Act::Free { block: it as u32 });
        self.acts.extend(frees);
    }
}
