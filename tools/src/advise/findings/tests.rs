//! What is found in programs of a few lines, and what is not.

mod programs;

use pinbuddy_events::{Event, Item, Op};

use super::pieces::Pieces;
use super::{Finding, Watch as _};
use crate::advise::world::World;
use programs::*;

#[test]
fn what_is_wrong_is_found_with_how_many_how_large_and_where() {
    let mut said = String::new();
    let mut wrong = |id: &str, program: Program| {
        let it = program.finding(id).expect(id);
        let (count, bytes, lines, what) = (it.count, it.bytes, it.lines, it.evidence);
        said += &format!("{id}: {count}, {bytes} bytes, {lines:?}\n  {what}\n  {}\n", it.to_do);
    };
    let brief_id = "pinned_and_freed_at_once";
    wrong(brief_id, brief(2 * MIB, |it, block| it.copy(block, 1)));
    wrong(brief_id, brief(2 * MIB, |_, _| {}));
    wrong("at_the_budget", thrice().limited(85, 1000));
    wrong("near_the_group_limit", thrice().limited(1000, 110));
    wrong("pinned_and_unpinned_in_turns", turns(20));
    // Nothing is pinned again after the last clear.
    wrong("clears_inside_iterations", clears(|_| true));
    wrong("gathered_into_a_list", gathered(8, 0, 16, 5));
    wrong("grows_without_end", growth(|_| 1));
    wrong("just_above_a_power_of_two", forty(2 * MIB + 4096));
    wrong("waits_long_for_a_stream", slow(20).recorded());
    wrong("many_small_long_lived_blocks", small(300, 50_000, true));
    let half = stuck(|_| 2, |it| it % 2 == 0 || it < 50);
    wrong("a_stream_never_completes", half.recorded());
    wrong("a_stream_never_completes", small_step(true).recorded());
    wrong("never_used_by_a_stream", unread(|it| it % 2 == 0));
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_as_it_should_be_is_not() {
    let right = |id: &str, programs: &[Program]| {
        for (number, program) in programs.iter().enumerate() {
            assert_eq!(program.finding(id), None, "{id} {number}");
        }
    };
    let another = |it: &mut Program, _| {
        let other = it.alloc(MIB / 8);
        it.free(&[other]);
    };
    let across = brief(2 * MIB, |it, _| it.push(Op::Iteration));
    let little = brief(MIB / 2, |_, _| {});
    let lives_on = [brief(2 * MIB, another), across, little];
    right("pinned_and_freed_at_once", &lives_on);
    right("at_the_budget", &[thrice().limited(100, 1000), thrice()]);
    let far = thrice().limited(1000, 120);
    right("near_the_group_limit", &[far, thrice()]);
    // Phases.
    right("pinned_and_unpinned_in_turns", &[turns(3)]);
    let phases = [clears(|it| it == 4), clears(|_| false)];
    right("clears_inside_iterations", &phases);
    // Another sum, a list that is gone in part, a short one, and few of them.
    let lists = [(8, 0, 17, 5), (8, 1, 16, 5), (3, 0, 6, 5), (8, 0, 16, 2)];
    let lists = lists.map(|(parts, gone, sum, times)| gathered(parts, gone, sum, times));
    right("gathered_into_a_list", &lists);
    let fills_up = growth(|it| usize::from(it < 30));
    let stays = growth(|it| usize::from(it % 40 == 0));
    right("grows_without_end", &[growth(|_| 0), fills_up, stays]);
    // A power of two; far above one; few bytes; above the threshold.
    let sizes = [2 * MIB, 3 * MIB, 5000, 8 * MIB + 4096];
    right("just_above_a_power_of_two", &sizes.map(forty));
    // What is safe at once, soon, or never; and a trace that was made up.
    right("waits_long_for_a_stream", &[0, 7, 100].map(|it| slow(it).recorded()));
    right("waits_long_for_a_stream", &[slow(20)]);
    // Few, large, and short-lived ones.
    let few = [(200, 50_000, true), (300, 2 * MIB, true), (300, 50_000, false)];
    let few = few.map(|(count, bytes, stay)| small(count, bytes, stay));
    right("many_small_long_lived_blocks", &few);
    // The last ones, blocks whose allocator was not asked again, and what was made up.
    let last = stuck(|_| 2, |it| it < 90).recorded();
    let ones = [last, small_step(false).recorded(), stuck(|_| 2, |_| false)];
    right("a_stream_never_completes", &ones);
    // A few; and a trace that says nothing of uses.
    let few = [unread(|it| it != 7), unread(|_| false)];
    right("never_used_by_a_stream", &few);
}

/// A program with forty segments of which every other block is freed before more is reserved for one request; sizes are in
/// MiB.
fn in_pieces(size: impl Fn(u64) -> u64, reuses: bool) -> Option<Finding> {
    let (mut watch, mut world, mut line) = (Pieces::default(), World::default(), 0);
    let mut see = |op, bytes| {
        line += 1;
        let event = Event::host(line, op);
        let block = None;
        let item = Item { line, event, block, bytes };
        watch.see(&item, &world);
        world.see(&item);
    };
    for id in 0..40 {
        let bytes = size(id) * MIB;
        see(Op::SegmentAlloc { bytes }, 0);
        see(Op::request(id, bytes), bytes);
    }
    let even = (0..40).step_by(2);
    even.clone().for_each(|id| see(Op::free(id), size(id) * MIB));
    let bytes = even.map(&size).sum::<u64>() * MIB;
    if !reuses {
        see(Op::SegmentAlloc { bytes }, 0);
    }
    see(Op::request(40, bytes), bytes);
    watch.finding(&world)
}

#[test]
fn sizes_that_vary_and_idle_memory_between_them_are_found_and_equal_or_used_ones_are_not() {
    let found = in_pieces(|id| 10 + id, false).unwrap();
    // What was freed, less what was asked for in all at most.
    assert_eq!((found.count, found.bytes), (1, 580 * MIB));
    assert!(found.to_do.contains("expandable_segments:True"));
    assert_eq!(in_pieces(|_| 30, false), None);
    assert_eq!(in_pieces(|id| 10 + id, true), None);
}
