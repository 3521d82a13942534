//! Why a region could not be made from memory of our own. Decides nothing.

use super::Control;

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

/// The driver's error to a stopped pin is no refusal: when the process ends, the driver may be gone.
pub(super) fn unless_stopped(control: &dyn Control, refusal: Refusal) -> Refusal {
    if control.go_on() {
        refusal
    } else {
        Refusal::Stopped
    }
}
