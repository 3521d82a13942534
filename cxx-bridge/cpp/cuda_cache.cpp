// Requests, from caches of freed blocks or upstream's lists behind them; flushes, and reports (cuda_backend.h).
#include "cuda_backend.h"

#include <c10/util/llvmMathExtras.h>

#include <algorithm>
#include <exception>

#include "lock.h"
#include "setting.h"
#include "settings.h"

namespace pinbuddy {

std::pair<void*, void*> CudaBackend::allocate(std::size_t size) {
  if (C10_UNLIKELY(size == 0)) {
    return Upstream::allocate(size);
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

bool CudaBackend::limit_changed() {
  const std::size_t now =
      std::min(settings::pinned_max_round_threshold(), settings::pinned_max_cached_size());
  if (C10_LIKELY(now == most_rounded_.load(std::memory_order_relaxed))) {
    return false;
  }
  most_rounded_.store(now, std::memory_order_relaxed);
  return true;
}

std::pair<void*, void*> CudaBackend::allocate_to_cache(std::size_t size) {
  const auto made = Upstream::allocate(size);
  // What it found to be free, and is not to be cached.
  finish_frees();
  cache_.assign(static_cast<Block*>(made.second), /*home=*/0, /*cacheable=*/true);
  return made;
}

bool CudaBackend::may_be_reserved(std::size_t size) {
  if (settings::pinned_reserve_segment_size() == 0) {
    reserves_.store(false, std::memory_order_relaxed);
    return false;
  }
  reserved_.begin();
  return reserved_.may_have(size);
}

std::pair<void*, void*> CudaBackend::allocate_reserved(std::size_t size) {
  const auto before = reserved_.frees();
  // A block whose events are outstanding comes back unseen.
  const bool may_come_back = !lists_are_quiet();
  try {
    const Setting only(only_reserved, true);
    return CudaBackend::allocate(size);
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

void CudaBackend::query_outstanding() {
  // A plan is made of when blocks were found to be over, and a run with the plan asks no more often. With background threads
  // that thread queries them.
  if (!record_is_on() && !pinned_use_background_threads()) {
    process_events_of_default_pool();
  }
  finish_frees();
}

void CudaBackend::flush_any() {
  if (cache_.bytes() != 0) {
    flush();
  } else {
    cache_.wait_for_flushes();
  }
}

void CudaBackend::flush() {
  std::exception_ptr failed;
  {
    BlockCache::Flush flushed(cache_);
    reused_blocks_.fetch_add(flushed.reused().blocks, std::memory_order_relaxed);
    reused_bytes_.fetch_add(flushed.reused().bytes, std::memory_order_relaxed);
    while (Block* block = flushed.next()) {
      try {
        Upstream::free(block);
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

void CudaBackend::before_recording() {
  flush_any();
}

HostStats CudaBackend::getStats() {
  flush();
  HostStats stats = Upstream::getStats();
  const auto blocks = static_cast<int64_t>(reused_blocks_.load(std::memory_order_relaxed));
  const auto bytes = static_cast<int64_t>(reused_bytes_.load(std::memory_order_relaxed));
  const HostCounts counts = counts_of(stats);
  counts.active_requests.allocated += blocks;
  counts.active_requests.freed += blocks;
  counts.active_bytes.allocated += bytes;
  counts.active_bytes.freed += bytes;
  return stats;
}

void CudaBackend::resetAccumulatedStats() {
  flush();
  Upstream::resetAccumulatedStats();
  reused_blocks_.store(0, std::memory_order_relaxed);
  reused_bytes_.store(0, std::memory_order_relaxed);
}

void CudaBackend::resetPeakStats() {
  flush();
  Upstream::resetPeakStats();
  Lock guard(stats_.timing_mutex_);
  most_pinned_ = pinned_;
}

Amount CudaBackend::most_pinned() {
  Lock guard(stats_.timing_mutex_);
  return most_pinned_;
}

std::vector<HostSegmentInfo> CudaBackend::getSegments() {
  flush();
  return Upstream::getSegments();
}

void CudaBackend::before_fork() {
  cache_.before_fork();
}

void CudaBackend::after_fork(bool in_child) {
  cache_.after_fork(in_child);
}

} // namespace pinbuddy
