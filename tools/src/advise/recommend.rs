//! Which choice to take, and why. A pure function of what each came to.

use serde::Serialize;

use super::choices::{Choice, export};
use super::world::Counts;
use crate::show;

/// What to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// The choice's name.
    pub choice: String,
    /// Why, in a sentence.
    pub reason: String,
    /// What to paste.
    pub lines: Vec<String>,
}

/// More than so much of the largest live set is not recommended to be pinned, if there is anything else.
const MOST_OVER_LIVE: f64 = 1.25;

/// Choices that wait about as rarely as the best one, and then pin about as little, are as good; fewer lines win.
pub(super) fn recommend(choices: &[Choice], counts: &Counts) -> Recommendation {
    let is_to_be_had = |it: &&Choice| it.available && !it.stopped;
    let mut good: Vec<&Choice> = choices.iter().filter(is_to_be_had).collect();
    let nothing =
        |reason: &str| Recommendation { choice: "stock".to_owned(), reason: reason.to_owned(), lines: Vec::new() };
    if counts.requests == 0 {
        return nothing("there are no requests: nothing to choose");
    }
    let most = (counts.largest_live as f64 * MOST_OVER_LIVE) as u64 + (64 << 20);
    let least = good.iter().map(|it| it.pinned).min().unwrap_or(0);
    let most = most.max(least + least / 20);
    good.retain(|it| it.pinned <= most);
    // A plan of amounts has what is needed, in one piece: few requests can find no room.
    let waits = |it: &Choice| it.waits.unwrap_or(0);
    let fewest = good.iter().map(|it| waits(it)).min().unwrap_or(0);
    good.retain(|it| waits(it) <= fewest + fewest / 10 + 1);
    let least = good.iter().map(|it| it.pinned).min().unwrap_or(0);
    good.retain(|it| it.pinned <= least + least / 20);
    let weight = |it: &&Choice| (it.lines.len(), waits(it), it.pinned);
    let Some(best) = good.into_iter().min_by_key(weight) else {
        return nothing("every choice would pin more than 2 TiB");
    };
    Recommendation { choice: best.name.clone(), reason: reason(best, choices), lines: best.lines.clone() }
}

/// `plan`: the command that makes one. Of device memory no choice is replayed: whether a plan pays is what making one says.
pub(super) fn of_a_device(plan: &str) -> Recommendation {
    Recommendation {
        choice: "a plan for device memory, if its requests come again".to_owned(),
        reason: "PyTorch's own allocator serves device memory, and no other choice is modelled".to_owned(),
        lines: vec![format!("{plan} --out device.plan"), export("BUDDY_DEVICE_PLAN=device.plan")],
    }
}

fn reason(best: &Choice, choices: &[Choice]) -> String {
    let told = |it: &Choice| {
        let waits = it.waits.map(|it| format!(", {} for the driver", show::count(it, "wait")));
        let (pinned, waits) = (show::bytes(it.pinned), waits.unwrap_or_default());
        format!("{pinned} ({:.2} times the largest live set){waits}", it.over_live)
    };
    let mut text = format!("it pins {}", told(best));
    if best.waits.is_none() {
        text += " before they are needed; whether all requests find room there is not modelled";
    }
    let is_known = |it: &&Choice| ["stock", "pinbuddy"].contains(&it.name.as_str());
    for other in choices.iter().filter(is_known).filter(|it| it.name != best.name) {
        text += &format!("; {} pins {}", other.name, told(other));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of choices by name, lines to set, MiB that are pinned, and waits.
    fn chosen(choices: &[(&str, usize, u64, u64)]) -> String {
        let choice = |&(name, lines, pinned, waits): &(&str, usize, u64, u64)| Choice {
            name: name.to_owned(),
            lines: vec![String::new(); lines],
            available: name != "#181094",
            pinned: pinned << 20,
            over_live: 1.0,
            waits: Some(waits),
            stopped: false,
            pins: 0,
            pins_after_first_iteration: 0,
        };
        let counts = Counts { requests: 1000, largest_live: 1000 << 20, ..Counts::default() };
        recommend(&choices.iter().map(choice).collect::<Vec<_>>(), &counts).choice
    }

    #[test]
    fn rarely_waiting_beats_pinning_little_within_bounds() {
        let all = [("stock", 1, 1400, 40), ("pinbuddy", 0, 1200, 12), ("small", 1, 1000, 30), ("large", 1, 1900, 0)];
        let and = |other| [&all[..], &[other]].concat();
        assert_eq!(chosen(&all), "pinbuddy", "large pins too much, small waits");
        assert_eq!(chosen(&and(("few", 2, 1249, 2))), "few");
        assert_eq!(chosen(&and(("#181094", 0, 1000, 0))), "pinbuddy", "nobody can have it");
        let alike = [("pinbuddy", 0, 1040, 3), ("set", 2, 1000, 2)];
        assert_eq!(chosen(&alike), "pinbuddy", "what is about as good and needs no lines");
        assert_eq!(
            chosen(&[("stock", 1, 4000, 40), ("pinbuddy", 0, 9000, 0)]),
            "stock",
            "where all pin much, the least"
        );
    }
}
