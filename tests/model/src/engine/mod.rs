//! The engine against a model that is too simple to be wrong: an array of bools per segment.
//!
//! Random actions, misuse included; after every one the answer must be the model's, exactly, and
//! the audit must find nothing. The model says which segment and which offset, not only whether
//! there is room, so that "leftmost in the fullest of the class that fits" and "the smallest idle
//! dedicated region that is not too large" are checked and not just believed.

mod actions;
mod compare;
mod model;

use crate::choices::Choices;
use actions::Action;
use model::Model;

/// Runs the case that `bytes` are; how many actions it had.
pub fn run(bytes: &[u8]) -> u64 {
    let mut choices = Choices::new(bytes);
    let mut model = Model::new(actions::config(&mut choices));
    let mut actions = 0;
    while !choices.is_over() {
        let action = Action::choose(&mut choices);
        model.apply(action);
        model.compare();
        assert_eq!(model.engine.audit(), Ok(()));
        actions += 1;
    }
    actions
}
