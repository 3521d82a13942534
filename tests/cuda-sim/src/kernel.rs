//! Kernels: names and launches. The spin kernel holds its stream, any other is left out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bindings::dim3;
use crate::error::{Error, Status, lock};
use crate::stats::STATS;
use crate::stream::{self, Stream};
use crate::work::Work;
use crate::{config, device, note};

/// Kernels by the address of their host function, which also serves as `cudaKernel_t`.
static KERNELS: Mutex<Option<HashMap<usize, Arc<str>>>> = Mutex::new(None);

/// `__cudaRegisterFunction`.
pub(crate) fn register(host_function: usize, name: &str) {
    lock(&KERNELS).get_or_insert_default().insert(host_function, name.into());
}

/// The name of a kernel.
pub(crate) fn name(host_function: usize) -> Status<Arc<str>> {
    lock(&KERNELS)
        .as_ref()
        .and_then(|kernels| kernels.get(&host_function).cloned())
        .ok_or(Error::cudaErrorInvalidDeviceFunction)
}

/// What the simulator makes of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// `torch.cuda._sleep`: its only argument is how many cycles to spin.
    Spin,
    /// Nothing.
    LeftOut,
}

fn meaning(name: &str) -> Meaning {
    // The mangled name of at::cuda::(anonymous namespace)::spin_kernel(int64_t).
    if name.contains("11spin_kernelEl") { Meaning::Spin } else { Meaning::LeftOut }
}

/// Launch a kernel; `first_argument` reads its first argument as a 64-bit number.
pub(crate) fn launch(host_function: usize, stream: &Arc<Stream>, first_argument: impl FnOnce() -> i64) -> Status {
    let name = name(host_function)?;
    match meaning(&name) {
        Meaning::Spin => submit(stream, Work::Hold(cycles(first_argument()))),
        Meaning::LeftOut => leave_out(&name, stream),
    }
}

/// A kernel that does nothing, and says so the first time.
pub(crate) fn leave_out(name: &str, stream: &Arc<Stream>) -> Status {
    if !config::get().quiet {
        note::once(name, || format!("kernel {name} is left out: the simulator computes nothing"));
    }
    submit(stream, Work::Kernel)
}

fn submit(stream: &Arc<Stream>, work: Work) -> Status {
    stream::submit(stream, work)?;
    STATS.kernels_launched.add(1);
    Ok(())
}

fn cycles(count: i64) -> Duration {
    let per_second = f64::from(device::CLOCK_KHZ) * 1e3;
    Duration::from_secs_f64(count.max(0) as f64 / per_second)
}

/// What `<<<…>>>` pushes before a launch and the generated stub pops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Configuration {
    pub(crate) grid: dim3,
    pub(crate) block: dim3,
    pub(crate) shared_bytes: usize,
    pub(crate) stream: usize,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// `__cudaPushCallConfiguration`.
pub(crate) fn push(configuration: Configuration) {
    CONFIGURATIONS.with_borrow_mut(|stack| stack.push(configuration));
}

/// `__cudaPopCallConfiguration`.
pub(crate) fn pop() -> Status<Configuration> {
    CONFIGURATIONS.with_borrow_mut(Vec::pop).ok_or(Error::cudaErrorMissingConfiguration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting;
    use std::time::Instant;

    #[test]
    fn a_spin_kernel_holds_its_stream_any_other_is_left_out_and_an_unknown_one_refused() {
        register(0x10, "_ZN2at4cuda12_GLOBAL__N_11spin_kernelEl");
        let stream = stream::resolve(stream::create(1, 0).unwrap()).unwrap();
        let start = Instant::now();
        launch(0x10, &stream, || 1_000_000_000).unwrap();
        assert!(start.elapsed() < Duration::from_secs(1));
        waiting::synchronize(&stream).unwrap();
        assert!(start.elapsed() >= Duration::from_secs(1));
        register(0x20, "_Z4fillPfi");
        launch(0x20, &stream, || unreachable!("its arguments mean nothing")).unwrap();
        assert_eq!(launch(0x30, &stream, || 0), Err(Error::cudaErrorInvalidDeviceFunction));
    }
}
