// Upstream's caching host allocator for CUDA on top of our runtime hooks, with caches of freed blocks in front of its lists.
//
// Does what stock's CUDA allocator does, with stock's settings. Our allocator uses it below the threshold. Knows nothing of the
// engine. To upstream a cached block is in use until it is flushed, so its lists, statistics and pools are
// unchanged. Invariants: a block is cached only if upstream would put it on a list of one size at once:
// streams have not used it, it was not given to a capture, it is not traced, and it has no size of its own.
// While events are outstanding, after which blocks return to the lists, the lists are used. When upstream's
// state is read, nothing is cached; when a request goes to upstream, no block of its size is cached.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "block.h"
#include "block_cache.h"
#include "event_pool.h"
#include "host_memory.h"
#include "reserved.h"
#include "upstream.h"

namespace pinbuddy {

// The recorded block of upstream's that this thread frees; 0: none. Upstream's call to record its events does not say.
inline constinit thread_local std::uint64_t freeing_recorded = 0;

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

  std::pair<void*, void*> allocate(std::size_t size) override;
  void free(void* context) override;
  void empty_cache() override;
  HostStats getStats() override;
  void resetAccumulatedStats() override;
  void resetPeakStats() override;
  std::vector<HostSegmentInfo> getSegments() override;

  // Called before the history is recorded: earlier frees are no part of it.
  void before_recording();

  // Has upstream query its events, as it does at each request: called for requests that it does not see, since blocks that
  // are not to be cached stay pinned, and all of them active, until somebody asks.
  void reap_lists() {
    if (C10_UNLIKELY(outstanding_.load(std::memory_order_relaxed) != 0 || has_doomed())) {
      query_outstanding();
    }
  }

  // Called around a fork, so that a child can go on.
  virtual void before_fork();
  virtual void after_fork(bool in_child);

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

  // Whether an event is complete, whoever's it is.
  bool is_over(PooledEvent& event);

  // This thread's requests get what is cached or reserved, and throw NothingReserved where memory would have to be pinned for them.
  static inline constinit thread_local bool only_reserved = false;

  // A block of upstream's, or a segment of the engine's, is pinned, or no more.
  void pinned(std::size_t bytes);
  void unpinned(std::size_t bytes);

  // The most of them, and the most bytes, at one moment since the peaks were reset: upstream's and the engine's have their
  // own peaks, at moments of their own.
  Amount most_pinned();

  // Whether a block of upstream's lies in the segment that pinned_reserve_segment_size_mb asks for.
  bool is_reserved(const Block& block);

  // A block for a request that the engine serves as well, from what pinned_reserve_segment_size_mb reserves or upstream's
  // lists have; null if memory would have to be pinned for it, and without that setting. The first call pins what is
  // reserved; null if that fails.
  std::pair<void*, void*> allocate_reserved(std::size_t size);

  // Whether that may have something.
  bool may_be_reserved(std::size_t size);

  // Whether `allocate_reserved` may return a block: one relaxed load.
  bool may_have_reserved() const {
    return reserves_.load(std::memory_order_relaxed);
  }

 private:
  // The region that pinned_reserve_segment_size_mb asks for, pinned by the first request; empty
  // without that setting.
  ReserveSegment& reserve_segment();

  // The unpins that follow from `Upstream::free`, which are driver calls: apart from it, for those that free several blocks
  // under a lock.
  void finish_frees();

  // Whether unpins were put aside: one relaxed load.
  bool has_doomed() const {
    return any_doomed_.load(std::memory_order_relaxed);
  }

  // Unpins what `free_block` put aside, all that can be; returns what the first that cannot be threw.
  std::exception_ptr unpin_doomed();
  void unpin_doomed_or_throw();

  void query_outstanding();
  void free_or_cache(Block* block);

  // Whether no event is outstanding that may return a block to the lists, and no unpin.
  bool lists_are_quiet() const {
    return outstanding_.load(std::memory_order_relaxed) == 0 && !isHistoryEnabled() && !has_doomed();
  }
  // A block from upstream, which this thread's cache gets once it is freed.
  std::pair<void*, void*> allocate_to_cache(std::size_t size);
  bool can_be_cached(const Block& block) const;

  // Whether the limit in PyTorch's settings has changed since the last call.
  bool limit_changed();

  // Whether requests of this size are rounded up to the next power of two.
  bool is_rounded(std::size_t size) const {
    return size <= most_rounded_.load(std::memory_order_relaxed);
  }

  // Frees every cached block for good, and counts what they served. Throws c10::Error.
  void flush();
  // The same, if anything is cached; returns once no other thread's flush holds blocks either.
  void flush_any();

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

  // Guarded by upstream's lock of the times.
  Amount pinned_;
  Amount most_pinned_;

  BlockCache cache_;

  // Whether a segment is reserved; true until the setting was read, by the first request that might be served from it.
  std::atomic<bool> reserves_{true};
  Reserved reserved_;

  // The largest request that is rounded and cached, as of the last request that read it: programs may change
  // PyTorch's settings, and reading them costs a fifth of a pair.
  std::atomic<std::size_t> most_rounded_{0};

  // Events that upstream has recorded for blocks of the default pool and not seen complete. Events of other
  // pools may never be queried, and return nothing to these lists.
  std::atomic<std::size_t> outstanding_{0};

  // Requests that cached blocks have served since the totals were reset.
  std::atomic<std::size_t> reused_blocks_{0};
  std::atomic<std::size_t> reused_bytes_{0};
};

} // namespace pinbuddy
