//! The C entry points: each unpacks its arguments, calls safe code and answers a CUDA error.
//!
//! Signatures are those of CUDA 12 and 13; where a name means different things in the two, the
//! loaded libcudart decides (`loaded`). Handles and addresses come in as numbers.

/// Define entry points of the runtime, each exported by its name. Faults, hazards and the log know it by that name, too.
macro_rules! entries {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) -> $crate::error::Error {
            $crate::error::answer(stringify!($name), || $body)
        }
    )*};
}

mod blas;
mod capture;
mod control;
mod device;
mod driver;
mod errors;
mod event;
mod graph;
mod kernel;
mod loaded;
mod memory;
mod profiler;
mod stream;
mod symbol;
mod transfer;
mod unsupported;
mod virtual_memory;

use crate::error::{Error, Status};

/// A place that the caller gave for an answer. Only C makes one, as a pointer argument.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Store the answer; a null place is an invalid value.
    pub(crate) fn put(self, value: T) -> Status {
        if self.0.is_null() {
            return Err(Error::cudaErrorInvalidValue);
        }
        self.put_if_wanted(value);
        Ok(())
    }

    /// Store the answer unless the place is null.
    pub(crate) fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller of a CUDA function gives valid places for its answers, and this
            // one is not null.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Store several answers from here on.
    pub(crate) fn put_all(self, values: impl Iterator<Item = T>) {
        for (index, value) in values.enumerate() {
            Self(self.0.wrapping_add(index)).put_if_wanted(value);
        }
    }

    /// Whether the place is null.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// Something of the caller's to read. Only C makes one, as a pointer argument.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Read it; a null pointer is an invalid value.
    pub(crate) fn get(self) -> Status<T> {
        self.item(0)
    }

    /// Read an element of an array.
    pub(crate) fn item(self, index: usize) -> Status<T> {
        if self.0.is_null() {
            return Err(Error::cudaErrorInvalidValue);
        }
        // SAFETY: the caller of a CUDA function gives valid pointers to what it asks to be read.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Read an array.
    pub(crate) fn items(self, count: usize) -> Status<Vec<T>> {
        (0..count).map(|index| self.item(index)).collect()
    }
}
