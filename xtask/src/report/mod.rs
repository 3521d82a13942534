//! What a person or a script sees of a run.

pub mod progress;
pub mod refusal;
pub mod summary;
pub mod table;
pub mod tally;
