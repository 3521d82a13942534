//! A little memory in the library's image, for lists and messages where the system has none: Rust ends the process there.
//!
//! But a request that finds no memory is to get PyTorch's error, and `empty_cache` is to give memory back: both take a few KiB for a
//! moment. Knows not what for. Invariant: it takes no lock, so that a child of a fork finds none taken.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unit. A word has a bit for each of so many, which are the most for one list: as the text of /proc/locks takes.
const PIECE: usize = 1 << 10;
const EACH: usize = u64::BITS as usize;
/// 1 MiB in all. No page is touched before it is needed.
const WORDS: usize = 16;
const BYTES: usize = WORDS * EACH * PIECE;

#[global_allocator]
static SPARE: Spare = Spare { pieces: UnsafeCell::new(Pieces([0; BYTES])), used: [const { AtomicU64::new(0) }; WORDS] };

#[derive(Debug)]
#[repr(C, align(1024))]
struct Pieces([u8; BYTES]);

/// See the module's documentation.
#[derive(Debug)]
struct Spare {
    pieces: UnsafeCell<Pieces>,
    used: [AtomicU64; WORDS],
}

// SAFETY: who has set a piece's bit has the piece, until it clears the bit.
unsafe impl Sync for Spare {}

impl Spare {
    fn offset(&self, at: *const u8) -> usize {
        (at as usize).wrapping_sub(self.pieces.get() as usize)
    }

    fn has(&self, at: *const u8) -> bool {
        self.offset(at) < BYTES
    }

    /// The bits of so many bytes, if a word has as many.
    fn run(layout: Layout) -> Option<u64> {
        let count = layout.size().div_ceil(PIECE).max(1);
        (count <= EACH && layout.align() <= PIECE).then(|| u64::MAX >> (EACH - count))
    }

    /// Null where too few pieces are left.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let Some(run) = Self::run(layout) else {
            return null_mut();
        };
        for (word, used) in self.used.iter().enumerate() {
            for shift in 0..=run.leading_zeros() {
                let bits = run << shift;
                let free = |it| (it & bits == 0).then_some(it | bits);
                let taken = used.fetch_update(Ordering::Acquire, Ordering::Relaxed, free);
                if taken.is_ok() {
                    let piece = word * EACH + shift as usize;
                    return self.pieces.get().cast::<u8>().wrapping_add(piece * PIECE);
                }
            }
        }
        null_mut()
    }

    #[cold]
    fn put(&self, at: *const u8, layout: Layout) {
        let piece = self.offset(at) / PIECE;
        let bits = Self::run(layout).unwrap_or_default() << (piece % EACH);
        self.used[piece / EACH].fetch_and(!bits, Ordering::Release);
    }
}

// SAFETY: memory is the system's or pieces of this, and goes back to whose it was.
unsafe impl GlobalAlloc for Spare {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let made = unsafe { System.alloc(layout) };
        if made.is_null() {
            return self.take(layout);
        }
        made
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let made = unsafe { System.alloc_zeroed(layout) };
        if !made.is_null() {
            return made;
        }
        let made = self.take(layout);
        if !made.is_null() {
            // SAFETY: so much was taken.
            unsafe { made.write_bytes(0, layout.size()) };
        }
        made
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if self.has(at) {
            self.put(at, layout);
        } else {
            // SAFETY: as the caller says.
            unsafe { System.dealloc(at, layout) };
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !self.has(at) {
            // SAFETY: as the caller says.
            let made = unsafe { System.realloc(at, layout, bytes) };
            if !made.is_null() {
                return made;
            }
        }
        // SAFETY: as the caller says; two places, and the old one goes once it is copied.
        unsafe {
            let made = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !made.is_null() {
                made.copy_from_nonoverlapping(at, layout.size().min(bytes));
                self.dealloc(at, layout);
            }
            made
        }
    }
}

#[cfg(test)]
mod tests;
