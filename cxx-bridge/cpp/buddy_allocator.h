// The pinned-memory allocator of a fork: requests that the engine takes are served from its
// segments, all others by upstream's mechanism, untouched.
//
// A request's way: allocate -> a cached block, else engine_request -> block; free -> events recorded ->
// pending -> reaped -> cached, and sooner or later engine_release. Invariants: no block is given back while an event on it is outstanding
// (I4); private pools and captures never get engine memory (I6); no CUDA call, map, unmap or wait
// under a lock (I5).
#pragma once

#include <utility>
#include <vector>

#include "block_cache.h"
#include "block_table.h"
#include "pending_blocks.h"
#include "quick_backend.h"
#include "refusals.h"

namespace pinbuddy {

class BuddyAllocator final : public QuickBackend {
 public:
  BuddyAllocator();

  // At least `size` bytes of pinned memory and its context. Throws c10::Error when neither the
  // engine nor upstream's mechanism can pin any.
  std::pair<void*, void*> allocate(std::size_t size) override;

  // Ends the use of what `allocate` returned with this context.
  void free(void* context) override;

  // Has the block wait, once freed, for what `stream` was given so far. Returns false if neither
  // pointer names a block of ours.
  bool record_event(void* ptr, void* context, AnyStream stream) override;

  // Unpins what is cached below the threshold and every wholly idle segment.
  void empty_cache() override;

  // Caches every block whose events have all completed, or releases it to the engine; asks each
  // stream, however many there are. Throws c10::Error.
  void reap();

  // Releases every cached block to the engine, and tells it how often they have served: whoever reads
  // the engine's state or needs what is idle calls this first. What another thread is about to
  // release is the engine's, too, when this returns. Throws nothing.
  void flush_cached();

  // The same, but tells the engine nothing where nothing is cached: for who needs what is idle, and no
  // more. Whether there was any.
  bool flush_any_cached();

  // Memory for the engine, counted and traced; `fallback` as for `pin`. Throws c10::Error.
  void* pin_segment(std::size_t bytes, c10::DeviceIndex fallback);
  void unpin_segment(void* address, std::size_t bytes);

  // Counts and traces memory that somebody else pinned; traces that it is about to go.
  void segment_pinned(void* address, std::size_t bytes, int64_t microseconds);
  void segment_goes(void* address, std::size_t bytes);

  // Counts that giving memory back took so long.
  void segment_gone(int64_t microseconds);

  HostStats getStats() override;
  void resetAccumulatedStats() override;
  void resetPeakStats() override;

  void before_fork() override;
  void after_fork(bool in_child) override;

  // Upstream's segments, and the engine's as their blocks and what lies between them.
  std::vector<HostSegmentInfo> getSegments() override;

 private:
  // Upstream's own pin. Where it fails, what the engine holds idle makes way for it.
  void allocate_host_memory(std::size_t size, void** ptr) override;
  // A block of at least `size` bytes; null where the engine has none.
  Block* take(std::size_t size);
  Block* take_from_engine(std::size_t size, bool again);
  // Where there is none beside what is cached. False where the engine has none either.
  bool make_room(std::size_t size, Grant& grant);
  // As `reap`, until so many streams were found busy; the history says that it was done here.
  void reap_until(std::size_t most_busy, const std::shared_ptr<c10::GatheredContext>& context);
  // The same, for a request of a size that is not the engine's.
  void reap_beside(std::size_t size);
  void free_engine_block(Block* block);
  void free_with_events(Block* block);
  // Nobody uses the block any more, as the history says was found out here; null: where it was
  // allocated.
  void end_use(Block* block, const std::shared_ptr<c10::GatheredContext>& context);
  // The next user is not to see the block's context.
  void end_trace(Block* block, const std::shared_ptr<c10::GatheredContext>& context);
  void release(Block* block);
  void trace(
      TraceEntry::Action action,
      void* address,
      std::size_t bytes,
      std::shared_ptr<c10::GatheredContext> context);

  // Requests of fewer bytes are upstream's.
  const std::size_t threshold_;
  BlockCache cache_;
  BlockTable table_;
  PendingBlocks pending_;
  Refusals refusals_;
};

} // namespace pinbuddy
