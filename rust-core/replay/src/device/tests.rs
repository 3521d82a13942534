//! The model by hand-made programs, and its books in random ones.

use proptest::prelude::*;

use super::replay::Replay;
use super::*;
use crate::MIB;

/// A number of bytes, such as `20M` or `10M-512`.
fn bytes(text: &str) -> u64 {
    let (mib, rest) = text.split_once('M').unwrap_or(("0", text));
    let rest: i64 = if rest.is_empty() { 0 } else { rest.parse().unwrap() };
    (mib.parse::<u64>().unwrap() * MIB).wrapping_add_signed(rest)
}

/// A replay of these steps, whose model is audited after each: `+0:30M:2` is block 0 of 30 MiB on stream 2, `-0` its free,
/// `@0:7` its use on stream 7, `.0` the end of that, `c` a clear, `i` the end of an iteration; `=70M` says what is reserved.
fn played(kind: Kind, script: &str) -> Replay<Torch> {
    let mut replay = Replay::new(kind.model());
    for word in script.split_whitespace() {
        let (what, rest) = word.split_at(1);
        let mut parts = rest.split(':');
        let mut next = || parts.next().filter(|it| !it.is_empty()).map_or(0, bytes);
        let (first, second, third) = (next(), next(), next());
        let (block, bytes, stream) = (first as u32, second, third as u32);
        replay.step(match what {
            "+" => Act::Alloc { block, bytes, stream },
            "-" => Act::Free { block },
            "@" => Act::Use { block, stream: second as u32 },
            "." => Act::Complete { block },
            "c" => Act::Clear,
            "i" => Act::Iter,
            _ => {
                let reserved = replay.model().usage().reserved;
                assert_eq!(reserved, first, "{word} in {script}");
                continue;
            }
        });
        replay.model().audit().unwrap();
    }
    replay
}

#[test]
fn segments_are_as_long_as_pytorchs_are_split_merged_grown_and_given_back() {
    for (bytes, segment) in
        [("1", "2M"), ("1M", "2M"), ("1M+1", "20M"), ("10M-512", "20M"), ("10M", "10M"), ("31M+1", "32M")]
    {
        let script = format!("+0:{bytes} ={segment} c ={segment} -0 c =0");
        played(Kind::Torch, &script);
    }
    // What is left over is split off if it is enough: 1 MiB too much is not. The two share a segment of 2 MiB.
    let before = "+0:2M-512 -0 +0:1M +1:1M-1 =22M +2:19M";
    assert_eq!(played(Kind::Torch, before).model().usage().allocated, 22 * MIB);
    played(Kind::Torch, &format!("{before} +3:2M =42M"));
    for (kind, script) in [
        // The best fit serves, and freed neighbours merge: the 5 MiB are behind the 25.
        (Kind::Torch, "+0:40M +1:30M -0 -1 +2:25M +3:40M =70M +4:5M =70M -2 -4 +5:30M =70M"),
        // Blocks belong to their stream.
        (Kind::Torch, "+0:10M:1 -0 +0:10M:2 =20M"),
        // 41 MiB from the 30th on need two more pages; the first page is idle, the second in use; the lowest addresses that have room.
        (Kind::TorchExpandable, "+0:100 +1:30M =42M +2:31M =82M -1 c =62M +3:25M =82M -0 -2 -3 c =0"),
    ] {
        played(kind, script);
    }
}

#[test]
fn a_block_that_other_streams_use_waits_for_them() {
    // Its own stream is no other.
    let freed = "+0:10M @0:0 -0 +0:10M =10M @0:7 -0";
    let usage = played(Kind::Torch, freed).model().usage();
    assert_eq!((usage.allocated, usage.active), (0, 10 * MIB));
    let done = format!("{freed} +1:10M =20M .0");
    let active = played(Kind::Torch, &done).model().usage().active;
    assert_eq!(active, 20 * MIB, "the next request looks");
    // A clear waits.
    let script = format!("{done} +2:10M =20M @2:7 -2 c =10M .2 +3:10M =20M");
    played(Kind::Torch, &script);
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act =
        (0_u8..10, 0_u32..12, 0_u32..3, 0_u32..27, 0_u64..1 << 20).prop_map(|(what, block, stream, order, more)| {
            match what {
                0..4 => Act::Alloc { block, bytes: (1 << order) + more % (1 << order), stream },
                4..7 => Act::Free { block },
                7 => Act::Use { block, stream },
                8 => Act::Complete { block },
                _ => Act::Clear,
            }
        });
    proptest::collection::vec(act, 0..200)
}

/// Leaves out what no program does: blocks that have a name are not asked for again, and only live ones are used.
fn possible(acts: Vec<Act>) -> Vec<Act> {
    // By block: its stream, whether another used it, and whether it was freed.
    let mut blocks: [Option<(u32, bool, bool)>; 12] = [None; 12];
    let mut is_possible = |act: &Act| {
        let (Act::Alloc { block, .. } | Act::Use { block, .. } | Act::Free { block } | Act::Complete { block }) = *act
        else {
            return true;
        };
        let it = &mut blocks[block as usize];
        *it = match (*act, *it) {
            (Act::Alloc { stream, .. }, None) => Some((stream, false, false)),
            (Act::Use { stream, .. }, Some((own, shared, false))) => Some((own, shared || stream != own, false)),
            (Act::Free { .. }, Some((own, true, false))) => Some((own, true, true)),
            (Act::Free { .. }, Some((_, false, false))) | (Act::Complete { .. }, Some((_, _, true))) => None,
            _ => return false,
        };
        true
    };
    acts.into_iter().filter(|it| is_possible(it)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_whatever_a_program_does_and_everything_is_given_back_in_the_end(
        acts in acts(),
        kind in proptest::sample::select(&Kind::ALL[..]),
    ) {
        let (mut replay, mut model) = (Replay::new(kind.model()), kind.model());
        for act in possible(acts) {
            replay.step(act);
            replay.model().audit().map_err(TestCaseError::fail)?;
            replay::apply(&mut model, act);
        }
        let outcome = replay.outcome();
        prop_assert!(outcome.bound <= outcome.peak_reserved);
        (0..12).for_each(|block| model.free(block));
        model.clear();
        prop_assert_eq!(model.usage().reserved, 0);
        prop_assert_eq!(model.usage().taken, model.usage().given_back);
    }
}

#[test]
fn the_outcome_counts_what_streams_hold() {
    let script = "+0:10M @0:1 -0 +1:10M+1 .0 i +0:1";
    let outcome = played(Kind::Torch, script).outcome();
    assert_eq!(outcome.peak_requested, 10 * MIB + 2);
    assert_eq!(outcome.bound, 20 * MIB + 512);
    assert_eq!((outcome.peak_reserved, outcome.taken_after_first_step), (24 * MIB, 1));
}
