//! A plan for runs of two shapes serves both.

use pinbuddy_events::Op;
use pinbuddy_plan::{Record, for_several, try_out};

use crate::programs::{Random, Training, planned, record};

/// A program's run in which all requests but the first ones are scaled so.
fn run(training: Training, hundredths: u64, but: usize) -> Record {
    let mut count = 0;
    let events = training.events().into_iter();
    let scaled = events.map(|op| match op {
        Op::Request { id, bytes, thread, .. } => {
            count += 1;
            let hundredths = if count > but { hundredths } else { 100 };
            Op::request(id, bytes * hundredths / 100).on_thread(thread)
        }
        op => op,
    });
    record(&scaled.collect::<Vec<_>>())
}

#[test]
fn runs_of_about_one_size_have_one_plan_which_serves_each_as_its_own_does() {
    let mut joined = 0;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let training = Training {
            layers: 2 + random.below(5),
            micro_batches: 1 + random.below(3),
            ahead: 1 + random.below(4),
            recompute: random.below(2) == 0,
            loader: random.below(2) == 0,
            evaluate: random.below(2) * 3,
            marks: random.below(2) == 0,
            seed,
            iterations: 6,
            ..Training::default()
        };
        // They may begin alike, as where weights come first.
        let (hundredths, but) = (85 + random.below(30), 24 * random.below(2) as usize);
        let (one, other) = (run(training, 100, 0), run(training, hundredths, but));
        let [first, second] = [&one, &other].map(|it| planned(it, usize::MAX));
        let both = for_several(&other, second.clone(), &first);
        assert!(both.reserved() <= first.reserved().max(second.reserved()));
        if both.lanes.len() == second.lanes.len() {
            assert_eq!(both, second);
            continue;
        }
        joined += 1;
        for (record, own) in [(&one, &first), (&other, &second)] {
            let [own, now] = [own, &both].map(|it| try_out(record, it));
            // Where they begin alike, what lives since then may lie in the other's places.
            let (percent, pins) = if but > 0 { (70, 4) } else { (98, 1) };
            let is_good = now.hits * 100 >= own.hits * percent && now.pins <= own.pins + pins;
            assert!(is_good, "seed {seed}, alike {but}: {now:?} {own:?}");
        }
        // As often as it is renewed with further runs, it is a plan of few.
        let mut more = both;
        for _ in 0..8 {
            more = for_several(&other, second.clone(), &more);
            assert!(more.lanes.len() <= 4 * second.lanes.len());
        }
    }
    assert!(joined >= 6, "{joined} of 12");
}

#[test]
fn a_run_that_needs_much_more_or_much_less_has_a_plan_of_its_own() {
    let (one, other) = (run(Training::default(), 100, 0), run(Training::default(), 50, 0));
    let [large, small] = [&one, &other].map(|it| planned(it, usize::MAX));
    assert_eq!(for_several(&other, small.clone(), &large), small);
    assert_eq!(for_several(&one, large.clone(), &small), large);
}
