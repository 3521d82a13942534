//! The simulator's settings, read from the environment once, at the first CUDA call.

use std::sync::OnceLock;

use crate::note;

const MIB: usize = 1 << 20;

/// How the simulated machine looks and behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// `PINBUDDY_SIM_DEVICES`: how many GPUs there are (1).
    pub(crate) devices: usize,
    /// `PINBUDDY_SIM_DEVICE_MB`: memory of each GPU, in bytes (16 GiB).
    pub(crate) device_bytes: usize,
    /// `PINBUDDY_SIM_MEMORY=integrated` or `coherent`: the GPUs have their memory from the host's, or use its page tables.
    pub(crate) integrated: bool,
    pub(crate) coherent: bool,
    /// `PINBUDDY_SIM_FAIL_PIN_AFTER_MB`: pins that would exceed this many bytes of page-locked
    /// memory fail.
    pub(crate) fail_pin_after: Option<usize>,
    /// `PINBUDDY_SIM_REGISTER=0`: `cudaHostRegister` is not permitted, as in some containers.
    pub(crate) registers: bool,
    /// `PINBUDDY_SIM_LOCK=0`: pins are counted and mapped, but no page is locked or touched, so
    /// that more can be pinned than the machine has.
    pub(crate) lock_pages: bool,
    /// `PINBUDDY_SIM_SHARED=1`: `cudaHostAlloc` gives memory that forked children read and write, as a
    /// driver does. Not by default: ordinary shared memory takes half as long again to fill as private
    /// memory, which no driver does, and pins would seem slower than they are.
    pub(crate) shares: bool,
    /// `PINBUDDY_SIM_PIN_MS_PER_GB`: pins happen one at a time, as with a driver, and each takes
    /// at least so many milliseconds per GiB of its size (0: one at a time, at no least).
    pub(crate) pin_ms_per_gib: Option<usize>,
    /// `PINBUDDY_SIM_HAZARDS=1`: watch what copies have in flight (`hazard`).
    pub(crate) hazards: bool,
    /// `PINBUDDY_SIM_EVENT_LAG_MS`: an event seems complete up to so many milliseconds after it is, each
    /// with a delay of its own, so that events come out of order.
    pub(crate) event_lag_ms: usize,
    /// `PINBUDDY_SIM_LOG=1`: say each pin, unpin and error on standard error.
    pub(crate) log: bool,
    /// `PINBUDDY_SIM_QUIET=1`: do not say which kernels are left out.
    pub(crate) quiet: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// The settings, where a CUDA call was made already: what comes earlier must not read them.
pub(crate) fn if_read() -> Option<&'static Config> {
    CONFIG.get()
}

/// The settings of this process.
pub(crate) fn get() -> &'static Config {
    CONFIG.get_or_init(|| Config::read(|name| std::env::var(name).ok()))
}

impl Config {
    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            let value = variable(name)?;
            let parsed = value.trim().parse::<usize>().ok();
            if parsed.is_none() {
                note::always(&format!("{name}={value} is not a number and is ignored"));
            }
            parsed
        };
        let is = |name: &str, wanted: &str| variable(name).is_some_and(|value| value == wanted);
        let bytes = |name: &str| number(name).map(|mb| mb.saturating_mul(MIB));
        Self {
            devices: number("PINBUDDY_SIM_DEVICES").unwrap_or(1).min(64),
            device_bytes: bytes("PINBUDDY_SIM_DEVICE_MB").unwrap_or(16384 * MIB),
            integrated: is("PINBUDDY_SIM_MEMORY", "integrated"),
            coherent: is("PINBUDDY_SIM_MEMORY", "coherent"),
            fail_pin_after: bytes("PINBUDDY_SIM_FAIL_PIN_AFTER_MB"),
            registers: !is("PINBUDDY_SIM_REGISTER", "0"),
            lock_pages: !is("PINBUDDY_SIM_LOCK", "0"),
            shares: is("PINBUDDY_SIM_SHARED", "1"),
            pin_ms_per_gib: number("PINBUDDY_SIM_PIN_MS_PER_GB"),
            hazards: is("PINBUDDY_SIM_HAZARDS", "1"),
            event_lag_ms: number("PINBUDDY_SIM_EVENT_LAG_MS").unwrap_or(0),
            log: is("PINBUDDY_SIM_LOG", "1"),
            quiet: is("PINBUDDY_SIM_QUIET", "1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_ignores_nonsense() {
        let config = Config::read(|name| match name {
            "PINBUDDY_SIM_DEVICES" => Some("2".into()),
            "PINBUDDY_SIM_DEVICE_MB" => Some("lots".into()),
            "PINBUDDY_SIM_FAIL_PIN_AFTER_MB" => Some("3".into()),
            _ => None,
        });
        assert_eq!(config.devices, 2);
        assert_eq!(config.device_bytes, 16384 * MIB);
        assert_eq!(config.fail_pin_after, Some(3 * MIB));
        assert!(!config.log && !config.quiet && !config.integrated && !config.coherent);
        assert!(config.lock_pages && config.pin_ms_per_gib.is_none() && !config.shares);
        // Locking is turned off by a zero alone.
        for (value, locks) in [("0", false), ("1", true), ("", true), ("no", true)] {
            let read = |name: &str| (name == "PINBUDDY_SIM_LOCK").then(|| value.to_owned());
            assert_eq!(Config::read(read).lock_pages, locks, "{value}");
        }
    }
}
