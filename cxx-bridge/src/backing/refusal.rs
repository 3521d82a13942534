//! Why a region could not be made from memory of our own. Decides nothing.

/// Why a region could not be made from memory of our own.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The pin was stopped.
    Stopped,
    /// Memory is used up, for CUDA as well.
    Short(String),
    /// This region cannot be made here; others may.
    NotThis(String),
    /// CUDA does not register it. If it allocates instead, it gets every region from then on.
    NotRegistered(String),
}
