// PyTorch's own settings for pinned memory (PYTORCH_CUDA_ALLOC_CONF and its successors), by their names
// there. Read at each use, since programs may change them while they run.
//
// Only this file knows how a release spells them; a setting that a release lacks has the value that changes
// nothing.
#pragma once

#include <c10/cuda/CUDAAllocatorConfig.h>

#include <cstddef>
#include <limits>

#include "upstream.h"

#if PINBUDDY_TORCH_FROM(10)
#include <c10/core/AllocatorConfig.h>
#endif

namespace pinbuddy::settings {

using CudaConfig = c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig;

inline bool pinned_use_cuda_host_register() {
  return CudaConfig::pinned_use_cuda_host_register();
}

inline std::size_t pinned_num_register_threads() {
  return CudaConfig::pinned_num_register_threads();
}

// In bytes.
inline std::size_t pinned_reserve_segment_size() {
#if PINBUDDY_HAS_RESERVE_SEGMENT
  return CudaConfig::pinned_reserve_segment_size_mb() * 1024 * 1024;
#else
  return 0;
#endif
}

inline bool pinned_use_background_threads() {
#if PINBUDDY_TORCH_FROM(10)
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_use_background_threads();
#else
  return CudaConfig::pinned_use_background_threads();
#endif
}

// In bytes.
inline std::size_t pinned_max_round_threshold() {
#if PINBUDDY_TORCH_FROM(13)
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_max_round_threshold();
#else
  return std::numeric_limits<std::size_t>::max();
#endif
}

inline std::size_t pinned_max_cached_size() {
#if PINBUDDY_TORCH_FROM(13)
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_max_cached_size();
#else
  return std::numeric_limits<std::size_t>::max();
#endif
}

inline bool pinned_free_catch_all() {
#if PINBUDDY_TORCH_FROM(12)
  return CudaConfig::pinned_free_catch_all();
#else
  return false;
#endif
}

} // namespace pinbuddy::settings
