// Frees: a block waits for the streams that have used it; then it is cached or released to the engine.
#include "buddy_allocator.h"

#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <utility>

#include "child.h"
#include "lock.h"

namespace pinbuddy {

using c10::cuda::CUDAStream;

void BuddyAllocator::free(void* context) {
  auto* block = static_cast<Block*>(context);
  if (block != nullptr && C10_UNLIKELY(block->recorded)) {
    free_recorded(block);
  } else if (block != nullptr && block->engine_owned) {
    free_engine_block(block);
  } else {
    CudaBackend::free(context);
  }
}

void BuddyAllocator::free_recorded(Block* block) {
  if (block->engine_owned) {
    const bool pending = block->on_streams.load(std::memory_order_relaxed);
    block->recorded = pending;
    record_free(block->allocation, pending ? 1 : 0);
    free_engine_block(block);
    return;
  }
  // Upstream alone knows the block while it is used, so its streams are recorded here. It records an event on each.
  for (const CUDAStream stream : block->streams_) {
    record_use(block->allocation, name_of(stream));
  }
  const std::size_t events = block->streams_.size();
  freeing_recorded = events != 0 ? block->allocation : 0;
  const auto freed = c10::make_scope_exit([] { freeing_recorded = 0; });
  record_free(block->allocation, events);
  // Its events know the allocation; the block's next user is another one.
  block->recorded = false;
  CudaBackend::free(block);
}

void BuddyAllocator::end_record(Block* block) {
  if (C10_UNLIKELY(block->recorded)) {
    block->recorded = false;
    record_done(block->allocation);
  }
}

void BuddyAllocator::free_engine_block(Block* block) {
  if (is_child()) {
    return;
  }
  std::shared_ptr<c10::GatheredContext> context;
  if (C10_UNLIKELY(isHistoryEnabled())) {
    context = maybeGatherContext(RecordContext::ALL);
    auto shown = context;
    if (shown == nullptr) {
      Lock guard(block->mutex_);
      shown = block->context_when_allocated_;
    }
    trace(TraceEntry::FREE_REQUESTED, block->ptr_, block->size_, std::move(shown));
  }
  block->handed_out.store(false, std::memory_order_relaxed);
  // The thread that frees a block is its last user: all record_event calls happened before.
  if (block->on_streams.load(std::memory_order_relaxed)) {
    free_with_events(block);
  } else {
    end_use(block, context);
  }
}

void BuddyAllocator::end_use(
    Block* block,
    const std::shared_ptr<c10::GatheredContext>& context) {
  end_trace(block, context);
  refusals_.freed(*block);
  if (C10_UNLIKELY(!cache_.put(block))) {
    release(block);
  }
}

void BuddyAllocator::free_with_events(Block* block) {
  if (guard_ != nullptr) {
    guard_->freed(block->grant.address, block->grant.bytes);
  }
  ska::flat_hash_set<CUDAStream> streams;
  {
    Lock guard(block->mutex_);
    streams.swap(block->streams_);
    block->event_count_ = streams.size();
    // A guarded block is to come here again if it is freed twice.
    block->on_streams.store(guard_ != nullptr, std::memory_order_relaxed);
  }
  if (streams.empty()) {
    // Guarded, and no stream has used it.
    end_record(block);
    end_use(block, nullptr);
    return;
  }
  engine_defer(block->grant);
  // Called from destructors of tensors, so nothing may be thrown. A block whose events cannot be recorded
  // keeps its count and is never used again: lost memory is better than a wrong reuse.
  try {
    for (const CUDAStream stream : streams) {
      // A captured copy runs at each replay, and no event says when the last replay is over: so the block
      // keeps its count. PyTorch does not know of other libraries' captures.
      if (stream_is_capturing(stream)) {
        continue;
      }
      pending_.push(stream, PooledEvent::record(stream), block);
    }
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE(
        "pinbuddy could not record an event for a freed pinned block, which will not be used "
        "again: ",
        error.what(),
        " (see: pinbuddy explain 'could not record an event for a freed pinned block')");
  }
}

void BuddyAllocator::end_trace(
    Block* block,
    const std::shared_ptr<c10::GatheredContext>& context) {
  // Also if recording has ended since: the next user must not get the context.
  if (C10_UNLIKELY(isHistoryEnabled() || block->traced.load(std::memory_order_relaxed))) {
    std::shared_ptr<c10::GatheredContext> shown;
    {
      Lock guard(block->mutex_);
      shown.swap(block->context_when_allocated_);
    }
    if (context != nullptr) {
      shown = context;
    }
    block->traced.store(false, std::memory_order_relaxed);
    if (guard_ != nullptr) {
      guard_->idle(block->grant.address, block->grant.bytes);
    }
    trace(TraceEntry::FREE_COMPLETED, block->ptr_, block->size_, std::move(shown));
  }
}

void BuddyAllocator::release(Block* block) {
  const Grant grant = block->grant;
  if (C10_LIKELY(!block->planned)) {
    // Out of the table first: another thread may get the same address as soon as the engine has it.
    table_.put(block);
  }
  engine_release(grant);
  refusals_.released();
}

void BuddyAllocator::flush_cached() {
  if (is_child()) {
    return;
  }
  BlockCache::Flush flush(cache_);
  engine_reused(flush.reused().blocks, flush.reused().bytes);
  while (Block* block = flush.next()) {
    release(block);
  }
}

bool BuddyAllocator::flush_any_cached() {
  if (cache_.any_left()) {
    flush_cached();
    return true;
  }
  cache_.wait_for_flushes();
  return false;
}

void BuddyAllocator::reap() {
  reap_until(PendingBlocks::kAll, nullptr);
}

void BuddyAllocator::reap_until(
    std::size_t most_busy,
    const std::shared_ptr<c10::GatheredContext>& context) {
  if (pending_.empty() || is_child()) {
    return;
  }
  pending_.reap(
      most_busy,
      [this](PooledEvent& event) { return is_over(event); },
      [this, &context](Block* block) {
        bool last = false;
        {
          Lock guard(block->mutex_);
          last = --block->event_count_ == 0;
        }
        if (last) {
          // From pending to live in the engine, before another thread can take it.
          engine_cache(block->grant);
          end_record(block);
          end_use(block, context);
        }
      });
}

Block* BuddyAllocator::find(const void* address, const void* context) {
  Block* block = table_.find(address, context);
  return block != nullptr ? block : planned_.find(address);
}

bool BuddyAllocator::record_event(void* ptr, void* context, AnyStream stream) {
  Block* block = is_child() ? nullptr : find(ptr, context);
  if (block == nullptr) {
    return CudaBackend::record_event(ptr, context, stream);
  }
  Lock guard(block->mutex_);
  TORCH_INTERNAL_ASSERT(block->handed_out.load(std::memory_order_relaxed));
  block->streams_.insert(CUDAStream(stream));
  if (C10_UNLIKELY(block->recorded)) {
    record_use(block->allocation, name_of(CUDAStream(stream)));
  }
  block->on_streams.store(true, std::memory_order_relaxed);
  return true;
}

} // namespace pinbuddy
