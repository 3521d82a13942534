//! This process's pins in place: PyTorch's storages, CUDA, and the budget that the engine has, too.

use std::panic::catch_unwind;
use std::sync::LazyLock;

use pinbuddy_core::Region;

use super::{Asked, InPlace, World};
use crate::cuda::first_line;
use crate::ffi::{self, Memory};
use crate::process::handle;

/// CUDA, through the C++ side, and the handle's budget.
#[derive(Debug)]
pub(crate) struct Here;

impl World for Here {
    fn begins(&self) -> Result<(), String> {
        if !handle().is_on() {
            return Err("found that the engine is off, expected that it serves: python -m pinbuddy doctor says why".to_owned());
        }
        if ffi::device_count() == 0 {
            return Err("found no GPU, expected one that reads pinned memory".to_owned());
        }
        handle().pins_in_place();
        said(ffi::initialise(ffi::current_device()))
    }

    fn memory(&self, storage: usize, shared: bool) -> Result<Region, String> {
        let Memory { address, bytes } = said(ffi::memory_of_storage(storage, shared))?;
        Ok(Region {
            base: address,
            bytes,
        })
    }

    fn pin_of(&self, storage: usize) -> Result<u64, String> {
        said(ffi::pin_of_storage(storage))
    }

    fn watch(&self, storage: usize, pin: u64, memory: Region, pages: Region) -> Result<(), String> {
        said(ffi::watch_storage(storage, pin, memory.base, &of(pages)))
    }

    fn take(&self, counted: usize, missing: usize) -> Result<(), String> {
        handle().take_in_place(counted, missing)
    }

    fn put(&self, counted: usize) {
        handle().put_in_place(counted);
    }

    fn threads(&self) -> usize {
        handle().fill_threads()
    }

    fn register(&self, pages: Region, read_only: bool) -> Result<(), String> {
        said(ffi::register_in_place(&of(pages), read_only))
    }

    fn unregister(&self, pages: Region) -> Result<(), String> {
        said(ffi::unregister_in_place(&of(pages)))
    }

    fn is_done(&self, pages: Region) -> Result<bool, String> {
        said(ffi::users_are_done(pages.base))
    }

    fn forget(&self, pages: Region) {
        ffi::forget_users(pages.base);
    }
}

fn of(pages: Region) -> Memory {
    Memory {
        address: pages.base,
        bytes: pages.bytes,
    }
}

fn said<T>(outcome: Result<T, cxx::Exception>) -> Result<T, String> {
    outcome.map_err(|error| first_line(error.what()))
}

/// This process's pins in place. Made when the library is loaded, before there can be a fork.
pub(crate) fn in_place() -> &'static InPlace<Here> {
    static PINS: LazyLock<InPlace<Here>> = LazyLock::new(|| InPlace::new(Here));
    &PINS
}

/// Pins the memory of the storage at this address. Writes the pin's number.
pub(crate) fn pin_storage(storage: usize, asked: Asked, pin: &mut u64) -> Result<(), String> {
    *pin = in_place().pin(storage, asked)?;
    Ok(())
}

/// Takes one `pin_storage` back: that of the pin with this number, if it has not ended, or if it is 0 that of the storage.
pub(crate) fn unpin_storage(storage: usize, pin: u64) -> Result<(), String> {
    match pin {
        0 => in_place().unpin_storage(storage),
        pin => in_place().unpin(pin).map(drop),
    }
}

/// The memory of a pinned storage is about to be given back: whether it may be.
pub(crate) fn engine_storage_dies(pin: u64) -> bool {
    // A panic must not reach C++, which is in a destructor.
    catch_unwind(|| in_place().dies(pin)).unwrap_or(false)
}
