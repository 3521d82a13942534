#include "buddy_allocator.h"

#include <c10/util/Exception.h>

#include <mutex>

namespace pinbuddy {
namespace {

using c10::cuda::CUDAStream;

void add(c10::CachingAllocator::Stat& sum, const Counter& counter) {
  sum.current += counter.current;
  sum.peak += counter.peak;
  sum.allocated += counter.allocated;
  sum.freed += counter.freed;
}

} // namespace

BuddyAllocator::BuddyAllocator() : threshold_(engine_threshold()) {}

std::pair<void*, void*> BuddyAllocator::allocate(std::size_t size) {
  if (size < threshold_ || size == 0 || !serves_default_pool()) {
    return CudaBackend::allocate(size);
  }
  reap();
  const Grant grant = engine_request(size);
  if (grant.address == 0) {
    return CudaBackend::allocate(size);
  }
  Block* block = table_.take(grant);
  return {block->ptr_, block};
}

void BuddyAllocator::free(void* context) {
  auto* block = static_cast<Block*>(context);
  if (block != nullptr && block->engine_owned) {
    free_engine_block(block);
  } else {
    CudaBackend::free(context);
  }
}

void BuddyAllocator::free_engine_block(Block* block) {
  ska::flat_hash_set<CUDAStream> streams;
  {
    std::lock_guard<std::mutex> guard(block->mutex_);
    block->allocated_ = false;
    streams.swap(block->streams_);
    block->event_count_ = streams.size();
  }
  if (streams.empty()) {
    give_back(block);
    return;
  }
  engine_defer(block->grant);
  // Destructors of tensors lead here, so nothing may be thrown. A block whose events cannot be
  // recorded keeps its count and is never used again: lost memory is better than a wrong reuse.
  try {
    for (const CUDAStream stream : streams) {
      // What a capture records runs at each replay, and no event tells when the last one is over.
      if (capture_underway() && stream_is_capturing(stream)) {
        continue;
      }
      pending_.push(stream, PooledEvent::record(stream), block);
    }
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE(
        "pinbuddy could not record an event for a freed pinned block, which will not be used "
        "again: ",
        error.what());
  }
}

void BuddyAllocator::give_back(Block* block) {
  const Grant grant = block->grant;
  // Out of the table first: another thread may get the same address as soon as the engine has it.
  table_.put(block);
  engine_release(grant);
}

void BuddyAllocator::reap() {
  if (pending_.empty()) {
    return;
  }
  pending_.reap(
      [this](PooledEvent& event) { return query_event(event); },
      [this](Block* block) {
        bool last = false;
        {
          std::lock_guard<std::mutex> guard(block->mutex_);
          last = --block->event_count_ == 0;
        }
        if (last) {
          give_back(block);
        }
      });
}

bool BuddyAllocator::record_event(void* ptr, void* context, c10::Stream stream) {
  Block* block = table_.find(ptr, context);
  if (block == nullptr) {
    return CudaBackend::record_event(ptr, context, stream);
  }
  std::lock_guard<std::mutex> guard(block->mutex_);
  TORCH_INTERNAL_ASSERT(block->allocated_);
  block->streams_.insert(CUDAStream(stream));
  return true;
}

void BuddyAllocator::empty_cache() {
  CudaBackend::empty_cache();
  reap();
  engine_empty_cache();
}

at::HostStats BuddyAllocator::getStats() {
  at::HostStats stats = CudaBackend::getStats();
  const Counters engine = engine_counters();
  add(stats.allocations, engine.segments);
  add(stats.allocated_bytes, engine.pinned_bytes);
  add(stats.active_requests, engine.live_blocks);
  add(stats.active_bytes, engine.live_bytes);
  stats.num_host_alloc += engine.segments.allocated;
  stats.num_host_free += engine.segments.freed;
  return stats;
}

void BuddyAllocator::resetAccumulatedStats() {
  CudaBackend::resetAccumulatedStats();
  engine_reset_accumulated();
}

void BuddyAllocator::resetPeakStats() {
  CudaBackend::resetPeakStats();
  engine_reset_peaks();
}

} // namespace pinbuddy
