// Upstream's caching host allocator for CUDA: its pools and lists on top of our runtime hooks.
//
// Does what stock's CUDA allocator does, with stock's settings. Our allocator uses it below the threshold.
// Knows nothing of the engine.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "block.h"
#include "event_pool.h"
#include "host_memory.h"
#include "reserved.h"
#include "upstream.h"

namespace pinbuddy {

class CudaBackend : public Upstream<PooledEvent, Block> {
 public:
  // Pins memory and counts the call in the host statistics; `fallback` as for `pin`. Throws
  // c10::Error.
  void* pin_counted(std::size_t bytes, c10::DeviceIndex fallback = -1);

  // Unpins what `pin_counted` returned, and counts that. Throws c10::Error.
  void unpin_counted(void* address);

  // Counts the time that pinning or unpinning memory took that Rust mapped.
  void count_pin(int64_t microseconds);
  void count_unpin(int64_t microseconds);

  void free(void* context) override;
  void empty_cache() override;

 protected:
  void allocate_host_memory(std::size_t size, void** ptr) override;
  void free_block(Block* block) override;
  void record_stream(
      std::optional<std::vector<PooledEvent>>& events,
      c10::cuda::CUDAStream stream) override;
  bool query_event(PooledEvent& event) override;
  c10::cuda::CUDAStream get_current_stream() const override;
  bool stream_is_capturing(c10::cuda::CUDAStream stream) const override;
  bool pinned_use_background_threads() override;

  // `free` in two parts, for callers that free several blocks under a lock: upstream's part, and the unpins
  // that follow from it, which are driver calls.
  void free_to_lists(void* context) {
    CachingHostAllocatorImpl::free(context);
  }
  void finish_frees();

  // This thread's requests get what is cached or reserved, and throw NothingReserved where memory would have to be pinned for them.
  static inline constinit thread_local bool only_reserved = false;

  // Whether a block of upstream's lies in the segment that pinned_reserve_segment_size_mb asks for.
  bool is_reserved(const Block& block);

  // Whether unpins were put aside: one relaxed load.
  bool has_doomed() const {
    return any_doomed_.load(std::memory_order_relaxed);
  }

 private:
  // The region that pinned_reserve_segment_size_mb asks for, pinned by the first request; empty
  // without that setting.
  ReserveSegment& reserve_segment();

  // Unpins what `free_block` put aside, all that can be; returns what the first that cannot be threw.
  std::exception_ptr unpin_doomed();
  void unpin_doomed_or_throw();

  // Upstream frees blocks under its locks. So they are put aside, and unpinned once this thread holds none.
  std::mutex doomed_mutex_;
  std::vector<void*> doomed_;
  // What could not be unpinned: still pinned, and tried again when the cache is emptied. Not sooner, since frees lead
  // here as well, and what they throw ends the program.
  std::vector<void*> refused_;
  std::atomic<bool> any_doomed_{false};

  // Programs may change the settings while they run, so each region remembers how it was pinned.
  std::mutex regions_mutex_;
  std::unordered_map<void*, PinnedRegion> regions_;
};

} // namespace pinbuddy
