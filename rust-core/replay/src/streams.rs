//! When streams are done with blocks, in a trace's time.
//!
//! A trace says that a block is used on a stream, not for how long. Here a use is a copy of the whole
//! block at the speed of a PCIe 5 link, and a stream makes one copy after the other, as in offloading
//! and prefetching. Every policy sees the same times.

/// Bytes that a stream copies in a microsecond: 50 GB/s.
const PACE: u64 = 50_000;

/// A stream, and the time when it is done with a block.
pub type Until = (u32, u64);

/// The streams' work, and which streams use which block.
#[derive(Debug, Default)]
pub struct Streams {
    /// By stream: when its work is done, in microseconds.
    done: Vec<u64>,
    /// By block: the streams that use it, each once.
    users: Vec<Vec<u32>>,
    /// What [`Self::free`] returns, reused.
    answer: Vec<Until>,
}

impl Streams {
    /// The block of `bytes` bytes is copied on `stream`.
    pub fn copy(&mut self, at: u64, block: u32, bytes: u64, stream: u32) {
        self.run(at, stream, bytes.div_ceil(PACE));
        let block = block as usize;
        if self.users.len() <= block {
            self.users.resize_with(block + 1, Vec::new);
        }
        if !self.users[block].contains(&stream) {
            self.users[block].push(stream);
        }
    }

    /// Other work runs on `stream` for `time`.
    pub(crate) fn run(&mut self, at: u64, stream: u32, time: u64) {
        let index = stream as usize;
        if self.done.len() <= index {
            self.done.resize(index + 1, 0);
        }
        self.done[index] = self.done[index].max(at).saturating_add(time);
    }

    /// The block is freed: returns what must end before it is used again. As with PyTorch's events, that
    /// is all work that its streams have been given.
    #[inline]
    pub fn free(&mut self, block: u32) -> &[Until] {
        self.answer.clear();
        if let Some(users) = self.users.get_mut(block as usize) {
            for stream in users.drain(..) {
                self.answer.push((stream, self.done[stream as usize]));
            }
        }
        &self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_does_one_copy_after_the_other() {
        let mut streams = Streams::default();
        streams.copy(100, 0, 50_000, 0);
        streams.copy(100, 1, 100_000, 0);
        streams.copy(100, 0, 50_001, 3);
        streams.copy(100, 0, 1, 0);
        assert_eq!(streams.free(0), [(0, 104), (3, 102)]);
        assert_eq!(streams.free(0), [], "its next life has nothing to wait for");
        streams.copy(1000, 2, 50_000, 0);
        assert_eq!(streams.free(1), [(0, 1001)], "all that it was given");
        streams.run(1000, 0, 500);
        assert_eq!(streams.free(2), [(0, 1501)], "a kernel before the event");
    }
}
