//! How much memory requests need that have no slots: the engine serves them in it, one after the other.

use pinbuddy_core::SMALL;

use super::spare::{Regions, Spare};
use crate::classes::Classes;
use crate::file::{GRANULE, MOST_REGION, Plan};
use crate::random::Random;
use crate::record::{Change, Record};
use crate::replay::{Beside, Replayed, replay};

/// Sizes that are tried, in thousandths of the most that lives at once. In the last, all fit somehow.
const TRIED: [u64; 7] = [1000, 1020, 1040, 1080, 1150, 1300, MOST];
const MOST: u64 = 2000;

/// The last two that were tried are brought so near, in thousandths.
const NEAR: u64 = 5;

/// Parts of the amount that are tried where requests may also be served with what slots leave idle.
const PARTS: [u64; 6] = [0, 200, 400, 600, 800, 900];

/// One part in so many of what comes and goes is room at least: cached blocks lie in the way of others.
const ROOM: u64 = 32;

/// There is room for idle blocks of all classes if that is no more than one part in so many of the most that lives at
/// once, or so many bytes. What has more of them flushes them now and then.
const ROOM_OF_CLASSES: u64 = 16;
const LEAST_ROOM: u64 = 16 << 20;

/// In a run frees come at other moments than in the record, and what is left between blocks has other lengths. So
/// the amount is what suffices most often if each request is over up to so many events later.
const LATER: usize = 2;

/// A little more than suffices for all of those runs is the amount, up to so many thousandths, where most comes and goes.
const SURE: u64 = 1075;

/// With more at once nothing is tried, since regions would be too many.
const MOST_TRIED: u64 = 1 << 40;

/// So many such runs are tried; fewer if there would be more events than that in them.
const RUNS: usize = 7;
const MOST_EVENTS: usize = 500_000;

/// Regions in which the engine serves all requests, and how many classes each doubling of small sizes has.
pub(super) fn alone(record: &Record) -> (Vec<u64>, u32) {
    let requests = &record.requests;
    let all: Vec<u32> = (0..requests.len() as u32).collect();
    let last = requests.last().map_or(0, |it| it.begin);
    let goes = |&&number: &&u32| requests[number as usize].over < last;
    let goes: Vec<u32> = all.iter().filter(goes).copied().collect();
    let size = all.iter().map(|&it| requests[it as usize].granules);
    if size.clone().min() == size.max() || goes.is_empty() {
        // Blocks lie one beside the other, or where others of their size lay: nothing is lost between them.
        let events = record.changes(&all);
        let peak = most_live(record, &events);
        let bytes = length(peak, least(record, &events, peak));
        return (cut(record, &events, bytes), 0);
    }
    let (classes, whole_blocks) = Classes::fitting(record);
    let record = &classes.rounded(record);
    let events = record.changes(&all);
    let peak = most_live(record, &events);
    let thousandths = least(record, &events, peak);
    let mut random = Random::new(1);
    let runs = RUNS.min(MOST_EVENTS / events.len().max(1));
    let other = |_| {
        let events = later(&events, &mut random);
        least(record, &events, most_live(record, &events))
    };
    let mut others: Vec<u64> = (0..runs).map(other).collect();
    others.sort_unstable();
    let most_often = others.get(runs / 2).copied().unwrap_or(0);
    let going = self::peak(record, &goes);
    let always = others.last().filter(|_| going >= peak / 2).map_or(0, |most| SURE.min(most + 2 * NEAR));
    let thousandths = thousandths.max(most_often).max(always);
    let idle = idle_blocks(record, &events, whole_blocks, peak);
    let room = idle.max(going / ROOM);
    let bytes = length(peak, thousandths).max(granules(peak + room));
    (cut(record, &events, bytes), classes.0)
}

/// By how much more lives at once, beside the most that does, if small blocks stay whole when they are freed: all of them
/// take so many bytes then.
fn idle_blocks(record: &Record, events: &[Change], whole_blocks: u64, peak: u64) -> u64 {
    let is_large = |it: &&Change| record.requests[it.number as usize].bytes() >= SMALL as u64;
    let large: Vec<Change> = events.iter().filter(is_large).copied().collect();
    let with_all = most_live(record, &large) + whole_blocks;
    let most = (peak / ROOM_OF_CLASSES).max(LEAST_ROOM);
    with_all.saturating_sub(peak).min(most)
}

/// The same events, but requests are over a little later.
fn later(events: &[Change], random: &mut Random) -> Vec<Change> {
    let mut events: Vec<(usize, Change)> = events.iter().copied().enumerate().collect();
    for (at, event) in &mut events {
        if !event.begins {
            *at += random.below(LATER + 1);
        }
    }
    // Stable: none begins after it is over.
    events.sort_by_key(|it| it.0);
    events.into_iter().map(|it| it.1).collect()
}

/// Regions for what missed its slot. The least in which the engine serves it, with what slots leave idle
/// where the engine has no room, at the cost of a hundredth of the hits at most.
pub(super) fn beside(record: &Record, plan: &Plan, replayed: &Replayed) -> Vec<u64> {
    let events = record.changes(&replayed.missed);
    let peak = most_live(record, &events);
    let most = length(peak, least(record, &events, peak));
    let enough = replayed.hits - replayed.hits / 100;
    let longest = longest(record, &events);
    let cut = |bytes| Regions::ways(bytes, longest);
    let parts = PARTS.map(|part| granules(most / 1000 * part));
    let found = parts.into_iter().flat_map(cut).find(|&some| {
        let mut spare = Spare::new(record, some);
        let tried = replay(record, plan, Some(&mut spare));
        tried.unserved == 0 && tried.hits >= enough
    });
    found.map_or_else(|| self::cut(record, &events, most), Regions::lengths)
}

fn granules(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRANULE)
}

/// As regions in which the engine serves these requests, if there are such.
fn cut(record: &Record, events: &[Change], bytes: u64) -> Vec<u64> {
    let mut ways = Regions::ways(bytes, longest(record, events)).peekable();
    let first = ways.peek().copied();
    // A single one needs no try.
    let tried = bytes > MOST_REGION && bytes <= MOST_TRIED;
    let found = ways.find(|&it| !tried || fits(record, events, it));
    found.or(first).map_or_else(Vec::new, Regions::lengths)
}

/// The longest request among these.
fn longest(record: &Record, events: &[Change]) -> u64 {
    let bytes = |it: &Change| record.requests[it.number as usize].bytes();
    events.iter().map(bytes).max().unwrap_or(0)
}

/// So many thousandths of some bytes.
fn length(peak: u64, thousandths: u64) -> u64 {
    granules(peak / 1000 * thousandths + peak % 1000)
}

/// Nearly the least regions that serve requests which have `peak` bytes at once, in thousandths of that.
fn least(record: &Record, events: &[Change], peak: u64) -> u64 {
    if peak > MOST_TRIED {
        return 1000;
    }
    let longest = longest(record, events);
    let fits = |&thousandths: &u64| {
        let mut ways = Regions::ways(length(peak, thousandths), longest);
        ways.any(|it| fits(record, events, it))
    };
    let tried = &TRIED[..TRIED.len() - 1];
    let found = tried.iter().position(fits).unwrap_or(tried.len());
    let (mut least, mut most) = (TRIED[found.saturating_sub(1)], TRIED[found]);
    while most - least > NEAR {
        let middle = least.midpoint(most);
        if fits(&middle) {
            most = middle;
        } else {
            least = middle;
        }
    }
    most
}

/// Whether the engine serves them in these regions.
fn fits(record: &Record, events: &[Change], regions: Regions) -> bool {
    let mut spare = Spare::new(record, regions);
    events.iter().all(|event| {
        if event.begins {
            return spare.request(event.number);
        }
        spare.over(event.number);
        true
    })
}

/// The most bytes that `requests` had at once.
pub(super) fn peak(record: &Record, requests: &[u32]) -> u64 {
    most_live(record, &record.changes(requests))
}

fn most_live(record: &Record, events: &[Change]) -> u64 {
    let (mut live, mut peak) = (0, 0);
    for event in events {
        let bytes = record.requests[event.number as usize].bytes();
        live = if event.begins { live + bytes } else { live - bytes };
        peak = live.max(peak);
    }
    peak
}
