//! What generators write programs with: blocks, copies, time.
//!
//! Time advances with each call and with what the program computes. Knows no workload. Invariants: ids
//! are never reused; `live` is what was allocated and not freed.

use std::collections::BTreeSet;

use pinbuddy_events::{Event, MICROSECOND, Op};

/// Microseconds that pass with each call.
const CALL: u64 = 2;

/// A block of the program.
#[derive(Debug)]
#[must_use = "a block that is forgotten lives to the end"]
pub(super) struct Handle(u64);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Script {
    events: Vec<Event>,
    t: u64,
    next: u64,
    live: BTreeSet<u64>,
    thread: u32,
}

impl Script {
    /// A new block of `bytes` bytes.
    pub(super) fn alloc(&mut self, bytes: u64) -> Handle {
        self.next += 1;
        let (id, thread) = (self.next, self.thread);
        self.live.insert(id);
        self.put(Op::request(id, bytes).on_thread(thread));
        Handle(id)
    }

    /// The block is used on a stream.
    pub(super) fn copy(&mut self, block: &Handle, stream: u32) {
        let id = block.0;
        self.put(Op::Use { id, stream });
    }

    pub(super) fn free(&mut self, block: Handle) {
        self.live.remove(&block.0);
        self.put_free(block.0);
    }

    pub(super) fn free_all(&mut self, blocks: impl IntoIterator<Item = Handle>) {
        blocks.into_iter().for_each(|block| self.free(block));
    }

    /// The program computes, or waits.
    pub(super) fn wait(&mut self, microseconds: u64) {
        self.t += microseconds;
    }

    /// From now on requests come from this thread.
    pub(super) fn on_thread(&mut self, thread: u32) {
        self.thread = thread;
    }

    /// The step is over.
    pub(super) fn iter(&mut self) {
        self.put(Op::Iteration);
    }

    /// `empty_cache`, once the device has done all that it was given.
    pub(super) fn clear(&mut self) {
        self.wait(2_000_000);
        self.put(Op::Clear);
    }

    /// The program ends: all live blocks are freed.
    pub(super) fn end(&mut self) {
        for id in std::mem::take(&mut self.live) {
            self.put_free(id);
        }
    }

    /// The events written since the last call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn put_free(&mut self, id: u64) {
        self.put(Op::free(id).on_thread(self.thread));
    }

    fn put(&mut self, op: Op) {
        self.t += CALL;
        self.events.push(Event::host(self.t * MICROSECOND, op));
    }
}
