//! Threads that end and others that begin: who has which lane.

use pinbuddy_slots::{GRANULE, Layout, Slots};

use crate::layouts::{lane, one, pinned, row, slot};

/// A lane for each of these sequences of sizes in granules, each slot in a place of its own.
fn layout(lanes: &[&[usize]]) -> Layout {
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
    layout
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

/// The slots after these steps: `0:1,2=3,-` is thread 0's requests of 1 and 2 granules, each freed at once, of which the first one has
/// slot 3 and the second one none; `0.` is the thread's end.
fn played(layout: &Layout, script: &str) -> Slots {
    let mut slots = pinned(layout);
    for word in script.split_whitespace() {
        let Some((thread, asked)) = word.split_once(':') else {
            slots.thread_ended(word.trim_end_matches('.').parse().unwrap());
            continue;
        };
        let (sizes, expected) = asked.split_once('=').unwrap();
        let sizes: Vec<usize> = sizes.split(',').map(|it| it.parse().unwrap()).collect();
        let expected: Vec<Option<u32>> = expected.split(',').map(|it| it.parse().ok()).collect();
        assert_eq!(runs(&mut slots, thread.parse().unwrap(), &sizes), expected, "{word} in {script}");
    }
    slots
}

#[test]
fn the_next_thread_goes_on_where_the_one_before_has_ended() {
    let again: String = (0..100).map(|thread| format!("{thread}:1,2,3=0,1,2 {thread}. ")).collect();
    assert_eq!(played(&layout(&[&[1, 2, 3]]), &again).counts().hits, 300, "the next thread has the lane");
    // As a record has it whose threads end before the next ones begin: an epoch's batches, and an evaluation's.
    let places = vec![slot(1, 0), slot(2, 1), slot(4, 3), slot(8, 7)];
    let epochs = "0:2=1 0. ".to_owned() + &"0:1,2=0,1 0. 0:4,8=2,3 0. ".repeat(3);
    let counts = played(&one(15, places, lane([1], 0..4)), &epochs).counts();
    assert_eq!((counts.hits, counts.resyncs), (13, 0));
}

#[test]
fn which_lane_a_thread_has_and_where_it_begins() {
    let kinds = one(20, vec![slot(4, 0), slot(4, 4), slot(4, 8), slot(1, 12)], lane(0..3, [3]));
    for (layout, script) in [
        // Its steps lie behind those of another kind: an evaluation comes first, and the training's last batch is another one than
        // in the record.
        (kinds, "0:4,4,4=0,1,2 0. 0:1,1,2=3,3,- 0. 0:1,1=3,3 0. 0:4=0"),
        // One ended early, and the lane begins anew; with the same number, too. One that is lost leaves nothing of that, either.
        (layout(&[&[1, 2, 3, 4]]), "0:1,2=0,1 0. 0:1,2,3=0,1,2 0:9,9,9=-,-,- 0. 0:1,2=0,1"),
        // A lane that nobody has had comes first, and one that fits before that.
        (layout(&[&[1, 2], &[1, 2], &[5, 6]]), "7:1,2=0,1 7. 7:1,2=2,3 7. 7:1,2=0,1 7. 7:1,2=2,3 7. 7:5,6=4,5"),
        // A lane has one thread at a time: it was not the other one's.
        (layout(&[&[1, 2]]), "0:1=0 1:1,2=-,- 1. 0:2=1 0. 1:1,2=0,1"),
        // Between two threads nobody else has their lane, who fits none.
        (layout(&[&[1, 2, 3], &[8]]), "0:8=3 1:1,2,3=0,1,2 2:9=- 1. 2:9,8=-,- 3:1,2,3=0,1,2"),
    ] {
        played(&layout, script);
    }
    // Lanes that begin as their threads do, one of which is over once its prologue is.
    let (mut two, lanes) = (row(&[1, 2]), vec![lane([0], []), lane([], [1])]);
    two.lanes = lanes;
    assert_eq!(played(&two, "7:2=1 3:1=0 4:1=- 3:1=-").counts().unplanned, 2);
}

#[test]
fn what_a_thread_leaves_behind_stays_its_users() {
    let mut slots = pinned(&layout(&[&[1, 2]]));
    let left = slots.request(0, GRANULE).unwrap();
    slots.thread_ended(0);
    assert_eq!(slots.request(1, GRANULE), None, "somebody has it");
    assert!(slots.release(left.slot));
    assert!(!slots.release(left.slot));
}

#[test]
fn a_thread_that_has_ended_foresees_no_clear_and_a_lane_that_was_given_up_is_anothers_from_the_beginning() {
    let mut layout = row(&[1]);
    layout.lanes[0].clears = vec![0];
    let mut slots = pinned(&layout);
    runs(&mut slots, 0, &[1]);
    assert!(slots.foresees_a_clear());
    slots.thread_ended(0);
    assert!(!slots.foresees_a_clear(), "all that is idle goes");
    runs(&mut slots, 1, &[1]);
    assert!(slots.foresees_a_clear());
    runs(&mut slots, 1, &[7; 20_000]);
    assert!(slots.has_given_up());
    slots.thread_ended(1);
    runs(&mut slots, 2, &[1]);
    assert!(!slots.has_given_up());
}

/// All lanes wait for a thread that suits them: whoever asks is compared with each, while others wait for the lock.
#[test]
fn a_thread_that_no_lane_suits_is_turned_away_as_soon_by_long_lanes() {
    let fastest = |steps: usize| {
        let sizes: Vec<usize> = (0..steps).map(|step| 1 + step % 50).collect();
        let mut slots = pinned(&layout(&[&sizes[..]; 64]));
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
