//! The engine against a model that is too simple to be wrong: an array of bools per segment.
//!
//! After each random action, misuse included, the answer must equal the model's and the audit must find
//! nothing. The model predicts the segment and the offset: so "leftmost in the fullest segment of the
//! class that fits" and "the smallest idle dedicated region that is not too long" are checked.

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
