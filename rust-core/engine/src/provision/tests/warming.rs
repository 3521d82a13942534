//! What `warm_up()` pins.

use super::*;
use crate::units::Home;

/// Requests that come while it goes on find memory early, and wait for no gigabyte in the driver.
#[test]
fn a_warm_up_of_no_set_size_begins_with_short_regions() {
    let mut caller = Caller::new(settings());
    for round in 1..=2 {
        assert_eq!(caller.work(), [0; 0], "nobody has asked");
        caller.it.urge(Home(0));
        let pinned = caller.work();
        assert_eq!(pinned[..7], [64, 64, 128, 256, 512, 1024, 1024]);
        assert_eq!(pinned.iter().sum::<usize>(), 8 * 1024, "{pinned:?}");
        assert_eq!(caller.it.progress().deficit, 0);
        assert_eq!(caller.it.progress().pinned, 8 * round, "in whole segments");
        caller.it.urge(Home(0));
        assert_eq!(caller.work(), [0; 0], "all of it is there");
        // After a clear it begins again.
        assert!(!caller.it.clear().is_empty());
    }
    let mut of_a_set_size = Caller::new(Settings { count: Some(3), ..settings() });
    of_a_set_size.it.urge(Home(0));
    assert_eq!(of_a_set_size.work(), [1024; 3], "whole segments");
}

#[test]
fn a_pin_that_a_clear_cannot_stop_is_owed_again() {
    for is_used in [false, true] {
        let mut caller = Caller::new(Settings { count: Some(4), ..settings() });
        caller.it.urge(Home(0));
        assert!(caller.it.hire());
        let first = caller.pin_ahead();
        caller.pinned(&first);
        let second = caller.pin_ahead();
        assert_eq!(caller.it.clear().len(), 1);
        assert_eq!(caller.it.progress().deficit, 4);
        caller.pinned(&second);
        if is_used {
            block(caller.it.engine_mut(), 8 * MIB);
        }
        match caller.it.work(caller.now, caller.left) {
            Work::Unpin(idle) => assert!(!is_used && idle.len() == 1),
            _ => assert!(is_used),
        }
        let owed = if is_used { 3 } else { 4 };
        assert_eq!(caller.it.progress().deficit, owed, "is_used: {is_used}");
    }
}

/// They pinned memory of their own meanwhile, with one segment all of them but the first.
#[test]
fn requests_wait_for_the_last_segment_of_a_warm_up_as_for_the_others() {
    let (segment_bytes, warm_up, count) = (64 * MIB, WarmUp::Sync, Some(1));
    let mut caller = Caller::new(Settings { segment_bytes, warm_up, count, ..settings() });
    let mut wants = [15 * MIB; 2].map(Want::new);
    for want in &mut wants {
        assert!(matches!(caller.step(want), Step::Reap));
    }
    assert!(matches!(caller.step(&mut wants[0]), Step::WarmUp));
    assert!(caller.it.hire());
    let ahead = caller.pin_ahead();
    let next = caller.step(&mut wants[1]);
    assert!(matches!(next, Step::Wait { until: None }), "{next:?}");
    assert_eq!(caller.pinned(&ahead), None);
    assert!(matches!(caller.it.work(caller.now, caller.left), Work::Done));
    for want in &mut wants {
        assert!(matches!(caller.step(want), Step::Block(_)));
    }
}
