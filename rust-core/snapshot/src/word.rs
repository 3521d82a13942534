//! The words of a snapshot that mean something here. Of other text only names of functions and files are read.

/// A text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Word {
    Action = 1,
    Addr,
    Size,
    Stream,
    TimeUs,
    Stage,
    Name,
    DeviceTraces,
    HostTraces,
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    End,
    Frames,
    Filename,
    Line,
    PoolId,
    /// The name of an annotation that stands for one iteration.
    Step,
}

/// All but the last, with their texts.
const WORDS: [(&[u8], Word); 21] = [
    (b"action", Word::Action),
    (b"addr", Word::Addr),
    (b"size", Word::Size),
    (b"stream", Word::Stream),
    (b"time_us", Word::TimeUs),
    (b"stage", Word::Stage),
    (b"name", Word::Name),
    (b"device_traces", Word::DeviceTraces),
    (b"host_traces", Word::HostTraces),
    (b"alloc", Word::Alloc),
    (b"free_requested", Word::FreeRequested),
    (b"free_completed", Word::FreeCompleted),
    (b"segment_alloc", Word::SegmentAlloc),
    (b"segment_free", Word::SegmentFree),
    (b"segment_map", Word::SegmentMap),
    (b"segment_unmap", Word::SegmentUnmap),
    (b"END", Word::End),
    (b"frames", Word::Frames),
    (b"filename", Word::Filename),
    (b"line", Word::Line),
    (b"pool_id", Word::PoolId),
];

/// What PyTorch's optimizers and its profiler call a step: `Optimizer.step#AdamW.step`, `ProfilerStep#7`.
const STEPS: [&[u8]; 2] = [b"Optimizer.step#", b"ProfilerStep#"];

/// How much of a text decides which word it is.
pub(crate) const LONGEST: usize = 16;

impl Word {
    /// The word of a text that begins with `text`, [`LONGEST`] bytes at most, and has `length` bytes.
    pub(crate) fn of(text: &[u8], length: u64) -> Option<Self> {
        if STEPS.iter().any(|step| text.starts_with(step)) {
            return Some(Self::Step);
        }
        let whole = length == text.len() as u64;
        let found = WORDS.iter().find(|(word, _)| whole && *word == text);
        found.map(|(_, word)| *word)
    }

    /// What it is written as.
    pub(crate) fn text(self) -> &'static str {
        let found = WORDS.iter().find(|(_, word)| *word == self);
        found.map_or("", |(text, _)| std::str::from_utf8(text).unwrap_or_default())
    }

    /// The word of this number.
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        let all = WORDS.iter().map(|(_, word)| *word).chain([Self::Step]);
        all.into_iter().find(|word| *word as u8 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts_and_what_stands_for_a_step() {
        for (text, word) in WORDS {
            assert!(text.len() <= LONGEST);
            assert_eq!(Word::of(text, text.len() as u64), Some(word));
            assert_eq!(Word::numbered(word as u8), Some(word));
            assert_eq!(word.text().as_bytes(), text);
            assert_eq!(Word::of(text, 99), None, "a longer text");
        }
        assert_eq!(Word::of(b"Optimizer.step#A", 25), Some(Word::Step));
        assert_eq!(Word::of(b"ProfilerStep#1", 14), Some(Word::Step));
        assert_eq!(Word::of(b"Optimizer.zero_g", 35), None);
        assert_eq!((Word::numbered(0), Word::numbered(200)), (None, None));
    }
}
