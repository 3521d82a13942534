//! Applies a release's series to the headers of a wheel: exactly, or not at all.

pub mod apply;
pub mod series;
