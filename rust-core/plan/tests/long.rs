//! Programs that have more than the longest region at once: no region is longer, and no block would straddle two.

use pinbuddy_events::Op;
use pinbuddy_plan::file::{GRANULE, MOST_REGION};
use pinbuddy_plan::{check_plan, try_out};

use crate::programs::{Random, at_random, planned, record, repeated};

const GIB: u64 = 1 << 30;

fn random(sizes: std::ops::Range<u64>, live: u64) -> Vec<Op> {
    at_random(&mut Random::new(5), 60, sizes, live).events
}

#[test]
fn an_amount_above_the_longest_region_is_cut_into_equal_ones_that_serve_all() {
    for (sizes, live, most) in [
        (GIB..9 * GIB, 100 * GIB, 1.3),
        // More than half of a region: two never share one.
        (33 * GIB..48 * GIB, 150 * GIB, 1.6),
        // So few at once leave much between them.
        (2 * GIB..40 * GIB, 150 * GIB, 1.8),
    ] {
        let events = random(sizes.clone(), live);
        let plan = planned(&record(&events), 0);
        assert!(plan.slots.is_empty());
        assert!(plan.regions.len() > 1 && plan.regions.iter().all(|it| *it == plan.regions[0]));
        let longest = events.iter().map(|it| match it {
            Op::Request { bytes, .. } => *bytes,
            _ => 0,
        });
        let holding = longest.max().unwrap()..=MOST_REGION;
        assert!(holding.contains(&plan.regions[0]), "{:?}", plan.regions);
        let most = (plan.facts.peak as f64 * most) as u64;
        let (reserved, peak) = (plan.reserved(), plan.facts.peak);
        assert!((peak..most).contains(&reserved), "{sizes:?}: {reserved} of {peak}");
        assert_eq!(try_out(&record(&events), &plan).pins, 0, "{sizes:?}");
    }
}

#[test]
fn what_is_longer_than_any_region_is_in_no_amount() {
    let mut events = random(GIB..9 * GIB, 30 * GIB);
    let without = planned(&record(&events), 0).regions;
    let (id, bytes) = (1000, 65 * GIB);
    events.insert(20, Op::request(id, bytes));
    events.insert(50, Op::free(id));
    let plan = planned(&record(&events), 0);
    assert_eq!(plan.regions, without);
    assert!(plan.facts.peak <= 30 * GIB, "{}", plan.facts.peak);
}

#[test]
fn places_lie_within_regions_none_of_which_is_too_long() {
    let mut random = Random::new(7);
    let sizes: Vec<u64> = (0..40).map(|_| (1 + random.below(12)) * GIB).collect();
    // Each for a while of its own.
    let body = sizes.iter().enumerate().map(|(at, bytes)| (bytes / GRANULE, at % 25)).collect();
    let record = record(&repeated(&[body], 5, &[0], false));
    let plan = planned(&record, 0);
    assert!(plan.regions.len() > 1 && plan.facts.peak > MOST_REGION);
    assert!(plan.regions.iter().all(|it| *it <= MOST_REGION));
    // That each slot lies within its region was checked.
    let replayed = check_plan(&record, &plan);
    assert_eq!((replayed.hits, replayed.busy), (200, 0));
    assert!(plan.reserved() < plan.facts.peak * 5 / 4, "{} of {}", plan.reserved(), plan.facts.peak);
}
