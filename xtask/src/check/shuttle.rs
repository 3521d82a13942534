//! Interleavings of the bridge's threads, chosen by shuttle: `cxx-bridge/tests/races.rs`.

use anyhow::{Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::{cargo, relay};

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let mut command = cargo::command();
    command
        .args(["test", "--package", "pinbuddy-bridge"])
        .args(["--features", "shuttle", "--test", "races"])
        .args(["--", "--nocapture", "--test-threads", "1"]);
    let (text, success) = relay::run(&mut command)?;
    ensure!(
        success,
        "threads can interleave so that something is wrong; what is printed above replays it"
    );
    let counted = text
        .lines()
        .filter_map(|line| line.split_once("interleavings: "))
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok());
    let (tests, all) = counted.fold((0, 0), |(tests, all), one| (tests + 1, all + one));
    ensure!(all > 0, "no interleaving was tried");
    Ok(Explored::default()
        .figure("programs", tests)
        .figure("interleavings", all))
}
