//! Measures shared huge pages against private ones and the simulator's `cudaHostAlloc`, in turns on this
//! machine.

#![allow(unsafe_code)]

use super::tests::{maker, smaps};
use super::*;
use crate::backing::Foreground;
use crate::backing::machine::tests::made_up;
use crate::backing::pages::sizes;

const BYTES: usize = 1 << 30;
const ROUNDS: usize = 9;

/// A way to make memory and lock it as a driver does.
#[derive(Clone, Copy)]
enum Way {
    /// `cudaHostAlloc` in the simulator: 4 KiB at a time, by one thread.
    Cuda,
    /// Transparent huge pages by two threads, shared with children or hidden from them.
    Own(&'static str),
}

impl Way {
    /// Seconds that it takes, and bytes in huge pages.
    fn run(self, machine: &Machine) -> (f64, usize) {
        use_memory();
        let start = Instant::now();
        let mapping = match self {
            Self::Cuda => Mapping::new(BYTES, Pages::Small, Fork::Hide).unwrap(),
            Self::Own(fork) => {
                let asks = [
                    ("BUDDY_FORK", fork),
                    ("BUDDY_HUGE_PAGES", "thp"),
                    ("BUDDY_PIN_THREADS", "2"),
                ];
                let made = maker(&asks, machine.clone()).make(
                    BYTES,
                    Source::Ordinary,
                    &Foreground,
                    || None,
                );
                made.unwrap().mapping
            }
        };
        let first = std::ptr::with_exposed_provenance(mapping.base());
        // SAFETY: locking changes no content.
        assert_eq!(unsafe { libc::mlock(first, mapping.len()) }, 0);
        let seconds = start.elapsed().as_secs_f64();
        let (_, huge) = smaps(&mapping).pages(BYTES, sizes()).unwrap();
        mapping.unmap().unwrap();
        (seconds, huge)
    }
}

/// Touches memory first: a virtual machine may have to ask its host for memory that was not used lately,
/// which takes longer than all else.
fn use_memory() {
    let mapping = Mapping::new(BYTES + BYTES / 4, Pages::Transparent, Fork::Hide).unwrap();
    mapping.write(&(0..mapping.len()));
    mapping.unmap().unwrap();
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

#[test]
#[ignore = "takes half a minute of a quiet machine and may lock 1 GiB: cargo nextest run -p \
            pinbuddy-bridge shared_huge_pages_cost --run-ignored all --no-capture"]
fn shared_huge_pages_cost_no_more_than_private_ones() {
    let enabled = "sys/kernel/mm/transparent_hugepage/enabled";
    let (machine, _folder) = made_up(&[(enabled, "[madvise]")]);
    let ways = [Way::Cuda, Way::Own("share"), Way::Own("hide")];
    let mut seen = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let mut order = [0, 1, 2];
        order.rotate_left(round % 3);
        for way in order {
            seen[way].push(ways[way].run(&machine));
        }
    }
    for (name, of) in ["cudaHostAlloc", "shared", "private"].iter().zip(&seen) {
        let seconds = median(of.iter().map(|it| it.0));
        let huge = median(of.iter().map(|it| (it.1 >> 20) as f64));
        println!("{name:14}{seconds:.3} s a GiB, {huge} MiB in huge pages");
    }
    let ratio = |a: usize, b: usize| {
        let pairs = seen[a].iter().zip(&seen[b]);
        median(pairs.map(|(a, b)| a.0 / b.0))
    };
    let (over_private, faster) = (ratio(1, 2), ratio(0, 1));
    println!("shared / private {over_private:.2}, cudaHostAlloc / shared {faster:.1}");
    assert!(over_private <= 1.15 && faster >= 3.0);
}
