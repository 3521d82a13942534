//! Threads that end and others that begin: who has which lane.

use pinbuddy_slots::{GRANULE, Layout, Slots};

use crate::layouts::{lane, one, pinned, slot};

/// A lane for each of these sequences of sizes in granules, each slot in a place of its own.
fn slots(lanes: &[&[usize]]) -> Slots {
    let mut layout = Layout::default();
    let mut offset = 0;
    for sizes in lanes {
        let first = layout.slots.len() as u32;
        layout.slots.extend(sizes.iter().map(|&granules| {
            offset += granules;
            slot(granules, offset - granules)
        }));
        let own = first..layout.slots.len() as u32;
        layout.lanes.push(lane(own, []));
    }
    layout.regions = vec![offset * GRANULE];
    pinned(&layout)
}

/// A thread asks for these sizes in granules and frees each block at once: the slots it got.
fn runs(slots: &mut Slots, thread: u32, sizes: &[usize]) -> Vec<Option<u32>> {
    let sizes = sizes.iter();
    let asked = sizes.map(|granules| {
        let taken = slots.request(thread, granules * GRANULE)?;
        assert!(slots.release(taken.slot));
        Some(taken.slot)
    });
    asked.collect()
}

#[test]
fn the_next_thread_has_the_lane_of_one_that_has_ended() {
    let mut slots = slots(&[&[1, 2, 3]]);
    for thread in 0..100 {
        let got = runs(&mut slots, thread, &[1, 2, 3]);
        assert_eq!(got, [Some(0), Some(1), Some(2)], "thread {thread}");
        slots.thread_ended(thread);
    }
    assert_eq!(slots.counts().hits, 300);
}

/// As a record has it whose threads end before the next ones begin: an epoch's batches, and an evaluation's.
#[test]
fn the_next_thread_goes_on_where_the_one_before_has_ended() {
    let places = vec![slot(1, 0), slot(2, 1), slot(4, 3), slot(8, 7)];
    let mut slots = pinned(&one(15, places, lane([1], 0..4)));
    assert_eq!(runs(&mut slots, 0, &[2]), [Some(1)]);
    slots.thread_ended(0);
    for epoch in 0..3 {
        assert_eq!(runs(&mut slots, 0, &[1, 2]), [Some(0), Some(1)], "{epoch}");
        slots.thread_ended(0);
        assert_eq!(runs(&mut slots, 0, &[4, 8]), [Some(2), Some(3)], "{epoch}");
        slots.thread_ended(0);
    }
    assert_eq!(slots.counts().hits, 13);
    assert_eq!(slots.counts().resyncs, 0);
}

/// An evaluation comes first, and the training's last batch is another one than in the record.
#[test]
fn a_thread_finds_its_steps_behind_those_of_another_kind() {
    let places = vec![slot(4, 0), slot(4, 4), slot(4, 8), slot(1, 12)];
    let mut slots = pinned(&one(20, places, lane(0..3, [3])));
    assert_eq!(runs(&mut slots, 0, &[4, 4, 4]), [Some(0), Some(1), Some(2)]);
    slots.thread_ended(0);
    assert_eq!(runs(&mut slots, 0, &[1, 1, 2])[..2], [Some(3), Some(3)]);
    slots.thread_ended(0);
    assert_eq!(runs(&mut slots, 0, &[1, 1]), [Some(3), Some(3)]);
    slots.thread_ended(0);
    assert_eq!(runs(&mut slots, 0, &[4]), [Some(0)]);
}

#[test]
fn behind_a_thread_that_ended_early_the_lane_begins_anew() {
    let mut slots = slots(&[&[1, 2, 3, 4]]);
    assert_eq!(runs(&mut slots, 0, &[1, 2]), [Some(0), Some(1)]);
    slots.thread_ended(0);
    // With the same number, too.
    assert_eq!(runs(&mut slots, 0, &[1, 2, 3]), [Some(0), Some(1), Some(2)]);
    // A thread that is lost leaves nothing of that, either.
    runs(&mut slots, 0, &[9; 3]);
    slots.thread_ended(0);
    assert_eq!(runs(&mut slots, 0, &[1, 2]), [Some(0), Some(1)]);
}

#[test]
fn a_lane_that_nobody_has_had_comes_first_and_one_that_fits_before_that() {
    let mut slots = slots(&[&[1, 2], &[1, 2], &[5, 6]]);
    for first in [0, 2, 0, 2] {
        assert_eq!(runs(&mut slots, 7, &[1, 2]), [Some(first), Some(first + 1)]);
        slots.thread_ended(7);
    }
    assert_eq!(runs(&mut slots, 7, &[5, 6]), [Some(4), Some(5)]);
}

#[test]
fn a_lane_has_one_thread_at_a_time() {
    let mut slots = slots(&[&[1, 2]]);
    assert_eq!(runs(&mut slots, 0, &[1]), [Some(0)]);
    assert_eq!(runs(&mut slots, 1, &[1, 2]), [None, None]);
    slots.thread_ended(1);
    assert_eq!(runs(&mut slots, 0, &[2]), [Some(1)], "it was not its lane");
    slots.thread_ended(0);
    assert_eq!(runs(&mut slots, 1, &[1, 2]), [Some(0), Some(1)]);
}

#[test]
fn what_a_thread_leaves_behind_stays_its_users() {
    let mut slots = slots(&[&[1, 2]]);
    let left = slots.request(0, GRANULE).unwrap();
    slots.thread_ended(0);
    assert_eq!(slots.request(1, GRANULE), None, "somebody has it");
    assert!(slots.release(left.slot));
    assert!(!slots.release(left.slot));
}

#[test]
fn between_two_threads_nobody_else_has_their_lane() {
    let mut slots = slots(&[&[1, 2, 3], &[8]]);
    assert_eq!(runs(&mut slots, 0, &[8]), [Some(3)]);
    assert_eq!(runs(&mut slots, 1, &[1, 2, 3]), [Some(0), Some(1), Some(2)]);
    assert_eq!(runs(&mut slots, 2, &[9]), [None]);
    slots.thread_ended(1);
    assert_eq!(runs(&mut slots, 2, &[9, 8]), [None, None], "it fits no lane");
    assert_eq!(runs(&mut slots, 3, &[1, 2, 3]), [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_lane_that_was_given_up_is_another_threads_from_the_beginning() {
    let places = vec![slot(1, 0), slot(2, 1)];
    let mut slots = pinned(&one(3, places, lane([], 0..2)));
    runs(&mut slots, 0, &[1]);
    runs(&mut slots, 0, &[7; 20_000]);
    assert!(slots.has_given_up());
    slots.thread_ended(0);
    runs(&mut slots, 1, &[1]);
    assert!(!slots.has_given_up());
}

#[test]
fn a_thread_that_has_ended_foresees_no_clear() {
    let mut layout = one(1, vec![slot(1, 0)], lane([], [0]));
    layout.lanes[0].clears = vec![0];
    let mut slots = pinned(&layout);
    runs(&mut slots, 0, &[1]);
    assert!(slots.foresees_a_clear());
    slots.thread_ended(0);
    assert!(!slots.foresees_a_clear(), "all that is idle goes");
    runs(&mut slots, 1, &[1]);
    assert!(slots.foresees_a_clear());
}

/// All lanes wait for a thread that suits them: whoever asks is compared with each, while others wait for the lock.
#[test]
fn a_thread_that_no_lane_suits_is_turned_away_as_soon_by_long_lanes() {
    let fastest = |steps: usize| {
        let sizes: Vec<usize> = (0..steps).map(|step| 1 + step % 50).collect();
        let mut slots = slots(&[&sizes[..]; 64]);
        for thread in 0..64 {
            runs(&mut slots, thread, &[1]);
        }
        (0..64).for_each(|thread| slots.thread_ended(thread));
        let time = |_| {
            let began = std::time::Instant::now();
            assert_eq!(slots.request(64, 999 * GRANULE), None);
            began.elapsed()
        };
        (0..20).map(time).min().unwrap()
    };
    let (short, long) = (fastest(50), fastest(4000));
    assert!(long < 10 * short, "{short:?} and {long:?}");
}
