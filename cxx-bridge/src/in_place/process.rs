//! This process's pins in place: PyTorch's storages, CUDA, and the budget that the engine has, too.

use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{LazyLock, OnceLock};

use pinbuddy_core::Region;

use super::{InPlace, World};
use crate::config::MIB;
use crate::cuda::first_line;
use crate::ffi;
use crate::lock::Lock;
use crate::process::handle;

/// CUDA, through the C++ side, and the handle's budget.
#[derive(Debug)]
pub(crate) struct Here;

impl World for Here {
    fn take(&self, bytes: usize) -> Result<(), String> {
        handle().take_in_place(bytes)
    }

    fn put(&self, bytes: usize) {
        handle().put_in_place(bytes);
    }

    fn threads(&self) -> usize {
        handle().fill_threads()
    }

    fn register(&self, pages: Region, read_only: bool) -> Result<(), String> {
        ffi::register_in_place(pages.base, pages.bytes, read_only)
            .map_err(|error| first_line(error.what()))
    }

    fn unregister(&self, pages: Region) -> Result<(), String> {
        ffi::unregister_in_place(pages.base).map_err(|error| first_line(error.what()))
    }

    fn crosses(&self, border: usize) -> Result<(), String> {
        ffi::copy_across(border).map_err(|error| first_line(error.what()))
    }

    fn wait(&self, pins: &[u64]) {
        ffi::wait_for_users(pins);
    }
}

/// How often each pin was asked for, and whether it is read-only.
static ASKED: LazyLock<Lock<HashMap<u64, (usize, bool)>>> = LazyLock::new(Lock::default);

/// This process's pins in place.
pub(crate) fn in_place() -> &'static InPlace<Here> {
    static PINS: OnceLock<InPlace<Here>> = OnceLock::new();
    PINS.get_or_init(|| InPlace::new(Here, handle().config().memory.register_chunk_mb.value * MIB))
}

/// Pins the memory of the storage at this address, once more if it is pinned. `shared`: other processes may have its memory.
pub(crate) fn pin_storage(storage: usize, read_only: bool, shared: bool) -> Result<(), String> {
    if !handle().is_on() {
        return Err("found that the engine is off, expected that it serves: python -m pinbuddy doctor says why".to_owned());
    }
    if ffi::device_count() == 0 {
        return Err("found no GPU, expected one that reads pinned memory".to_owned());
    }
    let words = |error: cxx::Exception| first_line(error.what());
    let memory = ffi::memory_of_storage(storage, shared).map_err(words)?;
    let pin = ffi::pin_of_storage(storage);
    if let Some(asked) = ASKED.lock().get_mut(&pin) {
        if asked.1 && !read_only {
            return Err("found it pinned read-only, expected a pin to write to: unpin_ it first, or pass read_only=True".to_owned());
        }
        asked.0 += 1;
        return Ok(());
    }
    ffi::initialise(ffi::current_device()).map_err(words)?;
    let memory = Region {
        base: memory.address,
        bytes: memory.bytes,
    };
    let pin = in_place().pin(memory, read_only)?;
    if let Err(error) = ffi::watch_storage(storage, pin, memory.base, memory.bytes) {
        end(pin);
        return Err(words(error));
    }
    ASKED.lock().insert(pin, (1, read_only));
    Ok(())
}

/// Takes one `pin_storage` back, and unpins with the last.
pub(crate) fn unpin_storage(storage: usize) -> Result<(), String> {
    if in_place().is_in_child() {
        return Err("found a child of a fork, expected the process that pinned it: the pins are its parent's".to_owned());
    }
    let pin = ffi::pin_of_storage(storage);
    {
        let mut asked = ASKED.lock();
        let Some((times, _)) = asked.get_mut(&pin) else {
            return Err(
                "found no pin of its storage, expected one by pin_: each pin_ is taken back once"
                    .to_owned(),
            );
        };
        *times -= 1;
        if *times > 0 {
            return Ok(());
        }
        asked.remove(&pin);
    }
    ffi::unwatch_storage(storage);
    end(pin);
    Ok(())
}

/// The memory of a pinned storage is about to be given back.
pub(crate) fn engine_storage_dies(pin: u64) {
    // A panic must not reach C++, which is in a destructor.
    let _ = catch_unwind(|| {
        ASKED.lock().remove(&pin);
        end(pin);
    });
}

fn end(pin: u64) {
    in_place().unpin(pin);
    ffi::forget_users(pin);
}
