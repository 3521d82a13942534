//! Pins in place of a made-up process: its memory is real, its storages, driver and budget are numbers.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, mpsc};
use std::thread;

use super::*;
use crate::backing::pages::sizes;
use crate::lock::assert_none_held;

const MIB: usize = 1 << 20;
const BUDGET: usize = 64 * MIB;

/// A storage is its index plus 1.
#[derive(Debug, Default)]
struct Numbers {
    storages: Mutex<Vec<(Range<usize>, u64)>>,
    registered: Mutex<Vec<Range<usize>>>,
    taken: AtomicUsize,
    /// Calls of the driver, and owners that were let go.
    calls: Mutex<Vec<String>>,
    /// What the driver says of the next call.
    refusal: Mutex<Option<&'static str>>,
    captures: AtomicBool,
}

impl Numbers {
    fn call(&self, what: &str) -> Result<(), String> {
        assert_none_held(what);
        self.calls.lock().unwrap().push(what.to_owned());
        let refusal = self.refusal.lock().unwrap().take();
        refusal.map_or(Ok(()), |why| Err(why.to_owned()))
    }
}

impl World for Numbers {
    fn begin(&self) -> Result<(), String> {
        Ok(())
    }

    fn memory_of(&self, storage: usize, _: bool, pin: &mut u64) -> Result<Range<usize>, String> {
        let (memory, last) = self.storages.lock().unwrap()[storage - 1].clone();
        *pin = last;
        Ok(memory)
    }

    fn hold(&self, storage: usize, pin: u64, _: usize) -> Result<(), String> {
        self.storages.lock().unwrap()[storage - 1].1 = pin;
        Ok(())
    }

    fn let_go(&self, owner: usize) {
        let _ = self.call(&format!("let {owner} go"));
    }

    fn finish_devices(&self) -> Result<bool, String> {
        let over = !self.captures.load(Ordering::Relaxed);
        self.call("finish").map(|()| over)
    }

    fn register(&self, pages: &Range<usize>, _: bool) -> Result<(), String> {
        self.call("register")?;
        self.registered.lock().unwrap().push(pages.clone());
        Ok(())
    }

    fn unregister(&self, pages: &Range<usize>) -> Result<(), String> {
        self.call("unregister")?;
        self.registered.lock().unwrap().retain(|it| it != pages);
        Ok(())
    }

    fn take(&self, bytes: usize) -> Result<(), String> {
        let most = BUDGET - self.taken.load(Ordering::Relaxed);
        let fits = (bytes <= most).then_some(()).ok_or("over the budget");
        fits?;
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn put(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn threads(&self) -> usize {
        2
    }
}

type Tested = &'static InPlace<Numbers>;

/// Pins of a process with storages of these parts of 16 MiB, in bytes from the first page's start.
fn process(parts: &[(usize, usize)]) -> Tested {
    let memory = Box::leak(vec![1_u8; 17 * MIB].into_boxed_slice());
    let start = memory.as_ptr().addr().next_multiple_of(sizes().page);
    let storage = |&(from, to): &(usize, usize)| (start + from..start + to, 0);
    let pins: Tested = Box::leak(Box::default());
    *pins.world.storages.lock().unwrap() = parts.iter().map(storage).collect();
    pins
}

fn pin(pins: Tested, storage: usize, asked: usize) -> Result<u64, String> {
    let number = pins.begin(storage, asked)?;
    while pins.step(number)? {}
    Ok(number)
}

/// Bytes registered, counted and taken from the budget, and the driver's calls since the last look.
fn held(pins: Tested) -> (usize, u64, usize, String) {
    let registered = pins.world.registered.lock().unwrap();
    let bytes = registered.iter().map(Range::len).sum();
    let calls = pins.world.calls.lock().unwrap().drain(..).collect::<Vec<_>>();
    let counted = pins.stats(|_| {}).pinned_bytes.current;
    let taken = pins.world.taken.load(Ordering::Relaxed);
    (bytes, counted, taken, calls.join(", "))
}

fn nothing(calls: &str) -> (usize, u64, usize, String) {
    (0, 0, 0, calls.to_owned())
}

fn all(bytes: usize, calls: &str) -> (usize, u64, usize, String) {
    (bytes, bytes as u64, bytes, calls.to_owned())
}

#[test]
fn pages_are_pinned_once_however_many_storages_have_them() {
    let pins = process(&[(0, 4 * MIB), (3 * MIB, 5 * MIB), (4 * MIB, 5 * MIB)]);
    let first = pins.begin(1, 4).unwrap();
    assert_eq!(pins.begin(2, 4).unwrap_err(), BUSY);
    while pins.step(first).unwrap() {}
    assert_eq!(pins.begin(2, 4).unwrap_err(), ALREADY);
    assert_eq!(held(pins), all(4 * MIB, "register"));
    // The neighbour's begin where it ends.
    pin(pins, 3, 4).unwrap();
    pins.unpin(1, 0).unwrap();
    assert_eq!(pin(pins, 2, 4).unwrap_err(), ALREADY, "the third has a part");
    assert!(pins.dies(first, 9));
    assert_eq!(held(pins).0, MIB);
}

#[test]
fn a_storage_that_dies_is_unpinned_once_all_work_is_over() {
    let pins = process(&[(0, MIB), (MIB, 2 * MIB), (2 * MIB, 3 * MIB)]);
    let [first, second, third] = [1, 2, 3].map(|it| pin(pins, it, 4).unwrap());
    let _ = held(pins);
    assert!(pins.dies(first, 7));
    assert_eq!(held(pins), all(2 * MIB, "finish, unregister"));
    *pins.world.refusal.lock().unwrap() = Some("a device is lost");
    assert!(!pins.dies(second, 8));
    pins.world.captures.store(true, Ordering::Relaxed);
    assert!(!pins.dies(third, 9));
    assert_eq!(held(pins), all(2 * MIB, "finish, finish"));
    pins.world.captures.store(false, Ordering::Relaxed);
    pins.end_what_waits();
    let calls = "finish, unregister, let 8 go, finish, unregister, let 9 go";
    assert_eq!(held(pins), nothing(calls));
    pins.end_what_waits();
    assert_eq!(held(pins), nothing(""));
}

#[test]
fn what_is_refused_is_given_back_to_the_budget_of_which_each_process_takes_its_part() {
    let pins = process(&[(0, 4 * MIB)]);
    *pins.world.refusal.lock().unwrap() = Some("no more");
    assert_eq!(pin(pins, 1, 4).unwrap_err(), "no more");
    assert_eq!(held(pins), nothing("register"));
    pin(pins, 1, 4 * 3).unwrap();
    assert_eq!(held(pins).2, (4 * MIB).div_ceil(3), "one of three processes");
}

#[test]
fn nothing_is_given_back_while_a_thread_registers_it_or_once_the_process_ends() {
    let pins = process(&[(0, MIB)]);
    let number = pin(pins, 1, 4).unwrap();
    pins.state.lock().pins.get_mut(&number).unwrap().in_hand = true;
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || answer.send(pins.dies(number, 9)).unwrap());
    assert!(answered.recv_timeout(3 * LOOK_AGAIN).is_err());
    pins.state.lock().pins.get_mut(&number).unwrap().in_hand = false;
    assert!(answered.recv_timeout(LAST).unwrap());
    assert_eq!(held(pins), nothing("register, finish, unregister"));
    let last = pin(pins, 1, 4).unwrap();
    pins.close();
    assert!(!pins.dies(last, 9));
    assert!(pins.unpin(1, 0).unwrap_err().contains("the process ends"));
    assert_eq!(held(pins), all(MIB, "register"));
}

#[test]
fn a_child_of_a_fork_takes_no_lock_and_calls_no_driver() {
    let pins = process(&[(0, MIB)]);
    let number = pin(pins, 1, 4).unwrap();
    pins.process.store(id() + 1, Ordering::Relaxed);
    // The parent's thread had it when it forked.
    let _lock = pins.state.lock();
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        let refused = [pins.unpin(1, 0), pins.begin(1, 4).map(drop)];
        pins.end_what_waits();
        pins.close();
        let counted = pins.stats(|_| {}).pinned_bytes.current;
        let may_go = pins.dies(number, 9);
        answer.send((refused, counted, may_go)).unwrap();
    });
    let (refused, counted, may_go) = answered.recv_timeout(LAST).expect("it waits for a lock");
    assert!(refused.iter().all(|it| it.as_ref().is_err_and(|why| why.contains("child"))));
    assert_eq!((counted, may_go), (0, true));
    assert_eq!(*pins.world.calls.lock().unwrap(), ["register"]);
}
