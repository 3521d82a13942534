//! CUDA's error semantics: what a call answers, and the last error of each thread.
//!
//! Every entry point runs inside [`answer`]: an error is returned and stored as the thread's last
//! error (`cudaErrorNotReady` too, as CUDA does), success leaves the stored one alone, and a panic
//! becomes `cudaErrorUnknown` instead of crossing into C. A call that a test wants to fail (`fault`) is not made.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use crate::bindings::cudaError as Error;
use crate::{fault, hazard, note};

/// What the safe code answers: a value, or the CUDA error to give the caller.
pub(crate) type Status<T = ()> = Result<T, Error>;

thread_local! {
    static LAST: Cell<Error> = const { Cell::new(Error::cudaSuccess) };
}

/// Set in a child that was forked after CUDA was in use, where CUDA cannot be used again.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Run the body of an entry point and turn what it says into a CUDA error code.
pub(crate) fn answer(entry: &'static str, body: impl FnOnce() -> Status) -> Error {
    match guard(entry, body) {
        Error::cudaSuccess => Error::cudaSuccess,
        error => store(error),
    }
}

/// The same for another library's entry point, which does not touch the runtime's last error.
pub(crate) fn guard(entry: &'static str, body: impl FnOnce() -> Status) -> Error {
    if FORKED.load(Ordering::Relaxed) {
        return Error::cudaErrorInitializationError;
    }
    if let Some(error) = fault::of_call(entry) {
        return error;
    }
    hazard::enter(entry);
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return Error::cudaSuccess,
        Ok(Err(error)) => error,
        Err(_) => {
            note::always(&format!("{entry} failed inside the simulator; that is a bug in it"));
            Error::cudaErrorUnknown
        }
    };
    note::log(|| format!("{entry} -> error {}", error.0));
    hazard::refused(entry, error);
    error
}

/// The thread's last error, which stays.
pub(crate) fn peek() -> Error {
    fault::sticky::error().unwrap_or_else(|| LAST.get())
}

/// The thread's last error, which is then forgotten, unless it is one that stays.
pub(crate) fn take() -> Error {
    let last = LAST.replace(Error::cudaSuccess);
    fault::sticky::error().unwrap_or(last)
}

/// Lock, whatever a panicking thread left: the simulator's state has no half-made steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a forked child of this process gets `cudaErrorInitializationError`.
pub(crate) fn refuse_after_fork() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to an atomic, which is allowed in a child of fork.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    }
}

fn store(error: Error) -> Error {
    LAST.set(error);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_also_of_a_panic_is_the_threads_own_and_stays_until_it_is_taken() {
        answer("test", || Err(Error::cudaErrorNotReady));
        answer("test", || Ok(()));
        std::thread::spawn(|| assert_eq!(peek(), Error::cudaSuccess)).join().unwrap();
        assert_eq!(peek(), Error::cudaErrorNotReady);
        assert_eq!(take(), Error::cudaErrorNotReady);
        assert_eq!(take(), Error::cudaSuccess);
        let error = answer("test", || panic!("expected by this test"));
        assert_eq!([error, take()], [Error::cudaErrorUnknown; 2]);
    }
}
