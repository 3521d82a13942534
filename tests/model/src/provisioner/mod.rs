//! The provisioner as several threads, a worker and a driver use it, beside a bitmap for each region.
//!
//! Every step of every party is an action of its own, so that they interleave in any order: threads
//! ask for blocks and sleep, pins end well or badly long after they began, the worker goes on behind,
//! the cache is cleared and the process ends in the middle. [`world`] is what is really pinned and who
//! has it; [`parties`] does what the provisioner says. Which region serves is the provisioner's
//! choice; what holds whatever it chooses is checked: no byte is handed out twice, what is unpinned is
//! idle and unpinned once, a request ends, and in the end nothing is lost.

mod actions;
mod compare;
mod ending;
mod parties;
mod worker;
mod world;

use crate::choices::Choices;
use parties::Parties;

/// Runs the case that `bytes` are; how many actions it had.
pub fn run(bytes: &[u8]) -> u64 {
    let mut choices = Choices::new(bytes);
    let mut parties = Parties::new(actions::settings(&mut choices), &mut choices);
    let mut actions = 0;
    while !choices.is_over() {
        parties.act(&mut choices);
        parties.compare();
        actions += 1;
    }
    parties.end();
    actions
}
