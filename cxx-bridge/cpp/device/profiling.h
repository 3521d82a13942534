// What a profiler is told of device memory (torch.profiler with profile_memory).
#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>

namespace pinbuddy {

// So many bytes at an address came, or went if negative. `whole` answers for the device with its plans. Not under a lock.
inline void tell_profiler(
    c10::cuda::CUDACachingAllocator::CUDAAllocator& whole,
    void* address,
    std::int64_t bytes,
    c10::DeviceIndex device) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
    const auto stats = whole.getDeviceStats(device);
    c10::reportMemoryUsageToProfiler(
        address,
        bytes,
        stats.allocated_bytes[0].current,
        stats.reserved_bytes[0].current,
        {c10::kCUDA, device});
  }
}

} // namespace pinbuddy
