// What Rust asks of the C++ side: page-locked memory for the engine's segments, and its allocator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// How many GPUs there are; 0 without a driver.
int32_t device_count();

// This thread's current device; -1 where there is none.
int32_t current_device();

// Pins `bytes` bytes the way PyTorch's settings ask and returns their address; where the process
// has no CUDA context yet, one of `device`. Throws c10::Error.
std::size_t pin_region(std::size_t bytes, int32_t device);

// Gives back what `pin_region` returned. Throws c10::Error.
void unpin_region(std::size_t address, std::size_t bytes);

// Gives every block whose events have all completed back to the engine. Throws c10::Error.
void reap_completed();

// What torch.accelerator.empty_host_cache() does. Throws c10::Error.
void empty_host_cache();

} // namespace pinbuddy
