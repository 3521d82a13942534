//! A world of storages, a driver, streams and a budget that are mere lists.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::super::*;
use super::BUDGET;

#[derive(Debug)]
pub(super) struct Fake {
    /// The memory of each storage, and its pin.
    pub(super) storages: Mutex<HashMap<usize, (Region, u64)>>,
    /// By start: length, and whether it is read-only.
    pub(super) registered: Mutex<BTreeMap<usize, (usize, bool)>>,
    pub(super) budget: Mutex<usize>,
    pub(super) missing: AtomicUsize,
    pub(super) registers: AtomicBool,
    pub(super) unregisters: AtomicBool,
    /// What streams say; `None`: an error.
    pub(super) done: Mutex<Option<bool>>,
    pub(super) asked: AtomicUsize,
    /// Registering takes until it is true.
    pub(super) may_end: AtomicBool,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            storages: Mutex::default(),
            registered: Mutex::default(),
            budget: Mutex::new(BUDGET),
            missing: AtomicUsize::new(0),
            registers: AtomicBool::new(true),
            unregisters: AtomicBool::new(true),
            done: Mutex::new(Some(true)),
            asked: AtomicUsize::new(0),
            may_end: AtomicBool::new(true),
        }
    }
}

fn if_so<T>(so: &AtomicBool, then: T) -> Result<T, String> {
    let so = so.load(Ordering::Relaxed);
    so.then_some(then).ok_or("CUDA error: no".to_owned())
}

impl World for Fake {
    fn begins(&self) -> Result<(), String> {
        Ok(())
    }

    fn memory(&self, storage: usize, _shared: bool) -> Result<Region, String> {
        Ok(self.storages.lock().unwrap()[&storage].0)
    }

    fn pin_of(&self, storage: usize) -> Result<u64, String> {
        lock::assert_none_held("asking a storage");
        Ok(self.storages.lock().unwrap()[&storage].1)
    }

    fn watch(&self, storage: usize, pin: u64, _: Region, _: Region) -> Result<(), String> {
        self.storages.lock().unwrap().get_mut(&storage).unwrap().1 = pin;
        Ok(())
    }

    fn take(&self, counted: usize, missing: usize) -> Result<(), String> {
        let mut budget = self.budget.lock().unwrap();
        *budget = budget.checked_sub(counted).ok_or("beyond the budget")?;
        self.missing.store(missing, Ordering::Relaxed);
        Ok(())
    }

    fn put(&self, counted: usize) {
        *self.budget.lock().unwrap() += counted;
    }

    fn threads(&self) -> usize {
        2
    }

    fn register(&self, pages: Region, read_only: bool) -> Result<(), String> {
        lock::assert_none_held("registering");
        while !self.may_end.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        if_so(&self.registers, ())?;
        let mut registered = self.registered.lock().unwrap();
        let before = registered.range(..pages.base + pages.bytes).next_back();
        assert!(before.is_none_or(|(start, (length, _))| start + length <= pages.base));
        registered.insert(pages.base, (pages.bytes, read_only));
        Ok(())
    }

    fn unregister(&self, pages: Region) -> Result<(), String> {
        lock::assert_none_held("unregistering");
        if_so(&self.unregisters, ())?;
        assert_eq!(*self.done.lock().unwrap(), Some(true), "streams are done");
        let gone = self.registered.lock().unwrap().remove(&pages.base);
        let as_registered = gone.map(|(bytes, _)| bytes);
        assert_eq!(as_registered, Some(pages.bytes), "once, as a whole");
        Ok(())
    }

    fn is_done(&self, _: Region) -> Result<bool, String> {
        lock::assert_none_held("asking streams");
        self.asked.fetch_add(1, Ordering::Relaxed);
        let done = *self.done.lock().unwrap();
        done.ok_or("CUDA error: lost".to_owned())
    }

    fn forget(&self, _: Region) {}
}
