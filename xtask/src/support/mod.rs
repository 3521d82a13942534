//! What any command may need of the machine it runs on. Knows nothing of wheels or torch.

pub mod cargo;
pub mod disk;
pub mod hash;
pub mod links;
pub mod lock;
pub mod paths;
pub mod relay;
pub mod scratch;
pub mod typed;
pub mod watch;
