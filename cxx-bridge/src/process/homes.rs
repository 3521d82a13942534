//! Homes of memory, for the C++ side: what it asks once, and remembers.

use std::panic::catch_unwind;

use super::handle;
use crate::backing::Device;

/// How many homes memory can have, a power of two.
pub(crate) fn engine_homes() -> usize {
    handle().homes()
}

/// The home of requests while this is the current device. It stays the same.
pub(crate) fn engine_home_of(device: i32) -> u32 {
    // A panic must not reach C++.
    catch_unwind(|| handle().home_of(Device(device)).0.into()).unwrap_or_default()
}
