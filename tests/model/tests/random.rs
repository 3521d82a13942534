//! Actions at random on each model, each audited and compared with the model: 300,000, and with `PINBUDDY_TEST_ALL=1` a million.

use pinbuddy_model::soak::{self, MODELS};

/// Other seeds than those of the check command, which begins at 0.
const FIRST: u64 = 1 << 32;

fn try_model(number: usize) {
    let actions = match std::env::var("PINBUDDY_TEST_ALL").as_deref() {
        Ok("1") => 1_000_000,
        _ => 300_000,
    };
    let tried = soak::run(MODELS[number], FIRST, actions);
    println!("{tried:?}");
    assert!(tried.cases > actions / 1000, "{tried:?}");
}

#[test]
fn random_actions_on_the_engine() {
    try_model(0);
}

#[test]
fn random_actions_on_the_provisioner() {
    try_model(1);
}
