// Upstream's mechanism, with caches of freed blocks in front of its lists.
//
// To upstream a cached block is in use until it is flushed, so its lists, statistics and pools are
// unchanged. Invariants: a block is cached only if upstream would put it on a list of one size at once:
// streams have not used it, it was not given to a capture, it is not traced, and it has no size of its own.
// While events are outstanding, after which blocks return to the lists, the lists are used. When upstream's
// state is read, nothing is cached; when a request goes to upstream, no block of its size is cached.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "block_cache.h"
#include "cuda_backend.h"

namespace pinbuddy {

// The recorded block of upstream's that this thread frees; 0: none. Upstream's call to record its events does not say.
inline constinit thread_local std::uint64_t freeing_recorded = 0;

class QuickBackend : public CudaBackend {
 public:
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

  void record_stream(
      std::optional<std::vector<PooledEvent>>& events,
      c10::cuda::CUDAStream stream) override;
  bool query_event(PooledEvent& event) override;

 private:
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
