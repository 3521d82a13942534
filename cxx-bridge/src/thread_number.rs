//! A number for each thread, which no other has as long as it lives.
//!
//! A thread that ends gives its number back, and the next one that asks takes the smallest. So numbers stay small in a
//! program that makes threads again and again, as a data loader does in each epoch; and requests of threads that never live
//! at the same time, with the same number, are one sequence to whoever records or plans them. Numbers have no lock, since a
//! child may be made at any time.
#![cfg_attr(not(feature = "torch"), allow(dead_code))]

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads have numbers at once, and what all others get: those beyond, and ends of threads that have given
/// theirs back.
pub(crate) const NOBODYS: u32 = pinbuddy_slots::MOST_THREADS as u32;
const WORDS: usize = pinbuddy_slots::MOST_THREADS / 64;

static NUMBERS: Numbers = Numbers([const { AtomicU64::new(0) }; WORDS]);

/// A bit for each number that is taken.
struct Numbers([AtomicU64; WORDS]);

thread_local! {
    /// One more than the number; 0: none yet.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    static OWNER: Owner = const { Owner { at_end: RefCell::new(Vec::new()) } };
}

/// Gives the number back when the thread ends.
struct Owner {
    at_end: RefCell<Vec<fn(u32)>>,
}

/// This thread's.
#[inline]
pub(crate) fn own() -> u32 {
    match NUMBER.get() {
        0 => take(),
        more => more - 1,
    }
}

/// Has `act` called with the thread's number when the thread ends, before another thread may have it. Does nothing for a
/// thread that has no number of its own.
pub(crate) fn at_end(act: fn(u32)) {
    if own() < NOBODYS {
        let _ = OWNER.try_with(|owner| owner.at_end.borrow_mut().push(act));
    }
}

#[cold]
fn take() -> u32 {
    // Its destructor has not run: it leaves a number that is not 0.
    let number = OWNER.try_with(|_| NUMBERS.take()).unwrap_or(NOBODYS);
    NUMBER.set(number + 1);
    number
}

impl Drop for Owner {
    fn drop(&mut self) {
        let own = own();
        for act in self.at_end.take() {
            act(own);
        }
        // Other destructors of this thread may ask again.
        NUMBER.set(NOBODYS + 1);
        NUMBERS.give_back(own);
    }
}

impl Numbers {
    /// The smallest number that no thread has; [`NOBODYS`] if there is none.
    fn take(&self) -> u32 {
        for (word, all) in (0..).zip(&self.0) {
            let mut taken = all.load(Ordering::Relaxed);
            while taken != u64::MAX {
                let free = taken.trailing_ones();
                // Acquires what its last owner has left.
                let more = taken | 1 << free;
                match all.compare_exchange_weak(taken, more, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return word * 64 + free,
                    Err(now) => taken = now,
                }
            }
        }
        NOBODYS
    }

    fn give_back(&self, number: u32) {
        if let Some(word) = self.0.get(number as usize / 64) {
            word.fetch_and(!(1 << (number % 64)), Ordering::Release);
        }
    }
}

/// Held by tests that compare numbers of threads with each other.
#[cfg(test)]
pub(crate) static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    #[test]
    fn a_number_is_the_smallest_that_nobody_has() {
        let numbers = Numbers([const { AtomicU64::new(0) }; WORDS]);
        let first: Vec<u32> = (0..130).map(|_| numbers.take()).collect();
        assert_eq!(first, (0..130).collect::<Vec<_>>());
        for given in [129, 64, 3] {
            numbers.give_back(given);
        }
        assert_eq!([(); 4].map(|()| numbers.take()), [3, 64, 129, 130]);
        // Nobody's, which does nothing.
        numbers.give_back(NOBODYS);
        for word in &numbers.0 {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(numbers.take(), NOBODYS);
        numbers.give_back(NOBODYS - 1);
        assert_eq!(numbers.take(), NOBODYS - 1);
    }

    #[test]
    fn threads_at_once_have_numbers_of_their_own_until_their_ends() {
        static ENDED: AtomicU32 = AtomicU32::new(0);
        const EACH: u32 = 4;
        let _alone = ALONE.lock();
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            ENDED.store(0, Ordering::Relaxed);
            let all_have_one = Barrier::new(EACH as usize);
            let number = || {
                let number = own();
                at_end(|number| {
                    // It is this thread's still, and taken.
                    assert_eq!(number, own());
                    let word = NUMBERS.0[number as usize / 64].load(Ordering::Relaxed);
                    let bit = u32::from(word >> (number % 64) & 1 == 1);
                    ENDED.fetch_add(bit, Ordering::Relaxed);
                });
                all_have_one.wait();
                assert_eq!(own(), number);
                number
            };
            let numbers: BTreeSet<u32> = thread::scope(|scope| {
                let all: Vec<_> = (0..EACH).map(|_| scope.spawn(number)).collect();
                // A join waits for a thread's destructors, which a scope's end does not.
                all.into_iter().map(|it| it.join().unwrap()).collect()
            });
            assert_eq!(numbers.len(), EACH as usize);
            assert_eq!(ENDED.load(Ordering::Relaxed), EACH);
        }
    }
}
