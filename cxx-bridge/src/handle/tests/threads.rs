//! Many threads at once.

use std::sync::Mutex;

use super::*;
use crate::sync::Dial;

#[test]
fn threads_that_arrive_together_share_one_warm_up() {
    let handle = sync(4);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| handle.request(15 * MIB).unwrap());
        }
    });
    assert_eq!(handle.progress().unwrap().pinned, 4);
    assert_eq!(pinned(handle), [64; 4]);
}

#[test]
fn many_threads_never_share_a_block() {
    let handle = ahead(2);
    let (sender, receiver) = std::sync::mpsc::channel::<Grant>();
    let receiver = Mutex::new(receiver);
    let owned: Mutex<std::collections::BTreeMap<usize, usize>> = Mutex::default();
    let done = Dial::at(false);
    thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|maker| {
                let (sender, owned) = (sender.clone(), &owned);
                scope.spawn(move || {
                    for round in 0..200 {
                        let bytes = (4 + (maker * 7 + round) % 23) * MIB;
                        let grant = handle.request(bytes).unwrap();
                        let (from, to) = (grant.address, grant.address + grant.block.bytes);
                        let mut owned = owned.lock().unwrap();
                        let before = owned.range(..to).next_back();
                        assert!(before.is_none_or(|(_, end)| *end <= from), "overlap");
                        owned.insert(from, to);
                        drop(owned);
                        sender.send(grant).unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let Ok(grant) = receiver.lock().unwrap().recv() else {
                        break;
                    };
                    owned.lock().unwrap().remove(&grant.address);
                    handle.release(grant.block);
                }
            });
        }
        scope.spawn(|| {
            while !done.get() {
                handle.empty_cache();
                let stats = handle.stats().unwrap();
                let parts = stats.active_bytes.current + stats.idle_bytes;
                assert_eq!(parts, stats.pinned_bytes.current);
                handle.parts();
            }
        });
        for maker in makers {
            maker.join().unwrap();
        }
        done.set(true);
    });
    assert!(!is_retired(handle));
    settled(handle);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE, "all of it came back");
    assert_eq!(handle.pinner.quota().left(), 1 << 50);
}
