// The CUDA runtime that libtorch brought along, asked for by name; and what the simulator counts.
//
// Nothing here is linked, so that one program runs with either libtorch and either runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

// What is page-locked in this process.
struct Pinned {
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  std::uint64_t pins = 0; // calls that pinned
};

// cudaHostAlloc with no flags but portable; null where it refuses.
void* pin(std::size_t bytes);
void unpin(void* memory);

// Whether the runtime is the simulated one, which counts every pin whoever made it.
bool is_counted();
// The simulator's counts. Only where `is_counted()`.
Pinned counted();

} // namespace bench
