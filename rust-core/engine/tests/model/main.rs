//! The engine against a model that is too simple to be wrong: an array of bools per segment.
//!
//! Random actions, misuse included; after every one the answer must be the model's, exactly, and
//! the audit must find nothing. The model says which segment and which offset, not only whether
//! there is room, so that "leftmost in the fullest of the class that fits" and "the smallest idle
//! dedicated region that is not too large" are checked and not just believed.

mod actions;
mod compare;
mod model;

use model::Model;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_engine_equals_the_model(
        config in actions::configs(),
        actions in actions::actions(),
    ) {
        let mut model = Model::new(config);
        for action in actions {
            model.apply(action);
            model.compare();
            prop_assert_eq!(model.engine.audit(), Ok(()));
        }
    }
}
