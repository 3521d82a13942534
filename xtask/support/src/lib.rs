//! What any of the build tools needs of the machine it runs on, and how it speaks to people and scripts.
//!
//! Knows nothing of wheels, patches or torch.

pub mod calls;
pub mod cargo;
pub mod disk;
pub mod failure;
pub mod hash;
pub mod links;
pub mod lock;
pub mod paths;
pub mod progress;
pub mod refusal;
pub mod relay;
pub mod scratch;
pub mod stamp;
pub mod table;
pub mod tally;
pub mod typed;
pub mod watch;
