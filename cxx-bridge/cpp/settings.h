// PyTorch's own settings for pinned memory (PYTORCH_CUDA_ALLOC_CONF and its successors), by the
// names that they have there. Read at each use, since programs may change them while they run.
//
// This is the one place that knows how a release spells them.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDAAllocatorConfig.h>

#include <cstddef>

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
  return CudaConfig::pinned_reserve_segment_size_mb() * 1024 * 1024;
}

inline bool pinned_use_background_threads() {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_use_background_threads();
}

// In bytes.
inline std::size_t pinned_max_round_threshold() {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_max_round_threshold();
}

inline std::size_t pinned_max_cached_size() {
  return c10::CachingAllocator::AcceleratorAllocatorConfig::pinned_max_cached_size();
}

inline bool pinned_free_catch_all() {
  return CudaConfig::pinned_free_catch_all();
}

} // namespace pinbuddy::settings
