//! The number by which a plan knows this thread, which has a lane until it ends.

use std::cell::Cell;

use super::handle;
use crate::thread_number;

thread_local! {
    /// One more than the number; 0: none yet. One look a request, since it is a good part of what a planned pair takes.
    static LANE_THREAD: Cell<u32> = const { Cell::new(0) };
}

/// This thread's number, which has a lane until the thread ends.
#[inline]
pub(super) fn lane_thread() -> u32 {
    match LANE_THREAD.get() {
        0 => begin_lane(),
        more => more - 1,
    }
}

#[cold]
fn begin_lane() -> u32 {
    thread_number::at_end(|number| {
        // What other destructors of this thread ask for has no lane.
        LANE_THREAD.set(thread_number::NOBODYS + 1);
        handle().thread_ended(number);
    });
    LANE_THREAD.set(thread_number::own() + 1);
    thread_number::own()
}
