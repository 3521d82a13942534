// Reports about the engine's memory in PyTorch's terms: statistics, the list of segments and the history.
//
// Cached blocks are released before each report, so that they appear as idle.
#include "buddy_allocator.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "lock.h"

namespace pinbuddy {
namespace {

// Upstream's and the engine's together; `most` is the largest sum of any moment, if that is known.
void add(Stat& sum, const Counter& counter, std::size_t most = std::numeric_limits<std::int64_t>::max()) {
  const std::int64_t peak = std::min(sum.peak + counter.peak, static_cast<std::int64_t>(most));
  sum.current += counter.current;
  sum.peak = std::max({peak, sum.peak, counter.peak, sum.current});
  sum.allocated += counter.allocated;
  sum.freed += counter.freed;
}

} // namespace

Caches BuddyAllocator::caches() {
  return Caches{cache_.bytes(), cache_.served()};
}

HostStats BuddyAllocator::getStats() {
  HostStats stats = CudaBackend::getStats();
  flush_cached();
  const Counters engine = engine_counters();
  const HostCounts counts = counts_of(stats);
  const Amount most = most_pinned();
  add(counts.allocations, engine.segments, most.blocks);
  add(counts.allocated_bytes, engine.pinned_bytes, most.bytes);
  add(counts.active_requests, engine.active_blocks);
  add(counts.active_bytes, engine.active_bytes);
  stats.num_host_alloc += engine.segments.allocated;
  stats.num_host_free += engine.segments.freed;
  return stats;
}

void BuddyAllocator::resetAccumulatedStats() {
  CudaBackend::resetAccumulatedStats();
  flush_cached();
  engine_reset_accumulated();
}

void BuddyAllocator::resetPeakStats() {
  CudaBackend::resetPeakStats();
  flush_cached();
  engine_reset_peaks();
}

std::vector<HostSegmentInfo> BuddyAllocator::getSegments() {
  auto segments = CudaBackend::getSegments();
  flush_cached();
  for (const Part& part : engine_parts()) {
    HostSegmentInfo info;
    info.address = part.address;
    info.size = part.bytes;
    info.allocated = part.live;
    info.active = part.live || part.pending;
    if (info.active) {
      const void* address = reinterpret_cast<void*>(part.address);
      Block* block = table_.at(address);
      block = block != nullptr ? block : planned_.at(address);
      if (block != nullptr) {
        Lock guard(block->mutex_);
        info.context_when_allocated = block->context_when_allocated_;
      }
    }
    segments.push_back(std::move(info));
  }
  return segments;
}

void BuddyAllocator::segment_came(void* address, std::size_t bytes) {
  pinned(bytes);
  trace(TraceEntry::SEGMENT_ALLOC, address, bytes, nullptr);
  refusals_.forget();
}

void BuddyAllocator::segment_goes(void* address, std::size_t bytes) {
  if (guard_ != nullptr) {
    guard_->unpins(reinterpret_cast<std::size_t>(address), bytes);
  }
  unpinned(bytes);
  trace(TraceEntry::SEGMENT_FREE, address, bytes, nullptr);
}

void BuddyAllocator::segment_went() {
  refusals_.forget();
}

} // namespace pinbuddy
