// How long a region is to the allocator below.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>

namespace pinbuddy {

// How long the block of the allocator below is that begins at `base`; `asked` if there is none. Its settings may have rounded
// it up, and what is left of what it had cached stays with the block where that is little. Not under a lock.
inline std::size_t region_length(
    c10::cuda::CUDACachingAllocator::CUDAAllocator& below,
    const void* base,
    std::size_t asked) {
  const auto begin = reinterpret_cast<std::size_t>(base);
  for (const auto& segment : below.snapshot({0, 0}, /*include_traces=*/false).segments) {
    if (begin - segment.address >= segment.total_size) {
      continue;
    }
    std::size_t address = segment.address;
    for (const auto& block : segment.blocks) {
      if (address == begin) {
        return block.size;
      }
      address += block.size;
    }
  }
  return asked;
}

} // namespace pinbuddy
