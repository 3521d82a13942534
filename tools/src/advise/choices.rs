//! What a user can choose: allocators, settings, a plan; and what each would have come to on a trace.

use pinbuddy_core::{Growth, WarmUp};
use pinbuddy_plan::{Plan, Record, check_plan};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay::{self, Outcome, Run};
use serde::Serialize;

use super::world::{Counts, THRESHOLDS_MB};
use crate::baseline::{MOST_PINNED, ratio, stopped};
use crate::input::Input;

/// A choice, and what it would have come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// What it is called here.
    pub name: String,
    /// What to paste; nothing for what one gets anyway.
    pub lines: Vec<String>,
    /// Whether a user can have it: not the proposal of #181094, nor what the run's torch lacks or does wrong.
    pub available: bool,
    /// The most that it would have pinned at once, in bytes.
    pub pinned: u64,
    /// That over the largest live set.
    pub over_live: f64,
    /// Requests that would have waited for the driver; not known of a plan of amounts.
    pub waits: Option<u64>,
    /// It pins more than 2 TiB; a model is replayed no further then.
    pub stopped: bool,
    /// Calls to the driver that pin.
    pub pins: u64,
    /// The same after the first iteration.
    pub pins_after_first_iteration: u64,
}

/// A choice to be replayed.
pub(super) struct Try {
    name: String,
    kind: Kind,
    settings: Settings,
    available: bool,
    lines: Vec<String>,
}

const MIB: u64 = 1 << 20;

/// The most blocks that are tried: as many as the setting takes.
const MOST_BLOCKS: u64 = 1 << 12;

/// The first release in which stock does not overflow its heap with `pinned_max_round_threshold_mb`. Before 2.13 there is no
/// such setting.
const ROUNDS_SAFELY: [u32; 3] = [2, 14, 0];

/// What sets it.
const TUNED: [&str; 2] = ["BUDDY_DISABLE=1", "PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1"];

/// Whether a run of this torch can have the setting; not if the version is not known.
fn rounds_safely(torch: Option<&str>) -> bool {
    let numbers = torch.and_then(|it| it.split('+').next()).map(|it| {
        let mut parts = it.split('.').map(|it| it.parse().ok());
        [(); 3].map(|()| parts.next().flatten().unwrap_or(0))
    });
    numbers.is_some_and(|it: [u32; 3]| it >= ROUNDS_SAFELY)
}

/// All that are tried for a program of this size, which was run with this torch.
pub(super) fn grid(counts: &Counts, torch: Option<&str>) -> Vec<Try> {
    let plain = |name: &str, kind, lines: &[&str]| Try {
        name: name.to_owned(),
        kind,
        settings: Settings::default(),
        available: kind != Kind::Buddy181094 && (kind != Kind::StockTuned || rounds_safely(torch)),
        lines: lines.iter().map(|it| export(it)).collect(),
    };
    let mut all = vec![
        plain("stock", Kind::Stock, &["BUDDY_DISABLE=1"]),
        plain("stock, tuned", Kind::StockTuned, &TUNED),
        plain("#181094", Kind::Buddy181094, &[]),
        with(Settings::default()),
    ];
    let at_default = counts.largest_above[1];
    for megabytes in [64, 256, 1024] {
        let block_bytes = megabytes * MIB;
        let settings = Settings { block_bytes, ..Settings::default() };
        if megabytes != 1024 {
            all.push(with(settings));
        }
        let count = at_default.div_ceil(block_bytes);
        if (1..=MOST_BLOCKS).contains(&count) {
            all.push(with(Settings { block_count: Some(count), ..settings }));
        }
    }
    all.push(with(Settings::default().exact()));
    for (at, megabytes) in THRESHOLDS_MB.into_iter().enumerate() {
        // Another threshold is another choice only if there are requests between the two.
        if counts.largest_above[at] != at_default {
            let settings = Settings { threshold_bytes: megabytes * MIB, ..Settings::default() };
            all.extend([with(settings), with(settings.exact())]);
        }
    }
    all
}

pub(super) fn export(assignment: &str) -> String {
    format!("export {assignment}")
}

/// pinbuddy with these settings.
fn with(settings: Settings) -> Try {
    let usual = Settings::default();
    let mut set = Vec::new();
    let mib = |bytes: u64, usual: u64| (bytes != usual).then_some(bytes / MIB);
    let mut put = |name: &str, value: Option<u64>| {
        set.extend(value.map(|it| format!("BUDDY_{name}={it}")));
    };
    put("BLOCK_SIZE_MB", mib(settings.block_bytes, usual.block_bytes));
    put("BLOCK_COUNT", settings.block_count);
    let threshold = mib(settings.threshold_bytes, usual.threshold_bytes);
    put("THRESHOLD_MB", threshold);
    if settings.warm_up == WarmUp::Off {
        set.push("BUDDY_WARMUP=off".to_owned());
    }
    if settings.growth == Growth::Exact {
        set.push("BUDDY_GROWTH=exact".to_owned());
    }
    let name = match set[..] {
        [] => "pinbuddy".to_owned(),
        _ => format!("pinbuddy, {}", set.join(" ").replace("BUDDY_", "")),
    };
    Try { name, kind: Kind::Pinbuddy, settings, available: true, lines: set.iter().map(|it| export(it)).collect() }
}

impl Try {
    pub(super) fn run(&self) -> Box<dyn Run> {
        replay::on(self.kind, self.settings)
    }

    pub(super) fn came_to(self, outcome: &Outcome) -> Choice {
        Choice {
            name: self.name,
            lines: self.lines,
            available: self.available,
            pinned: outcome.peak_pinned_bytes,
            over_live: outcome.pinned_over_requested.unwrap_or(1.0),
            waits: Some(outcome.misses),
            stopped: stopped(outcome),
            pins: outcome.pins,
            pins_after_first_iteration: outcome.pins_after_first_step,
        }
    }
}

/// A plan, which pins its regions before they are needed, and stock for the `rest`, below its threshold. Each request that
/// gets no place counts as one that waits. `command`: what makes it.
pub(super) fn of_plan(plan: &Plan, record: &Record, rest: &Outcome, counts: &Counts, command: &str) -> Choice {
    // What is longer than any region is pinned when it is asked for.
    let beyond = record.peak().saturating_sub(plan.facts.peak);
    let pinned = plan.reserved().saturating_add(beyond);
    let pinned = pinned.saturating_add(rest.peak_pinned_bytes);
    let missed = || rest.misses + check_plan(record, plan).missed.len() as u64;
    let places = match plan.slots.is_empty() {
        true => "amounts",
        false => "places",
    };
    Choice {
        name: format!("pinbuddy, a plan of {places}"),
        lines: vec![format!("{command} --out run.plan"), export("BUDDY_PLAN=run.plan")],
        available: true,
        pinned,
        over_live: ratio(pinned, counts.largest_live),
        waits: (!plan.slots.is_empty()).then(missed),
        stopped: pinned > MOST_PINNED,
        pins: plan.regions.len() as u64 + rest.pins,
        pins_after_first_iteration: rest.pins_after_first_step,
    }
}

/// The command that makes a plan of this file, for the torch beside it where the file names none.
pub(super) fn plan_of(input: &Input) -> String {
    let torch = match input.about.torch {
        Some(_) => "",
        None => r#" --torch "$(python -c 'import torch; print(torch.__version__)')""#,
    };
    format!("pinbuddy plan {}{torch}", quoted(input.as_argument()))
}

/// For a shell.
fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:@".contains(it);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_overflows_stocks_heap_is_not_to_be_had() {
        let tuned = |torch| {
            let mut all = grid(&Counts::default(), torch).into_iter();
            all.find(|it| it.kind == Kind::StockTuned).map(|it| it.available)
        };
        for (torch, available) in [
            (None, false),
            (Some("2.12.1+cu130"), false),
            (Some("2.13.0+cu130"), false),
            (Some("2.13.1"), false),
            (Some("2.15.0+cu132"), true),
            (Some("3.0.0a0+git123"), true),
            (Some("of my own"), false),
        ] {
            assert_eq!(tuned(torch), Some(available), "{torch:?}");
        }
    }
}
