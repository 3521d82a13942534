//! When streams are done with blocks, in a trace's own time.
//!
//! A trace says that a block is used on a stream, not for how long. Here a use is a copy of the
//! whole block at the pace of a PCIe 5 link, and a stream does one after the other: so is what is
//! offloaded and prefetched. Every policy sees the same moments.

/// Bytes that a stream copies in a microsecond: 50 GB/s.
const PACE: u64 = 50_000;

/// A stream, and the moment at which a block is free of it.
pub(crate) type Until = (u32, u64);

/// What streams have to do, and which of them have to do with which block.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// By stream: when it has done what it was given, in microseconds.
    done: Vec<u64>,
    /// By block: the streams that it is used on, each once.
    users: Vec<Vec<u32>>,
    /// The answer of [`Self::free`].
    answer: Vec<Until>,
}

impl Streams {
    /// The block of `bytes` bytes is copied on `stream`.
    pub(crate) fn copy(&mut self, at: u64, block: u32, bytes: u64, stream: u32) {
        self.run(at, stream, bytes.div_ceil(PACE));
        let block = block as usize;
        if self.users.len() <= block {
            self.users.resize_with(block + 1, Vec::new);
        }
        if !self.users[block].contains(&stream) {
            self.users[block].push(stream);
        }
    }

    /// Something runs on `stream` for so long.
    pub(crate) fn run(&mut self, at: u64, stream: u32, time: u64) {
        let index = stream as usize;
        if self.done.len() <= index {
            self.done.resize(index + 1, 0);
        }
        self.done[index] = self.done[index].max(at).saturating_add(time);
    }

    /// The block is freed: what must be over before it is used again. As with PyTorch's events,
    /// that is all that its streams were given until now.
    #[inline]
    pub(crate) fn free(&mut self, block: u32) -> &[Until] {
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
        assert_eq!(
            streams.free(1),
            [(0, 1001)],
            "all that its stream was given"
        );
        streams.run(1000, 0, 500);
        assert_eq!(streams.free(2), [(0, 1501)], "a kernel before the event");
    }
}
