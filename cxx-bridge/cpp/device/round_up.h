// How long a block of a planned request is: as `roundup_power2_divisions` has it, like the blocks of the allocator below. And
// which blocks are long by its settings.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/util/llvmMathExtras.h>

#include <cstddef>

namespace pinbuddy {

// `bytes`, rounded up to the next of the steps into which the setting divides its power of two; `bytes` where that is less
// than the allocator below divides, or nothing is set. Programs may change the setting while they run.
inline std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t kLeast = 512;
  const std::size_t divisions = c10::CachingAllocator::AcceleratorAllocatorConfig::roundup_power2_divisions(bytes);
  if (C10_LIKELY(divisions <= 1) || bytes <= kLeast * divisions) {
    return bytes;
  }
  // All are powers of two. A request of a whole one stays as it is.
  const std::size_t step = c10::llvm::PowerOf2Floor(bytes) / divisions;
  return (bytes + step - 1) / step * step;
}

// From this length on a block is counted as one that the allocator below does not split.
inline std::size_t oversize_from() {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::max_split_size();
}

} // namespace pinbuddy
