// Pins and unpins, frees and events (cuda_backend.h).
#include "cuda_backend.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "driver_wait.h"
#include "lock.h"
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

template <typename Act>
int64_t microseconds_of(Act act) {
  const auto start = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

// Frees are called from tensors' destructors, where an exception would end the program.
template <typename Act>
void forgiven(Act act) {
  try {
    act();
  } catch (const std::exception& error) {
    if (!settings::pinned_free_catch_all()) {
      throw;
    }
    TORCH_WARN(
        "pinned_free_catch_all: could not free pinned memory: ",
        error.what(),
        " (see: pinbuddy explain 'could not free pinned memory')");
  }
}

} // namespace

void* CudaBackend::pin_counted(std::size_t bytes, c10::DeviceIndex fallback) {
  PinnedRegion region{};
  const auto elapsed = microseconds_of([&] { region = pin(bytes, fallback); });
  {
    Lock guard(regions_mutex_);
    regions_[region.address] = region;
  }
  count_pin(elapsed);
  return region.address;
}

void CudaBackend::unpin_counted(void* address) {
  PinnedRegion region{address, PinnedBy::HostAlloc};
  {
    Lock guard(regions_mutex_);
    const auto found = regions_.find(address);
    TORCH_INTERNAL_ASSERT(found != regions_.end(), "no region was pinned at ", address);
    region = found->second;
    // Before it is unpinned: another region may be at this address as soon as this one is gone.
    regions_.erase(found);
  }
  try {
    count_unpin(microseconds_of([&] { unpin(region); }));
  } catch (...) {
    Lock guard(regions_mutex_);
    regions_[address] = region;
    throw;
  }
}

void CudaBackend::count_pin(int64_t microseconds) {
  Lock guard(stats_.timing_mutex_);
  stats_.host_alloc_time.increase(microseconds);
}

void CudaBackend::count_unpin(int64_t microseconds) {
  Lock guard(stats_.timing_mutex_);
  stats_.host_free_time.increase(microseconds);
}

void CudaBackend::free(void* context) {
  auto* block = static_cast<Block*>(context);
  const std::size_t bytes = block != nullptr ? block->size_ : 0;
  free_or_cache(block);
  reserved_.freed(bytes);
}

void CudaBackend::free_or_cache(Block* block) {
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
  forgiven([&] { Upstream::free(block); });
  finish_frees();
}

bool CudaBackend::can_be_cached(const Block& block) const {
  // The thread that frees a block is its last user: everything done to it happened before.
  return block.streams_.empty() && block.is_ordinary() && lists_are_quiet() &&
      is_rounded(block.size_) && is_power(block.size_);
}

void CudaBackend::finish_frees() {
  // Another thread's empty_cache may have put some of them aside: what the driver refuses must not end the program in this
  // thread's destructor. It is tried again when the cache is emptied, which says so.
  const std::exception_ptr refused = unpin_doomed();
  if (refused && settings::pinned_free_catch_all()) {
    forgiven([&] { std::rethrow_exception(refused); });
  }
}

void CudaBackend::unpin_doomed_or_throw() {
  if (const std::exception_ptr first = unpin_doomed()) {
    std::rethrow_exception(first);
  }
}

void CudaBackend::empty_cache() {
  flush();
  Upstream::empty_cache();
  {
    Lock guard(doomed_mutex_);
    doomed_.insert(doomed_.end(), refused_.begin(), refused_.end());
    refused_.clear();
    any_doomed_.store(!doomed_.empty(), std::memory_order_relaxed);
  }
  unpin_doomed_or_throw();
}

void CudaBackend::allocate_host_memory(std::size_t size, void** ptr) {
  unpin_doomed_or_throw();
  auto& reserve = reserve_segment();
  *ptr = reserve.initialized() ? reserve.allocate(size) : nullptr;
  if (*ptr == nullptr) {
    if (only_reserved) {
      throw NothingReserved{};
    }
    *ptr = pin_counted(size);
  }
  pinned(size);
}

void CudaBackend::pinned(std::size_t bytes) {
  Lock guard(stats_.timing_mutex_);
  pinned_ += {1, bytes};
  most_pinned_ = {std::max(most_pinned_.blocks, pinned_.blocks), std::max(most_pinned_.bytes, pinned_.bytes)};
}

void CudaBackend::unpinned(std::size_t bytes) {
  Lock guard(stats_.timing_mutex_);
  pinned_ = {pinned_.blocks - 1, pinned_.bytes - bytes};
}

bool CudaBackend::is_reserved(const Block& block) {
  auto& reserve = reserve_segment();
  return reserve.initialized() && reserve.owns(block.ptr_);
}

void CudaBackend::free_block(Block* block) {
  unpinned(block->size_);
  // The reserve segment only ever moves its pointer up.
  if (is_reserved(*block)) {
    return;
  }
  Lock guard(doomed_mutex_);
  doomed_.push_back(block->ptr_);
  any_doomed_.store(true, std::memory_order_relaxed);
}

std::exception_ptr CudaBackend::unpin_doomed() {
  if (!any_doomed_.load(std::memory_order_relaxed)) {
    return nullptr;
  }
  // Takes all of them at once, so that other threads do not wait while this one unpins.
  std::vector<void*> mine;
  {
    Lock guard(doomed_mutex_);
    mine.swap(doomed_);
    any_doomed_.store(false, std::memory_order_relaxed);
  }
  const DriverWait wait(/*in_request=*/false);
  std::exception_ptr first;
  for (void* address : mine) {
    try {
      unpin_counted(address);
    } catch (...) {
      first = first ? first : std::current_exception();
      Lock guard(doomed_mutex_);
      refused_.push_back(address);
    }
  }
  return first;
}

void CudaBackend::record_stream(
    std::optional<std::vector<PooledEvent>>& events,
    c10::cuda::CUDAStream stream) {
  events->push_back(PooledEvent::record(stream));
  if (frees_of_default_pool) {
    events->back().counted = true;
    outstanding_.fetch_add(1, std::memory_order_relaxed);
  }
  events->back().allocation = freeing_recorded;
}

bool CudaBackend::query_event(PooledEvent& event) {
  bool over = true;
  // Upstream drops an event whose query fails.
  const auto count = c10::make_scope_exit([&] {
    if (over && std::exchange(event.counted, false)) {
      outstanding_.fetch_sub(1, std::memory_order_relaxed);
    }
  });
  over = is_over(event);
  if (over && C10_UNLIKELY(event.allocation != 0)) {
    record_done(std::exchange(event.allocation, 0));
  }
  return over;
}

bool CudaBackend::is_over(PooledEvent& event) {
  if (C10_LIKELY(!capture_underway())) {
    return event.completed();
  }
  // In the ordinary mode this query would invalidate a capture in progress.
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
  return event.completed();
}

c10::cuda::CUDAStream CudaBackend::get_current_stream() const {
  return c10::cuda::getCurrentCUDAStream();
}

bool CudaBackend::stream_is_capturing(c10::cuda::CUDAStream stream) const {
  cudaStreamCaptureStatus status{};
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

bool CudaBackend::pinned_use_background_threads() {
  return settings::pinned_use_background_threads();
}

ReserveSegment& CudaBackend::reserve_segment() {
  static ReserveSegment segment = [this]() -> ReserveSegment {
    const std::size_t bytes = settings::pinned_reserve_segment_size();
    if (bytes == 0) {
      return {};
    }
    return {pin_counted(bytes), bytes};
  }();
  return segment;
}

} // namespace pinbuddy
