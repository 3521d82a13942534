//! Replays of what was made ready, beside replays of each step.

use pinbuddy_core::WarmUp;
use pinbuddy_events::Checker;
use proptest::prelude::*;

use super::*;
use crate::MIB;
use crate::policy::Kind;
use crate::replay;
use crate::workload::WORKLOADS;

/// What is pinned, whenever that changes, and what it came to.
type Seen = (Vec<(u64, u64)>, State);

fn push(curve: &mut Vec<(u64, u64)>, at: u64, pinned: u64) {
    if curve.last().is_none_or(|it| it.1 != pinned) {
        curve.push((at, pinned));
    }
}

fn step_by_step(steps: &[Step], settings: Settings) -> Seen {
    let mut run = replay::on(Kind::Pinbuddy, settings);
    let mut curve = Vec::new();
    for step in steps {
        run.step(*step);
        push(&mut curve, step.at, run.state().pinned);
    }
    let mut state = run.state();
    state.live = 0;
    (curve, state)
}

fn made_ready(ready: &Prepared, settings: Settings) -> Seen {
    let mut curve = Vec::new();
    let last = ready.replay(settings, &mut |at, pinned| {
        push(&mut curve, at, pinned);
        true
    });
    (curve, last)
}

fn settings(threshold_bytes: u64) -> Vec<Settings> {
    let usual = Settings { threshold_bytes, ..Settings::default() };
    let with = |mib, block_count, warm_up| Settings { block_bytes: mib * MIB, block_count, warm_up, ..usual };
    vec![
        usual,
        usual.exact(),
        with(64, None, WarmUp::Background),
        with(64, Some(0), WarmUp::Background),
        with(128, Some(3), WarmUp::Background),
        with(256, Some(2), WarmUp::Sync),
    ]
}

fn all_agree(steps: &[Step], what: &str) {
    for threshold in [0, MIB, 4 * MIB, 16 * MIB] {
        let ready = Prepared::new(steps, threshold);
        for settings in settings(threshold) {
            let (found, expected) = (made_ready(&ready, settings), step_by_step(steps, settings));
            assert_eq!(found, expected, "{what} with {settings:?}");
        }
    }
}

#[test]
fn every_workload_comes_to_the_same() {
    for workload in WORKLOADS {
        let mut checker = Checker::default();
        let step = |(line, event)| Step::checked(&mut checker, line, event).unwrap();
        let events = (1..).zip(workload.events(1, 3));
        let steps: Vec<Step> = events.filter_map(step).collect();
        all_agree(&steps, workload.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Sizes on both sides of the thresholds, streams that are late, clears, and a first step of any kind.
    #[test]
    fn random_programs_come_to_the_same(
        acts in prop::collection::vec((0_u8..40, 10_u32..28, any::<u16>(), 0_u64..3000), 1..400),
    ) {
        let (mut live, mut vacant, mut next, mut at) = (Vec::new(), Vec::new(), 0, 0);
        let mut steps = Vec::new();
        for (kind, power, some, later) in acts {
            at += later;
            let index = usize::from(some) % live.len().max(1);
            let act = match kind {
                0 => Act::Clear,
                1 => Act::Iter,
                2..=9 if !live.is_empty() => Act::Use { block: live[index], stream: u32::from(kind % 3) },
                10..=24 if !live.is_empty() => {
                    let block = live.swap_remove(index);
                    vacant.push(block);
                    Act::Free { block }
                }
                _ => {
                    let block = vacant.pop().unwrap_or_else(|| { next += 1; next - 1 });
                    live.push(block);
                    // Some sizes come again.
                    Act::Alloc { block, bytes: (1 << power) + u64::from(some % 64) * 512 + 1 }
                }
            };
            steps.push(Step { at, act });
        }
        all_agree(&steps, "a random program");
    }
}

#[test]
fn a_replay_ends_where_it_is_told_to() {
    let bytes = 40 * MIB;
    let request = |block: u32| Step { at: block.into(), act: Act::Alloc { block, bytes } };
    let steps: Vec<Step> = (0..9).map(request).collect();
    let settings = Settings::default();
    let mut told = 0;
    let ready = Prepared::new(&steps, settings.threshold_bytes);
    let last = ready.replay(settings, &mut |_, pinned| {
        told += 1;
        pinned < 100 * MIB
    });
    assert!(told < 9 && last.pinned < 360 * MIB, "{told} {last:?}");
}
