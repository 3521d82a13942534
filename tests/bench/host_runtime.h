// libtorch's CUDA runtime, looked up at run time; and the simulator's counts.
//
// Nothing here is linked, so that one program runs with either libtorch and either runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

// Page-locked memory of this process.
struct Pinned {
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  std::uint64_t pins = 0; // calls that pinned
};

// cudaHostAlloc with only the portable flag; null if it fails.
void* pin(std::size_t bytes);
void unpin(void* memory);

// Whether the runtime is simulated; it counts every pin.
bool is_counted();
// The simulator's counts. Only where `is_counted()`.
Pinned counted();

} // namespace bench
