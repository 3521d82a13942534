//! Freed blocks that wait for events while several threads ask for these.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::pending::PendingQueues;
use shuttle::thread;

use super::explore;

const STREAMS: u64 = 2;
const EACH: usize = 3;

/// Asks for events as a request does, and notes which blocks are over. An event is complete once it was asked for as often as
/// its number says: some at once, others later.
fn reap(pending: &PendingQueues, asked: &Mutex<BTreeMap<usize, usize>>, over: &Mutex<Vec<(u64, usize)>>) {
    let mut left = pending.streams();
    let (mut stream, mut event, mut block) = (0, 0, 0);
    while pending.begin(&mut left, &mut stream, &mut event, &mut block) {
        let times = {
            let mut asked = asked.lock().unwrap();
            let times = asked.entry(event).or_insert(0);
            *times += 1;
            *times
        };
        // Another thread may come by while CUDA is asked.
        thread::yield_now();
        let is_complete = times > event % 3;
        if is_complete {
            over.lock().unwrap().push((stream, block));
        } else {
            left -= 1;
        }
        pending.end(stream, is_complete);
    }
}

/// Each block is over once, and those of a stream in their order, whoever asks.
fn blocks_wait_for_events() {
    let pending = Arc::new(PendingQueues::default());
    let (asked, over) = (Arc::default(), Arc::default());
    let reaping = || {
        let (pending, asked, over) = (Arc::clone(&pending), Arc::clone(&asked), Arc::clone(&over));
        thread::spawn(move || (0..3).for_each(|_| reap(&pending, &asked, &over)))
    };
    let reapers = [reaping(), reaping()];
    for at in 0..EACH {
        for stream in 0..STREAMS {
            let event = at * STREAMS as usize + stream as usize;
            pending.push(stream, event, event);
        }
    }
    reapers.into_iter().for_each(|it| it.join().unwrap());
    while over.lock().unwrap().len() < EACH * STREAMS as usize {
        reap(&pending, &asked, &over);
    }
    let over = over.lock().unwrap();
    for stream in 0..STREAMS {
        let own = over.iter().filter(|it| it.0 == stream);
        let blocks: Vec<usize> = own.map(|it| it.1).collect();
        assert_eq!(blocks.len(), EACH);
        assert!(blocks.is_sorted_by(|a, b| a < b), "{blocks:?}");
    }
    // Queues that stay empty go.
    reap(&pending, &asked, &Mutex::default());
    reap(&pending, &asked, &Mutex::default());
    assert_eq!(pending.streams(), 0);
}

#[test]
fn blocks_are_over_once_and_in_their_order_whoever_asks() {
    explore(blocks_wait_for_events);
}
