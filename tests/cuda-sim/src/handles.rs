//! Opaque handles: what C holds as a pointer is a number that only this table can read.
//!
//! A handle is never dereferenced, so a stale or invented one is answered with
//! `cudaErrorInvalidResourceHandle` instead of a crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Status, lock};

/// Live objects of one kind, by handle.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    live: Mutex<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    next: usize,
    by_handle: BTreeMap<usize, Arc<T>>,
}

impl<T> Handles<T> {
    /// An empty table; `kind` keeps the handles of different tables apart.
    pub(crate) const fn new(kind: u8) -> Self {
        // Not a canonical address, so that dereferencing one by mistake cannot go unnoticed.
        let next = 0x5eed_0000_0000_0000 | ((kind as usize) << 40) | 16;
        Self { live: Mutex::new(Entries { next, by_handle: BTreeMap::new() }) }
    }

    /// Add what `make` builds around its own handle.
    pub(crate) fn insert_with(&self, make: impl FnOnce(usize) -> T) -> Arc<T> {
        let mut live = lock(&self.live);
        let handle = live.next;
        live.next += 16;
        let object = Arc::new(make(handle));
        live.by_handle.insert(handle, Arc::clone(&object));
        object
    }

    /// Add an object and get its handle.
    pub(crate) fn insert(&self, object: T) -> usize {
        let mut handle = 0;
        self.insert_with(|own| {
            handle = own;
            object
        });
        handle
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: usize) -> Status<Arc<T>> {
        lock(&self.live).by_handle.get(&handle).cloned().ok_or(Error::cudaErrorInvalidResourceHandle)
    }

    /// Take the object of a handle out; others may still hold it.
    pub(crate) fn remove(&self, handle: usize) -> Status<Arc<T>> {
        lock(&self.live).by_handle.remove(&handle).ok_or(Error::cudaErrorInvalidResourceHandle)
    }

    /// All live objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.live).by_handle.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_is_refused() {
        let handles = Handles::new(1);
        let handle = handles.insert("object");
        assert_eq!(*handles.get(handle).unwrap(), "object");
        handles.remove(handle).unwrap();
        assert_eq!(handles.get(handle).err(), Some(Error::cudaErrorInvalidResourceHandle));
        assert_eq!(handles.get(0).err(), Some(Error::cudaErrorInvalidResourceHandle));
        assert!(handles.all().is_empty());
    }
}
