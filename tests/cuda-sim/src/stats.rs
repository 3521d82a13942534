//! What was done, counted, for tests to ask (`pinbuddy_sim_stats_json`).

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault;

/// A count that only grows.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Every counter of the process.
        #[derive(Debug)]
        pub(crate) struct Stats { $($(#[$doc])* pub(crate) $name: Counter,)* }

        /// The process's counters.
        pub(crate) static STATS: Stats = Stats { $($name: Counter(AtomicU64::new(0)),)* };

        impl Stats {
            /// Name and value of each counter.
            fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.0.load(Ordering::Relaxed)),)*]
            }
        }
    };
}

counters! {
    /// `cudaHostAlloc` and `cudaMallocHost` that pinned memory.
    host_allocs,
    /// `cudaFreeHost` of such memory.
    host_frees,
    /// `cudaHostRegister` that pinned memory.
    host_registers,
    /// `cudaHostUnregister` of such memory.
    host_unregisters,
    /// Pins that were refused, by the system or by `PINBUDDY_SIM_FAIL_PIN_AFTER_MB`.
    pins_refused,
    /// Kernels launched, whether simulated or left out.
    kernels_launched,
    /// Hazards found (`hazard`).
    hazards,
}

thread_local! {
    static OWN_PINS: Cell<u64> = const { Cell::new(0) };
    static OWN_UNPINS: Cell<u64> = const { Cell::new(0) };
}

/// A pin of the calling thread's succeeded, by allocation or registration.
pub(crate) fn pinned_by_this_thread() {
    OWN_PINS.set(OWN_PINS.get() + 1);
}

/// An unpin of the calling thread's succeeded.
pub(crate) fn unpinned_by_this_thread() {
    OWN_UNPINS.set(OWN_UNPINS.get() + 1);
}

/// The counters as JSON, with the page-locked bytes now and at their highest, the pins and unpins
/// of the thread that asks, and the devices that have a primary context.
pub(crate) fn json(pinned_bytes: usize, pinned_peak_bytes: usize, contexts: &[i32]) -> String {
    let (own_pins, own_unpins) = (OWN_PINS.get(), OWN_UNPINS.get());
    let mut text = format!(
        "{{\"pinned_bytes\": {pinned_bytes}, \"pinned_peak_bytes\": {pinned_peak_bytes}, \
         \"own_pins\": {own_pins}, \"own_unpins\": {own_unpins}, \"contexts\": {contexts:?}"
    );
    for (name, value) in STATS.values() {
        text.push_str(&format!(", \"{name}\": {value}"));
    }
    if let Some(faults) = fault::json() {
        text.push_str(&format!(", {faults}"));
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_every_counter_and_a_threads_pins_are_its_own() {
        let text = json(4096, 8192, &[0, 3]);
        assert!(text.starts_with("{\"pinned_bytes\": 4096, \"pinned_peak_bytes\": 8192, "));
        assert!(text.contains("\"contexts\": [0, 3], \"host_allocs\": "));
        assert!(text.contains("\"kernels_launched\": ") && text.ends_with('}'));
        pinned_by_this_thread();
        unpinned_by_this_thread();
        let own = "\"own_pins\": 1, \"own_unpins\": 1";
        assert!(json(0, 0, &[]).contains(own));
        let other = std::thread::spawn(|| json(0, 0, &[])).join().unwrap();
        assert!(other.contains("\"own_pins\": 0, \"own_unpins\": 0"));
    }
}
