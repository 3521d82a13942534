//! What a recording is made of, and who takes it.
//!
//! Knows neither rings nor files. Events have nanoseconds since the recording began. Blocks have numbers, from 1 on, in the
//! order in which they were requested; threads and streams from 0 on, in the order in which they were first seen.
//! Invariants, kept by `merge`: times never go back; a block is named by a request before anything else names it, and by no
//! other request ever; of each block there is at most one free, and at most one safe after it.

use pinbuddy_events::Event;

use super::source::Lost;

/// Takes what is recorded. Called by the recorder's thread alone, with no lock held.
pub trait Sink: Send {
    /// The next event. Blocks that were requested before the sink was added are never named.
    fn event(&mut self, event: Event);

    /// These events were dropped about here, for want of room in the rings.
    fn lost(&mut self, events: Lost);

    /// Whether it is a trace, which `pinbuddy.trace.stop()` ends.
    fn is_trace(&self) -> bool {
        false
    }

    /// There is nothing more for a while: a good time to write.
    fn pause(&mut self) {}

    /// Whether it wants more; once false, it is ended.
    fn wants_more(&self) -> bool {
        true
    }

    /// The recording ends, or the process: the last call. Must not take long.
    fn end(&mut self);
}
