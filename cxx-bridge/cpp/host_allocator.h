// What Rust calls on the C++ side: page-locked memory for the engine's segments, and the allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace pinbuddy {

// Of the bridge.
struct Caches;

// How many GPUs there are; 0 without a driver.
int32_t device_count();

// This thread's current device; -1 if there is none.
int32_t current_device();

// Whether a GPU has its memory from the host's: integrated ones, and those that use the host's page tables. Makes no context.
bool shares_host_memory();

// Whether the process has a context on a device. Makes none, and does not start the driver.
bool has_context();

// Makes a device on which the process has a context this thread's; false if there is none. Makes none, and does not start
// the driver.
bool adopt_context();

// Pins `bytes` bytes as PyTorch's settings ask, and returns their address. If the process has no CUDA
// context yet, makes one of `device`. Throws c10::Error.
std::size_t pin_region(std::size_t bytes, int32_t device);

// Unpins what `pin_region` returned. Throws c10::Error.
void unpin_region(std::size_t address, std::size_t bytes);

// Initialises the driver, which `pin_region` does by itself. Throws c10::Error.
void initialise(int32_t device);

// The PCI address of a device, for instance 0000:1B:00.0. Throws c10::Error.
rust::String pci_address(int32_t device);

// Has CUDA lock memory that is mapped, with a context as for `pin_region`, or without making one if the device is -1. With
// `read_only` devices may not write there. Throws c10::Error, and leaves no sticky CUDA error.
void register_mapped(std::size_t address, std::size_t bytes, bool read_only, int32_t device);

// Tensors have one address, for the host and for kernels: throws c10::Error where registered memory has another.
void check_mapped(std::size_t address);

// Undoes `register_mapped`. False if somebody else has. Throws c10::Error.
bool unregister_mapped(std::size_t address);

// Counts and traces a segment that Rust mapped and registered, and the time that it took.
void segment_pinned(std::size_t address, std::size_t bytes, int64_t microseconds);

// Traces that such a segment is about to be unpinned: another one may get its address soon.
void segment_goes(std::size_t address, std::size_t bytes);

// Counts the time that unpinning it took.
void count_unpin(int64_t microseconds);

// Releases to the engine every block whose events are all complete, and every cached block. Throws
// c10::Error.
void reap_completed();

// The same by a thread of ours: with the context of a device that the process already uses, and unseen by captures.
void reap_behind();

// Releases every cached block to the engine, before its state is read.
void flush_cached();

// What thread caches have now. Flushes nothing; takes spin locks, one after another.
Caches caches();

// Whether PyTorch captures; false in releases that do not say so.
bool something_is_captured();

// Records requests from now on, or no more.
void record(bool on);

// The version of PyTorch that this was compiled for.
rust::String torch_version();

// What torch.accelerator.empty_host_cache() does. Throws c10::Error.
void empty_host_cache();

} // namespace pinbuddy
