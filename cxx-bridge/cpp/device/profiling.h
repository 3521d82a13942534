// What a profiler is told of device memory (torch.profiler with profile_memory), and a tracer (CUDA's sanitizer in torch).
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdint>

namespace pinbuddy {

// Memory at an address came, or else went. Not under a lock, since that may wait for Python's.
inline void tell_tracer(const void* address, bool came) {
  if (const auto* interpreter = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(interpreter != nullptr)) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (came) {
      (*interpreter)->trace_gpu_memory_allocation(c10::kCUDA, at);
    } else {
      (*interpreter)->trace_gpu_memory_deallocation(c10::kCUDA, at);
    }
  }
}

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

// Both of memory that came, or went if `bytes` is negative.
inline void tell_of(
    c10::cuda::CUDACachingAllocator::CUDAAllocator& whole,
    void* address,
    std::int64_t bytes,
    c10::DeviceIndex device) {
  tell_tracer(address, bytes > 0);
  tell_profiler(whole, address, bytes, device);
}

} // namespace pinbuddy
