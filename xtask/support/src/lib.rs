//! What every build tool needs: files, locks, processes, messages, progress.
//!
//! Knows nothing of wheels, patches or torch.

pub mod cargo;
pub mod disk;
pub mod failure;
pub mod hash;
pub mod lock;
pub mod paths;
pub mod progress;
pub mod refusal;
pub mod scratch;
pub mod table;
pub mod tally;
pub mod typed;
pub mod watch;
