//! What feeds the models of PyTorch's allocator of device memory ([`pinbuddy_device`]).
//!
//! ```text
//!   training  generated trainings
//!   compare   the outcome of a training with and without its plan
//!   history   events out of a snapshot that PyTorch wrote
//! ```

pub mod compare;
pub mod history;
pub mod training;

pub use pinbuddy_device::{Act, Device, Kind, Torch, Usage, planned, replay};

#[cfg(test)]
mod tests;
