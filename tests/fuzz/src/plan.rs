//! The reader of plan files.

use pinbuddy_plan::Plan;

/// Reads `bytes` as a plan: what was read holds its invariants, and is written and read again, the same;
/// errors say something.
pub fn run(bytes: &[u8]) {
    match Plan::read(&crate::text(bytes)) {
        Ok(plan) => {
            plan.check().unwrap();
            let mut written = Vec::new();
            plan.write(&mut written).unwrap();
            assert_eq!(Plan::read(&crate::text(&written)).unwrap(), plan);
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
}
