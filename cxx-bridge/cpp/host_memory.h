// Page-locked memory as in stock PyTorch: cudaHostAlloc, or ordinary memory that several threads touch and
// CUDA registers, as the settings ask. Registration alone, for memory that Rust mapped, is declared in host_allocator.h.
//
// Knows nothing of blocks, pools or the engine. Holds no lock while it calls CUDA, and disturbs no graph
// capture on any thread.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace pinbuddy {

enum class PinnedBy { HostAlloc, HostRegister };

struct PinnedRegion {
  void* address;
  PinnedBy by;
  // So many bytes before it are registered with it. CUDA unregisters by the address at which a registration begins, for
  // whoever asks, so that should not be one that a program has.
  std::size_t lead = 0;
};

// Pins `bytes` bytes, with the context of a device that the process already uses or, if there is none yet,
// of `fallback`; negative: this thread's current device. Throws c10::Error, and leaves no sticky CUDA
// error.
PinnedRegion pin(std::size_t bytes, c10::DeviceIndex fallback);

// Initialises the driver, if it is not, with the context that `pin` would use. Throws c10::Error.
void initialise_driver(c10::DeviceIndex fallback);

// Unpins what `pin` returned. Throws c10::Error.
void unpin(const PinnedRegion& region);

} // namespace pinbuddy
