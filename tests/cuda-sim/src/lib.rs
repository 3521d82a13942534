//! A simulated CUDA runtime: real streams, events and page-locked memory on a machine with no GPU.
//!
//! Preloaded in front of libcudart (`LD_PRELOAD`), its unversioned symbols satisfy the versioned
//! references of PyTorch's libraries, so the official wheel believes that it has GPUs. What it
//! simulates is time and memory, which is what a pinned-memory allocator can get wrong:
//!
//! - a stream is a queue on its own thread, so a copy runs after the call that asked for it, and a
//!   source that is overwritten too early is seen to be (`queue`, `stream`, `event`, `transfer`);
//! - page-locked memory is mapped and locked for real, at a driver's pace if asked, and the
//!   registry knows every range of it (`pages`, `driver`, `registry`, `host_memory`);
//! - device memory is ordinary host memory with a ceiling; what the driver maps into reserved addresses counts, too
//!   (`memory`, `virtual_memory`);
//! - capture and graphs record what was asked and replay it (`capture`, `graph`);
//! - a kernel is a name: the spin kernel holds its stream, any other does nothing and says so once
//!   (`kernel`, `symbol`);
//! - any call can be made to fail, system calls of the tested library too (`fault`, `system`), and what must not
//!   happen to memory that a copy has in flight is reported (`hazard`);
//! - cuBLAS is handles and streams: a matrix product is one more kernel that does nothing (`blas`).
//!
//! `api` holds the C entry points, which unpack arguments and call the safe code above. What is
//! not defined there reaches the real libcudart, which answers that it has no driver.
//!
//! Environment: `PINBUDDY_SIM_DEVICES`, `PINBUDDY_SIM_DEVICE_MB`, `PINBUDDY_SIM_FAIL_PIN_AFTER_MB`,
//! `PINBUDDY_SIM_MEMORY`, `PINBUDDY_SIM_LOCK`, `PINBUDDY_SIM_SHARED`, `PINBUDDY_SIM_PIN_MS_PER_GB`, `PINBUDDY_SIM_HAZARDS`,
//! `PINBUDDY_SIM_EVENT_LAG_MS`, `PINBUDDY_SIM_LOG`, `PINBUDDY_SIM_QUIET` (see `config`), and
//! `PINBUDDY_SIM_FAULTS` (see `fault`).

mod api;
#[rustfmt::skip]
#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unused_qualifications
)]
mod bindings;
#[rustfmt::skip]
#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unreachable_pub,
    unused_qualifications
)]
mod bindings_cuda12;
mod blas;
mod capture;
mod capture_rules;
mod config;
mod device;
mod driver;
mod error;
mod event;
mod fault;
mod graph;
mod handles;
mod hazard;
mod host_memory;
mod kernel;
mod memory;
mod note;
mod pages;
mod pins;
mod properties;
mod queue;
mod registry;
mod stack;
mod stats;
mod stream;
mod symbol;
mod system;
mod transfer;
mod virtual_memory;
mod waiting;
mod work;
mod writes;
