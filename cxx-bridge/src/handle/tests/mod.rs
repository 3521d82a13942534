//! The handle on a memory of mere numbers: each of its functions, also when something fails, changes
//! meanwhile or ends.
//!
//! When and how much is pinned is tested in the provisioner; here, that it is carried out.

mod breaking;
mod clear;
mod drift;
mod early;
mod ends;
mod homes;
mod idle;
mod live;
pub(crate) mod numbers;
pub(crate) mod planned;
mod planned_clears;
mod refusals;
mod serving;
mod waits;
mod warming;
mod wrong_plans;

use std::thread;
use std::time::{Duration, Instant};

use pinbuddy_core::{Cached, Home};

use super::{Grant, Handle};
use crate::config::of_pairs as read;
use numbers::{Endless, Numbers, endless};

const MIB: usize = 1 << 20;
const SEGMENT: usize = 64 * MIB;
const NONE: [usize; 0] = [];

pub(crate) type Tested = &'static Handle<&'static Numbers>;

/// A handle with segments of 64 MiB and these settings. Leaked, like the process's handle.
pub(crate) fn with(variables: &[(&str, &str)]) -> Tested {
    on(Numbers::new(1 << 50), variables)
}

/// The same on these numbers.
fn on(numbers: Numbers, variables: &[(&str, &str)]) -> Tested {
    let defaults = [("BUDDY_BLOCK_SIZE_MB", "64")];
    let (config, warnings) = read(&[variables, &defaults].concat());
    assert!(warnings.is_empty(), "{warnings:?}");
    let world: &'static Numbers = Box::leak(Box::new(numbers));
    let handle = Handle::new(config, None, world, Box::new(world), Box::new(world));
    Box::leak(Box::new(handle))
}

/// The numbers that a handle is on.
pub(crate) fn numbers(handle: Tested) -> &'static Numbers {
    handle.pinner.memory
}

/// A handle that warms up so many segments in the background.
fn ahead(count: usize) -> Tested {
    with(&[("BUDDY_BLOCK_COUNT", &count.to_string())])
}

fn sync(count: usize) -> Tested {
    with(&[("BUDDY_WARMUP", "sync"), ("BUDDY_BLOCK_COUNT", &count.to_string())])
}

fn off() -> Tested {
    with(&[("BUDDY_WARMUP", "off")])
}

/// A handle with nothing pinned ahead, exact growth and so many MiB at most.
fn exact(max_mb: &str) -> Tested {
    with(&[("BUDDY_WARMUP", "off"), ("BUDDY_GROWTH", "exact"), ("BUDDY_MAX_MB", max_mb)])
}

/// What is pinned, in MiB, in ascending order.
fn pinned(handle: Tested) -> Vec<usize> {
    let pinned = numbers(handle).pinned.lock().unwrap();
    let mut pinned: Vec<usize> = pinned.iter().map(|it| it.bytes / MIB).collect();
    pinned.sort_unstable();
    pinned
}

/// What was asked for so far, in MiB.
fn asked(handle: Tested) -> Vec<usize> {
    let asked = numbers(handle).asked.lock().unwrap();
    asked.iter().map(|(bytes, _)| bytes / MIB).collect()
}

/// By which thread each was asked for: whether by this one.
fn asked_here(handle: Tested) -> Vec<bool> {
    let here = thread::current().id();
    let asked = numbers(handle).asked.lock().unwrap();
    asked.iter().map(|(_, thread)| *thread == here).collect()
}

/// The worker has begun to pin a segment, which takes until the result is dropped.
fn pinning_ahead(handle: Tested) -> Endless {
    let endless = endless(handle, SEGMENT);
    handle.warm_up(false);
    until("the worker pins", || asked(handle) == [64]);
    endless
}

/// What comes of `requests` on threads of their own, each begun when these pins were asked for; pins of so many bytes and more end
/// once `then` has run.
fn while_pinning<T: Send>(
    handle: Tested,
    bytes: usize,
    pins: &[usize],
    requests: &[&(dyn Fn() -> T + Sync)],
    then: impl FnOnce(),
) -> Vec<T> {
    let endless = endless(handle, bytes);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for request in requests {
            threads.push(scope.spawn(*request));
            until("it pins", || asked(handle) == pins);
        }
        then();
        drop(endless);
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

fn is_retired(handle: Tested) -> bool {
    handle.report()["state"] == "retired"
}

/// Waits until `there` returns true; fails if that takes too long.
pub(crate) fn until(what: &str, mut there: impl FnMut() -> bool) {
    let late = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < late, "it never came: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the worker, if a request has hired one, has nothing to do.
fn settled(handle: Tested) {
    until("the worker is done", || {
        let provisioner = handle.cell.even_if_retired();
        provisioner.is_none_or(|it| !it.is_at_work() && !it.is_pinning())
    });
}

fn deficit(handle: Tested) -> usize {
    handle.progress().unwrap().deficit
}
