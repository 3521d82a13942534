// Our pinned-memory allocator: requests that the engine takes are served from its segments, all others by
// upstream's mechanism, unchanged.
//
// A request's way: allocate -> a cached block, else engine_request -> block; free -> events recorded ->
// pending -> reaped -> cached, and sooner or later engine_release. Invariants: no block is released while
// an event on it is outstanding (I4); private pools and captures never get engine memory (I6); no CUDA
// call, map, unmap or wait under a lock (I5).
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "block_cache.h"
#include "block_table.h"
#include "cuda_backend.h"
#include "homes.h"
#include "pending_blocks.h"
#include "planned_blocks.h"
#include "refusals.h"
#include "sizes.h"

namespace pinbuddy {

class BuddyAllocator final : public CudaBackend {
 public:
  BuddyAllocator();

  // At least `size` bytes of pinned memory, and its context. Throws c10::Error if neither the engine nor
  // upstream's mechanism can pin any.
  std::pair<void*, void*> allocate(std::size_t size) override;

  // Ends the use of what `allocate` returned with this context.
  void free(void* context) override;

  // Has the block wait, once freed, for the work of `stream` so far. Returns false if neither pointer names
  // a block of ours.
  bool record_event(void* ptr, void* context, AnyStream stream) override;

  // Unpins blocks cached below the threshold and every wholly idle segment.
  void empty_cache() override;

  // Caches, or releases to the engine, every block whose events are all complete; queries all streams.
  // Throws c10::Error.
  void reap();

  // Releases every cached block to the engine, and tells it how many requests they served. Called before
  // the engine's state is read or idle memory is needed. When it returns, blocks that another thread was
  // flushing are released, too. Throws nothing.
  void flush_cached();

  // The same, but does nothing if nothing is cached: for callers that only need idle memory. Returns
  // whether anything was cached.
  bool flush_any_cached();

  // What thread caches have now. Flushes nothing.
  Caches caches();

  // Memory of the engine's was pinned; is about to be unpinned; is unpinned. Traces it.
  void segment_came(void* address, std::size_t bytes);
  void segment_goes(void* address, std::size_t bytes);
  void segment_went();

  HostStats getStats() override;
  void resetAccumulatedStats() override;
  void resetPeakStats() override;

  void before_fork() override;
  void after_fork(bool in_child) override;

  // Records requests from now on, or no more.
  void record(bool on);

  // With BUDDY_GUARD=1: looks at all freed memory. Ends the process if any was written.
  void check_guarded();

  // Upstream's segments, and the engine's as blocks and the free parts between them.
  std::vector<HostSegmentInfo> getSegments() override;

  // Whether PyTorch captures; false in releases that do not say so.
  bool captures() const {
    return PINBUDDY_HAS_PRIVATE_POOLS && capture_underway();
  }

 private:
  // Upstream's own pin. If it fails, the engine's idle memory is unpinned, and it is tried again.
  void allocate_host_memory(std::size_t size, void** ptr) override;
  // As `allocate`, and records nothing.
  std::pair<void*, void*> serve(std::size_t size);
  std::pair<void*, void*> allocate_recorded(std::size_t size);
  // As `allocate_reserved`.
  std::pair<void*, void*> serve_reserved(std::size_t size);
  void free_recorded(Block* block);
  // The events of a freed block are complete.
  static void end_record(Block* block);
  // As `allocate`, with BUDDY_GUARD=1.
  std::pair<void*, void*> allocate_guarded(std::size_t size);
  // The handed-out block with this context or, failing that, at this address; null if there is none.
  Block* find(const void* address, const void* context);
  // A block of at least `size` bytes; null if the engine serves none.
  Block* take(std::size_t size);
  Block* take_from_engine(std::size_t size, std::uint32_t home, bool again);
  // Flushes the caches, then asks the engine; `grant.segment` is the request's home. False if the engine serves none.
  bool request_after_flush(std::size_t size, Grant& grant);
  // As `reap`, until so many streams were found busy; `context` is recorded in the history.
  void reap_until(std::size_t most_busy, const std::shared_ptr<c10::GatheredContext>& context);
  // The same, for a request that is not the engine's.
  void reap_beside(std::size_t size);
  void free_engine_block(Block* block);
  void free_with_events(Block* block);
  // The block has no user any more. `context` is recorded in the history; null: the context in which the
  // block was allocated.
  void end_use(Block* block, const std::shared_ptr<c10::GatheredContext>& context);
  // Removes the block's context, so that its next user does not get it.
  void end_trace(Block* block, const std::shared_ptr<c10::GatheredContext>& context);
  void release(Block* block);

  // Requests of fewer bytes are upstream's.
  const std::size_t threshold_;
  const SizeClasses classes_;
  // Whether requests are recorded. Here, since every request reads this cache line.
  std::atomic<bool> recording_{false};
  // Whether Rust was told of the first one.
  std::atomic<bool> recording_begun_{false};
  // Null unless BUDDY_GUARD=1, which makes all requests look like ones below the threshold: the others pay
  // nothing for it.
  const Guard* const guard_;
  Homes homes_;
  BlockCache cache_;
  BlockTable table_;
  PlannedBlocks planned_;
  PendingBlocks pending_;
  Refusals refusals_;
};

} // namespace pinbuddy
