//! Generated trainings with a plan: what is reserved of device memory, beside PyTorch's allocator.

use pinbuddy_replay::device::compare::{Comparison, Run, compare};
use pinbuddy_replay::device::replay::Outcome;
use pinbuddy_replay::device::training::{TRAININGS, Training};

/// What one loses in a run that differs may be so much.
const LOST: f64 = 0.03;

/// The quickest of each kind; with `PINBUDDY_TEST_ALL=1` the others, too.
const ORDINARY: [&str; 3] = ["gpt2", "llama2-7b-last-stage", "qwen-14b-recompute"];

fn comparisons() -> Vec<Comparison> {
    let all = std::env::var("PINBUDDY_TEST_ALL").is_ok_and(|it| it == "1");
    let is_chosen = |it: &&Training| all || ORDINARY.contains(&it.name);
    let chosen = TRAININGS.iter().filter(is_chosen);
    // No time limit: what is found must not depend on how busy the machine is.
    let compared = chosen.map(|it| compare(it, 1, &|| false).expect(it.name));
    compared.collect()
}

fn efficiency(of: &Outcome) -> f64 {
    of.efficiency.expect("something is reserved")
}

fn run<'c>(of: &'c Comparison, differs: &str) -> &'c Run {
    let run = of.runs.iter().find(|it| it.differs == differs);
    run.expect("there is such a run")
}

#[test]
fn a_plan_reserves_little_more_than_what_lives_at_once() {
    let all = comparisons();
    let mut less_fragmented = 0.0;
    for it in &all {
        let name = it.training;
        let same = run(it, "nothing");
        let found = efficiency(&same.plan);
        // Of two streams each has its own peak, at another moment.
        let target = match name {
            "llama2-7b-zero3" => 0.89,
            // With a solver that placed its long blocks first, which no recorded program needed, it was 0.9995.
            "llama2-7b-1f1b" => 0.998,
            _ if it.varies => 0.95,
            _ => 0.99,
        };
        assert!(found >= target, "{name}: {found}");
        let others = [&same.stock, &same.expandable].map(efficiency);
        assert!(others.iter().all(|it| found >= *it), "{name}: {others:?}");
        let peaks = [&same.plan, &same.stock].map(|it| it.peak_reserved);
        assert!(peaks[0] <= peaks[1], "{name}");
        less_fragmented += 1.0 - (1.0 - found) / (1.0 - others[0]);
        let lost = |differs| found - efficiency(&run(it, differs).plan);
        let (evaluation, shorter) = (lost("an evaluation"), lost("a shorter batch"));
        assert!(evaluation <= LOST, "{name}: {evaluation}");
        // The longest requests are a large part of all: those of other sizes find no place.
        let is_long = name == "llama2-7b-zero3";
        let most = if is_long { 0.05 } else { LOST };
        assert!(shorter <= most, "{name}: {shorter}");
    }
    let mean = less_fragmented / all.len() as f64;
    assert!(mean >= 0.85, "{mean}");
    let changed = |of: fn(&Run) -> &Outcome| -> f64 {
        let runs = all.iter().map(|it| run(it, "5 % of the requests"));
        runs.map(|it| efficiency(of(it))).sum::<f64>() / all.len() as f64
    };
    let (plan, stock) = (changed(|it| &it.plan), changed(|it| &it.stock));
    // It was 0.02 while programs that differ before their first step, as these and edited ones do, took all regions.
    assert!(plan >= stock + 0.01, "{plan}, {stock}");
}
