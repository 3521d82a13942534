//! A million actions at random on each model, each audited and compared with the model.

use pinbuddy_model::soak::{self, MODELS};

/// Other seeds than those of the check command, which begins at 0.
const FIRST: u64 = 1 << 32;

#[test]
fn a_million_actions_on_the_engine() {
    let tried = soak::run(MODELS[0], FIRST, 1_000_000);
    println!("{tried:?}");
    assert!(tried.cases > 1000, "{tried:?}");
}

#[test]
fn a_million_actions_on_the_provisioner() {
    let tried = soak::run(MODELS[1], FIRST, 1_000_000);
    println!("{tried:?}");
    assert!(tried.cases > 1000, "{tried:?}");
}
