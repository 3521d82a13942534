//! A process's fair share of the memory that it and other processes with this library pin.
//!
//! A pure function of numbers. Together the processes may pin a part of what would be free without them: half.
//! What others hold is theirs. A process that has pinned more lately is likely to go on, and gets an
//! equal part of the rest. Invariant: whatever the numbers, nothing overflows, and the share is at most
//! half of what is free and pinned.

/// Another process with this library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Other {
    /// Bytes that it holds.
    pub(super) bytes: u64,
    /// Whether it has pinned more lately.
    pub(super) grows: bool,
    /// Whether its memory counts in the control group that limits this process.
    pub(super) inside: bool,
}

/// A process's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// The most that this process may pin, in bytes.
    pub(super) bytes: u64,
    /// What would be free if none of them had pinned anything.
    pub(super) whole: u64,
    /// Whether any of that is pinned.
    pub(super) pinned: bool,
    /// How many processes share it, by the launcher or because they pin now.
    pub(super) processes: u64,
    /// How many others keep what they hold, and how much that is.
    pub(super) settled: usize,
    pub(super) theirs: u64,
}

/// The share of a process that holds `own` bytes, while `left` are left; a launcher started `launched`
/// processes. All together may pin one of `parts` parts.
pub(super) fn fair(left: u64, own: u64, others: &[Other], launched: u64, parts: u64) -> Share {
    let held = sum(others);
    let whole = left.saturating_add(own).saturating_add(held);
    let all = whole / parts;
    let share = Share { bytes: all, whole, pinned: own > 0 || held > 0, processes: 1, settled: 0, theirs: 0 };
    if launched > 1 { by_launcher(share, others, launched) } else { by_what_is_seen(share, others) }
}

/// Processes that a launcher started have equal parts, even before they pin; others count by what they
/// hold.
fn by_launcher(share: Share, others: &[Other], launched: u64) -> Share {
    let (part, rest) = (share.bytes / launched, share.bytes.saturating_sub(sum(others)));
    if part <= rest {
        let (bytes, processes) = (part, launched);
        return Share { bytes, processes, ..share };
    }
    Share { bytes: rest, settled: others.len(), theirs: sum(others), ..share }
}

fn by_what_is_seen(share: Share, others: &[Other]) -> Share {
    let mut growing: Vec<u64> = Vec::new();
    let (mut settled, mut theirs) = (0, 0_u64);
    let mut settle = |bytes: u64| {
        settled += 1;
        theirs = theirs.saturating_add(bytes);
        theirs
    };
    let mut rest = share.bytes;
    for other in others {
        if other.grows {
            growing.push(other.bytes);
        } else {
            rest = share.bytes.saturating_sub(settle(other.bytes));
        }
    }
    // A process that holds more than an equal part keeps it, and the others share the rest.
    growing.sort_unstable();
    let part = loop {
        let part = rest / (growing.len() as u64 + 1);
        match growing.last() {
            Some(most) if *most > part => rest = share.bytes.saturating_sub(settle(*most)),
            _ => break part,
        }
        growing.pop();
    };
    Share { bytes: part, processes: growing.len() as u64 + 1, settled, theirs, ..share }
}

fn sum(others: &[Other]) -> u64 {
    let add = |sum: u64, other: &Other| sum.saturating_add(other.bytes);
    others.iter().fold(0, add)
}

/// Others' claims, cut to the memory that is in use: any process can claim anything.
pub(super) fn believed(others: &[Other], in_use: u64) -> Vec<Other> {
    let mut left = in_use;
    let believe = |other: &Other| {
        let bytes = other.bytes.min(left);
        left -= bytes;
        Other { bytes, ..*other }
    };
    others.iter().map(believe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fair(left: u64, own: u64, others: &[Other], launched: u64) -> Share {
        super::fair(left, own, others, launched, 2)
    }

    const QUIET: Other = Other { bytes: 0, grows: false, inside: true };

    fn quiet(bytes: u64) -> Other {
        Other { bytes, ..QUIET }
    }

    fn growing(bytes: u64) -> Other {
        let grows = true;
        Other { bytes, grows, ..QUIET }
    }

    /// Of 1000 bytes, with what this process and others have: its share, among how many; how many others keep what they have
    /// instead, and how much.
    #[test]
    fn who_pins_has_an_equal_part_of_half_and_who_is_quiet_what_it_holds_and_no_more() {
        let [g, q] = [growing as fn(u64) -> Other, quiet];
        for (what, own, others, launched, expected) in [
            ("alone it is half", 0, &[][..], 1, (500, 1, 0, 0)),
            ("however much is pinned already", 100, &[], 1, (500, 1, 0, 0)),
            ("more than half, too", 550, &[], 1, (500, 1, 0, 0)),
            ("who pin at once have equal parts", 1, &[g(1), g(1), g(1)], 1, (125, 4, 0, 0)),
            ("whatever they have yet", 0, &[g(120), g(60), g(1)], 1, (125, 4, 0, 0)),
            ("up to their part", 7, &[g(0), g(0), g(125)], 1, (125, 4, 0, 0)),
            ("one was first, and others share what it left", 1, &[g(300), g(1), g(1)], 1, (66, 3, 1, 300)),
            ("two left nothing to one that has begun", 0, &[g(300), g(250), g(1)], 1, (0, 1, 3, 551)),
            ("quiet ones have what they hold", 0, &[q(100), q(20)], 1, (380, 1, 2, 120)),
            ("one of them pins", 0, &[q(100), g(20)], 1, (200, 2, 1, 100)),
            ("launched together, before the others begin", 0, &[], 8, (62, 8, 0, 0)),
            ("and the last of them", 0, &[g(62); 7], 8, (62, 8, 0, 0)),
            ("others were there before them", 0, &[q(690), q(10)], 8, (0, 1, 2, 700)),
        ] {
            let held: u64 = others.iter().map(|it| it.bytes).sum();
            let share = fair(1000 - own - held, own, others, launched);
            assert_eq!((share.bytes, share.processes, share.settled, share.theirs), expected, "{what}");
            assert_eq!(share.whole, 1000, "{what}");
        }
    }

    #[test]
    fn numbers_that_nobody_can_hold_are_not_believed() {
        let hostile = [growing(u64::MAX), quiet(u64::MAX), growing(1)];
        for launched in [0, 1, 8, u64::MAX] {
            let _ = fair(u64::MAX, u64::MAX, &hostile, launched);
            let _ = fair(0, 0, &hostile, launched);
        }
        let held: Vec<u64> = believed(&hostile, 30).iter().map(|it| it.bytes).collect();
        assert_eq!(held, [30, 0, 0]);
    }

    /// Deciding by turns, each pinning what it may.
    #[test]
    fn together_they_never_have_more_than_half() {
        for seed in 0..200_u64 {
            let mut held = [0_u64; 5];
            for step in 0..50_u64 {
                let me = ((seed * 7 + step * 3) % 5) as usize;
                let others: Vec<Other> = (0..5)
                    .filter(|it| *it != me && held[*it] > 0)
                    .map(|it| Other { grows: (seed + it as u64 + step).is_multiple_of(3), ..quiet(held[it]) })
                    .collect();
                let left = 1000 - held.iter().sum::<u64>();
                let share = fair(left, held[me], &others, 1);
                assert_eq!(share.whole, 1000);
                held[me] = share.bytes.max(held[me]).min(held[me] + 40 + seed % 60);
                assert!(held.iter().sum::<u64>() <= 500, "{held:?}");
            }
        }
    }
}
