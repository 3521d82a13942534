// Upstream's mechanism with its freed blocks cached in front of its lists.
//
// A cached block is in use to upstream, until it is freed for good: so its lists, statistics
// and pools need not know. Invariants: only what upstream would put on a list of one size at once is
// cached, so nothing that streams have used, a capture was given, is traced or has a size of its own;
// while events are outstanding, after which blocks come back to the lists, the lists are used; before
// anybody reads upstream's state, or a request finds no cached block and goes to upstream, no
// block of the request's size is cached.
#pragma once

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "block_cache.h"
#include "cuda_backend.h"

namespace pinbuddy {

class QuickBackend : public CudaBackend {
 public:
  std::pair<void*, void*> allocate(std::size_t size) override;
  void free(void* context) override;
  void empty_cache() override;
  HostStats getStats() override;
  void resetAccumulatedStats() override;
  void resetPeakStats() override;
  std::vector<HostSegmentInfo> getSegments() override;

  // The history is about to be recorded: what was freed before is to be no part of it.
  void before_recording();

  // So that a child of a fork can go on: called in this order, around it.
  virtual void before_fork();
  virtual void after_fork(bool in_child);

 protected:
  void record_stream(
      std::optional<std::vector<PooledEvent>>& events,
      c10::cuda::CUDAStream stream) override;
  bool query_event(PooledEvent& event) override;

 private:
  // Whether the next block is the one that was freed last, and no event may bring one back first.
  bool lists_are_quiet() const {
    return outstanding_.load(std::memory_order_relaxed) == 0 && !isHistoryEnabled();
  }
  // From upstream, and once freed to be cached for this thread.
  std::pair<void*, void*> allocate_to_cache(std::size_t size);
  bool can_be_cached(const Block& block) const;

  // Whether PyTorch's settings have another limit now than at the last call.
  bool limit_changed();

  // Whether requests of this size get blocks of the next power of two, which all of them share.
  bool is_rounded(std::size_t size) const {
    return size <= most_rounded_.load(std::memory_order_relaxed);
  }

  // Frees every cached block for good, and counts what they served. Throws c10::Error.
  void flush();
  // The same, where anything is cached; returns once nothing is in another thread's hand either.
  void flush_any();

  BlockCache cache_;

  // The largest request that is rounded and cached, as the last request saw it: programs may change
  // PyTorch's settings, and reading them takes a fifth of a pair.
  std::atomic<std::size_t> most_rounded_{0};

  // Events that upstream has recorded for blocks of the default pool, and not seen completed. Those of
  // other pools may never be asked, and bring nothing back to these lists.
  std::atomic<std::size_t> outstanding_{0};

  // Requests that cached blocks have served, since the statistics' totals were reset.
  std::atomic<std::size_t> reused_blocks_{0};
  std::atomic<std::size_t> reused_bytes_{0};
};

} // namespace pinbuddy
