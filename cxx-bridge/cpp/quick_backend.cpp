#include "quick_backend.h"

#include <c10/util/ScopeExit.h>
#include <c10/util/llvmMathExtras.h>

#include <algorithm>
#include <exception>

#include "setting.h"
#include "settings.h"

namespace pinbuddy {
namespace {

// Whether the block that this thread frees is of the default pool: upstream's call to record its events
// does not say.
thread_local bool frees_of_default_pool = false;

// Not std::has_single_bit: without -mpopcnt that counts them, by a function of libgcc's.
bool is_power(std::size_t bytes) {
  return (bytes & (bytes - 1)) == 0;
}

} // namespace

std::pair<void*, void*> QuickBackend::allocate(std::size_t size) {
  if (C10_UNLIKELY(size == 0)) {
    return CudaBackend::allocate(size);
  }
  // Upstream decides for other pools, for captures (which may be served from the default pool's lists), and
  // while it has events to query first.
  if (C10_UNLIKELY(!lists_are_quiet() || !uses_ordinary_lists() || limit_changed())) {
    flush_any();
    return allocate_to_cache(size);
  }
  if (!is_rounded(size)) {
    return allocate_to_cache(size);
  }
  const std::size_t bytes = c10::llvm::PowerOf2Ceil(size);
  Block* block = cache_.take(bytes);
  if (C10_UNLIKELY(block == nullptr)) {
    // Blocks freed from here on go to upstream's lists, where the request will look.
    const BlockCache::Paused paused(cache_);
    block = cache_.take_last(bytes);
    if (block == nullptr) {
      cache_.wait_for_flushes();
      return allocate_to_cache(size);
    }
  }
  block->set_allocated(true);
  return {block->ptr_, block};
}

bool QuickBackend::limit_changed() {
  const std::size_t now =
      std::min(settings::pinned_max_round_threshold(), settings::pinned_max_cached_size());
  if (C10_LIKELY(now == most_rounded_.load(std::memory_order_relaxed))) {
    return false;
  }
  most_rounded_.store(now, std::memory_order_relaxed);
  return true;
}

std::pair<void*, void*> QuickBackend::allocate_to_cache(std::size_t size) {
  const auto made = CudaBackend::allocate(size);
  // What it found to be free, and is not to be cached.
  finish_frees();
  cache_.assign(static_cast<Block*>(made.second), /*home=*/0, /*cacheable=*/true);
  return made;
}

bool QuickBackend::may_be_reserved(std::size_t size) {
  if (settings::pinned_reserve_segment_size() == 0) {
    reserves_.store(false, std::memory_order_relaxed);
    return false;
  }
  reserved_.begin();
  return reserved_.may_have(size);
}

std::pair<void*, void*> QuickBackend::allocate_reserved(std::size_t size) {
  const auto before = reserved_.frees();
  // A block whose events are outstanding comes back unseen.
  const bool may_come_back = !lists_are_quiet();
  try {
    const Setting only(only_reserved, true);
    return QuickBackend::allocate(size);
  } catch (const NothingReserved&) {
    if (!may_come_back) {
      reserved_.has_nothing(size, before);
    }
  } catch (const c10::Error&) {
    // The segment itself cannot be pinned: who needs upstream's memory is told by it.
    reserved_.has_nothing(size, before);
  }
  return {nullptr, nullptr};
}

void QuickBackend::free(void* context) {
  auto* block = static_cast<Block*>(context);
  const std::size_t bytes = block != nullptr ? block->size_ : 0;
  free_or_cache(block);
  reserved_.freed(bytes);
}

void QuickBackend::free_or_cache(Block* block) {
  if (block != nullptr && can_be_cached(*block)) {
    // As upstream does, so that later misuse is noticed.
    block->set_allocated(false);
    if (C10_LIKELY(cache_.put(block))) {
      return;
    }
  }
  // In the order in which they were freed.
  flush_any();
  frees_of_default_pool = block != nullptr && block->is_of_default_pool();
  CudaBackend::free(block);
}

bool QuickBackend::can_be_cached(const Block& block) const {
  // The thread that frees a block is its last user: everything done to it happened before.
  return block.streams_.empty() && block.is_ordinary() && lists_are_quiet() &&
      is_rounded(block.size_) && is_power(block.size_);
}

void QuickBackend::record_stream(
    std::optional<std::vector<PooledEvent>>& events,
    c10::cuda::CUDAStream stream) {
  CudaBackend::record_stream(events, stream);
  if (frees_of_default_pool) {
    events->back().counted = true;
    outstanding_.fetch_add(1, std::memory_order_relaxed);
  }
  events->back().allocation = freeing_recorded;
}

bool QuickBackend::query_event(PooledEvent& event) {
  bool over = true;
  // Upstream drops an event whose query fails.
  const auto count = c10::make_scope_exit([&] {
    if (over && std::exchange(event.counted, false)) {
      outstanding_.fetch_sub(1, std::memory_order_relaxed);
    }
  });
  over = CudaBackend::query_event(event);
  if (over && C10_UNLIKELY(event.allocation != 0)) {
    record_done(std::exchange(event.allocation, 0));
  }
  return over;
}

void QuickBackend::query_outstanding() {
  // A plan is made of when blocks were found to be over, and a run with the plan asks no more often. With background threads
  // that thread queries them.
  if (!record_is_on() && !pinned_use_background_threads()) {
    process_events_of_default_pool();
  }
  finish_frees();
}

void QuickBackend::flush_any() {
  if (cache_.bytes() != 0) {
    flush();
  } else {
    cache_.wait_for_flushes();
  }
}

void QuickBackend::flush() {
  std::exception_ptr failed;
  {
    BlockCache::Flush flushed(cache_);
    reused_blocks_.fetch_add(flushed.reused().blocks, std::memory_order_relaxed);
    reused_bytes_.fetch_add(flushed.reused().bytes, std::memory_order_relaxed);
    while (Block* block = flushed.next()) {
      try {
        free_to_lists(block);
      } catch (...) {
        // The other blocks still go back to upstream.
        failed = std::current_exception();
      }
    }
  }
  finish_frees();
  if (failed) {
    std::rethrow_exception(failed);
  }
}

void QuickBackend::before_recording() {
  flush_any();
}

void QuickBackend::empty_cache() {
  flush();
  CudaBackend::empty_cache();
}

HostStats QuickBackend::getStats() {
  flush();
  HostStats stats = CudaBackend::getStats();
  const auto blocks = static_cast<int64_t>(reused_blocks_.load(std::memory_order_relaxed));
  const auto bytes = static_cast<int64_t>(reused_bytes_.load(std::memory_order_relaxed));
  const HostCounts counts = counts_of(stats);
  counts.active_requests.allocated += blocks;
  counts.active_requests.freed += blocks;
  counts.active_bytes.allocated += bytes;
  counts.active_bytes.freed += bytes;
  return stats;
}

void QuickBackend::resetAccumulatedStats() {
  flush();
  CudaBackend::resetAccumulatedStats();
  reused_blocks_.store(0, std::memory_order_relaxed);
  reused_bytes_.store(0, std::memory_order_relaxed);
}

void QuickBackend::resetPeakStats() {
  flush();
  CudaBackend::resetPeakStats();
}

std::vector<HostSegmentInfo> QuickBackend::getSegments() {
  flush();
  return CudaBackend::getSegments();
}

void QuickBackend::before_fork() {
  cache_.before_fork();
}

void QuickBackend::after_fork(bool in_child) {
  cache_.after_fork(in_child);
}

} // namespace pinbuddy
