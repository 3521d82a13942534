//! Mistakes of programs that were put there on purpose, each of which is found.

use super::*;

/// Memory for blocks, with the guard that watches it.
struct Watched {
    guard: Guard,
    memory: Vec<u8>,
    base: usize,
}

impl Watched {
    fn new(bytes: usize) -> Self {
        let mut memory = vec![0_u8; bytes];
        let base = memory.as_mut_ptr().expose_provenance();
        let guard = Guard::default();
        Self { guard, memory, base }
    }

    fn hand_out(&self, at: usize, size: usize) -> usize {
        let bytes = self.guard.with_tail(size);
        assert!(at + bytes <= self.memory.len());
        // SAFETY: within the memory, which nobody else has.
        unsafe { self.guard.hand_out(self.base + at, bytes, size) };
        bytes
    }

    /// Frees the block that begins at an offset, and no stream uses it.
    fn free(&self, at: usize, bytes: usize) -> Result<(), Defect> {
        // SAFETY: within the memory, which nobody else has.
        unsafe {
            self.guard.check_end(self.base + at, bytes)?;
            self.guard.idle(self.base + at, bytes);
        }
        Ok(())
    }

    /// Writes as the program does, by an address.
    fn write(&self, at: usize, value: u8) {
        assert!(at < self.memory.len());
        // SAFETY: within the memory, which no other thread has.
        unsafe { fill(self.base + at..self.base + at + 1, value) };
    }

    /// What is found where a range is handed out again or unpinned.
    fn check(&self, at: usize, bytes: usize) -> Result<(), Defect> {
        // SAFETY: within the memory, which nobody else has.
        unsafe { self.guard.check_freed(self.base + at, bytes) }
    }
}

fn text(checked: Result<(), Defect>) -> String {
    let Defect { text, heading } = checked.unwrap_err();
    assert!(text.contains(heading), "the heading is quoted from the line: {text}");
    text
}

#[test]
fn a_program_that_keeps_to_its_blocks_is_left_alone() {
    let watched = Watched::new(1024);
    for size in [0, 1, 200, 300] {
        let bytes = watched.hand_out(100, size);
        (0..size).for_each(|at| watched.write(100 + at, 7));
        assert_eq!(watched.free(100, bytes), Ok(()));
    }
    // SAFETY: all memory is there.
    unsafe { watched.guard.check_all() };
    assert_eq!(watched.check(0, 1024), Ok(()));
    assert_eq!(watched.guard.with_tail(usize::MAX - 63), 0);
}

#[test]
fn each_byte_of_the_tail_is_watched() {
    for at in [0, TAIL - 1] {
        let watched = Watched::new(512);
        let bytes = watched.hand_out(0, 100);
        watched.write(100 + at, 7);
        let said = text(watched.free(0, bytes));
        assert!(said.contains(&format!("the first {at} bytes behind its end")), "{said}");
    }
}

#[test]
fn a_block_that_streams_still_use_is_freed_once_as_well() {
    let watched = Watched::new(512);
    let bytes = watched.hand_out(0, 100);
    let free = || {
        // SAFETY: the memory is there.
        let checked = unsafe { watched.guard.check_end(watched.base, bytes) };
        (this_thread(), checked)
    };
    let first = std::thread::scope(|scope| scope.spawn(free).join().unwrap());
    assert_eq!(first.1, Ok(()));
    let (second, checked) = free();
    let ending = format!("by thread {second}; the first time by thread {}", first.0);
    assert!(text(checked).ends_with(&ending));
    assert!(text(watched.free(300, 64)).contains("(bytes: 0)"), "never handed out");
}

#[test]
fn a_write_after_the_free_is_found_where_any_part_is_used_again() {
    // Two blocks, and a write to the second one; a request for each range, and whether it finds that.
    for (range, finds) in
        [(0..200, false), (0..260, true), (250..251, true), (251..400, false), (200..400, true), (0..1024, true)]
    {
        let watched = Watched::new(1024);
        for (at, size) in [(0, 136), (200, 136)] {
            let bytes = watched.hand_out(at, size);
            assert_eq!(watched.free(at, bytes), Ok(()));
        }
        watched.write(250, 7);
        let checked = watched.check(range.start, range.len());
        assert_eq!(checked.is_err(), finds, "{range:?}");
        if finds {
            let said = text(checked);
            let block = watched.base + 200;
            let expected = format!("1 bytes of a block at {block:#x} (bytes: 136) were written after");
            assert!(said.starts_with(&expected) && said.contains("the first at offset 50;"), "{said}");
        } else {
            // It is still to be found, in what is left.
            assert!(watched.check(0, 1024).is_err(), "{range:?}");
        }
        assert_eq!(watched.check(0, 1024), Ok(()), "a defect is said once");
    }
}

#[test]
fn the_middle_of_a_freed_block_leaves_both_its_ends_watched() {
    for at in [10, 150, 290] {
        let watched = Watched::new(512);
        let bytes = watched.hand_out(0, 300);
        assert_eq!(watched.free(0, bytes), Ok(()));
        assert_eq!(watched.check(100, 100), Ok(()));
        watched.write(at, 7);
        // The middle is somebody's.
        let is_watched = !(100..200).contains(&at);
        assert_eq!(watched.check(0, 512).is_err(), is_watched, "{at}");
    }
}
