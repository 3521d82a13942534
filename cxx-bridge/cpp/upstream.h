// Upstream's caching host allocator with the interface of its newest release, whatever the release.
//
// Only this file and settings.h know what releases lack: private pools, and queries of events for others, before
// 2.11, the history and the list of segments before 2.14, a reserved segment before 2.10; in 2.6, statistics and a
// registry of allocators.
// A feature that upstream lacks stays absent: its stand-in here has one answer, or stays empty.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/llvmMathExtras.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#define PINBUDDY_TORCH_FROM(minor) \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))
#define PINBUDDY_HAS_STATISTICS PINBUDDY_TORCH_FROM(8)
#define PINBUDDY_HAS_REGISTRY PINBUDDY_TORCH_FROM(8)
#define PINBUDDY_HAS_RESERVE_SEGMENT PINBUDDY_TORCH_FROM(10)
#define PINBUDDY_HAS_PRIVATE_POOLS PINBUDDY_TORCH_FROM(11)
#define PINBUDDY_HAS_HISTORY PINBUDDY_TORCH_FROM(14)
#define PINBUDDY_HAS_EXTERNAL_PINS PINBUDDY_TORCH_FROM(15)
// Releases that hand out cached blocks that may be too short (pytorch/pytorch#192722).
#define PINBUDDY_IGNORES_SIZES (PINBUDDY_TORCH_FROM(13) && !PINBUDDY_TORCH_FROM(14))

#if !PINBUDDY_HAS_REGISTRY
#include <ATen/cuda/CachingHostAllocator.h>

// Weak, since libtorch_cuda, which defines it, links with our library and not the other way round.
namespace at::cuda {
[[gnu::weak]] void setCachingHostAllocator(HostAllocator* allocator);
}
#endif

namespace pinbuddy {

// Upstream's block, and what the release records about it besides its streams.
struct UpstreamBlock : at::HostBlock<c10::cuda::CUDAStream> {
  using at::HostBlock<c10::cuda::CUDAStream>::HostBlock;

#if !PINBUDDY_HAS_HISTORY
  // Stays empty.
  std::shared_ptr<c10::GatheredContext> context_when_allocated_;
#endif

  void set_allocated(bool now) {
#if PINBUDDY_HAS_HISTORY
    allocated_.store(now, std::memory_order_relaxed);
#else
    allocated_ = now;
#endif
  }

  // Whether it is from the default pool, outside any capture and with no history.
  bool is_ordinary() const {
#if PINBUDDY_HAS_PRIVATE_POOLS
    if (was_allocated_during_stream_capture_) {
      return false;
    }
#endif
    return is_of_default_pool() && context_when_allocated_ == nullptr;
  }

  bool is_of_default_pool() const {
#if PINBUDDY_HAS_PRIVATE_POOLS
    return owning_pool_ == c10::MempoolId_t{0, 0};
#else
    return true;
#endif
  }
};

#if PINBUDDY_HAS_RESERVE_SEGMENT
using ReserveSegment = at::PinnedReserveSegment;
#else
// Never there.
struct ReserveSegment {
  ReserveSegment() = default;
  ReserveSegment(void*, std::size_t) {}
  bool initialized() const {
    return false;
  }
  bool owns(void*) const {
    return false;
  }
  void* allocate(std::size_t) {
    return nullptr;
  }
};
#endif

#if PINBUDDY_HAS_HISTORY
using HostSegmentInfo = at::HostSegmentInfo;
#else
// Never used.
struct HostSegmentInfo {
  std::size_t address = 0;
  std::size_t size = 0;
  bool allocated = false;
  bool active = false;
  std::shared_ptr<c10::GatheredContext> context_when_allocated;
};
#endif

#if PINBUDDY_HAS_STATISTICS
using HostStats = at::HostStats;
using Stat = c10::CachingAllocator::Stat;
#else
// Never used.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
  void increase(int64_t) {}
};
struct HostStats {
  Stat allocations;
  Stat allocated_bytes;
  Stat active_requests;
  Stat active_bytes;
  int64_t num_host_alloc = 0;
  int64_t num_host_free = 0;
};
#endif

// Host statistics, by the newest release's names.
struct HostCounts {
  Stat& allocations;
  Stat& allocated_bytes;
  Stat& active_requests;
  Stat& active_bytes;
};

inline HostCounts counts_of(HostStats& stats) {
#if PINBUDDY_TORCH_FROM(10) || !PINBUDDY_HAS_STATISTICS
  return {stats.allocations, stats.allocated_bytes, stats.active_requests, stats.active_bytes};
#else
  return {stats.segment, stats.reserved_bytes, stats.allocation, stats.allocated_bytes};
#endif
}

// The type of a stream in record_event.
#if PINBUDDY_HAS_REGISTRY
using AnyStream = c10::Stream;
#else
using AnyStream = c10::cuda::CUDAStream;
#endif

template <typename E, typename B>
class Upstream : public at::CachingHostAllocatorImpl<c10::cuda::CUDAStream, E, B> {
#if !PINBUDDY_HAS_STATISTICS
 public:
  virtual HostStats getStats() {
    return {};
  }
  virtual void resetAccumulatedStats() {}
  virtual void resetPeakStats() {}

 protected:
  struct {
    std::mutex timing_mutex_;
    Stat host_alloc_time;
    Stat host_free_time;
  } stats_;
#endif

#if PINBUDDY_HAS_PRIVATE_POOLS
 protected:
  // Whether upstream would look in its ordinary lists for this request.
  bool uses_ordinary_lists() {
    return this->serves_default_pool();
  }
#else
 protected:
  // Upstream has no other lists, and serves captures from them, too.
  bool uses_ordinary_lists() const {
    return true;
  }

  virtual c10::cuda::CUDAStream get_current_stream() const = 0;
  virtual bool stream_is_capturing(c10::cuda::CUDAStream stream) const = 0;

  // These releases keep to themselves how their events are queried.
  void process_events_of_default_pool() {}

  // These releases do not count captures.
  bool capture_underway() const {
    return true;
  }

  // The engine stays out of captures in these releases, too. The default stream cannot be captured.
  bool serves_default_pool() {
    const auto stream = get_current_stream();
    return stream.id() == 0 || !stream_is_capturing(stream);
  }
#endif

#if PINBUDDY_IGNORES_SIZES
 private:
  // As upstream, the block freed last, but only one that is long enough for the request.
  B* get_free_block(
      std::size_t size,
      at::HostBlockPool<c10::cuda::CUDAStream, E, B>& pool) override {
    const auto index = c10::llvm::Log2_64_Ceil(size);
    auto& bucket = pool.free_list_[index];
    std::lock_guard<std::mutex> guard(bucket.mutex_);
    const auto fits = [size](const B* block) { return block->size_ >= size; };
    const auto last = std::find_if(bucket.list_.rbegin(), bucket.list_.rend(), fits);
    if (last == bucket.list_.rend()) {
      return nullptr;
    }
    B* block = *last;
    bucket.list_.erase(std::prev(last.base()));
    block->set_allocated(true);
    this->stats_.active_bucket_stats[index].increase(1);
    // As much as its free will subtract.
    this->stats_.active_bytes_bucket_stats[index].increase(block->size_);
    return block;
  }
#endif

#if PINBUDDY_HAS_HISTORY
 public:
  using typename at::CachingHostAllocatorImpl<c10::cuda::CUDAStream, E, B>::TraceEntry;

 protected:
  // Of the default pool. Does nothing unless the history is recorded.
  [[gnu::noinline]] void trace(
      typename TraceEntry::Action action,
      void* address,
      std::size_t bytes,
      std::shared_ptr<c10::GatheredContext> context) {
    this->record_trace(
        action,
        reinterpret_cast<std::size_t>(address),
        bytes,
        nullptr,
        c10::MempoolId_t{0, 0},
        std::move(context));
  }
#else
 public:
  struct TraceEntry {
    enum Action { ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE };
  };
  enum class RecordContext { STATE, ALL };

  bool isHistoryEnabled() const {
    return false;
  }
  virtual std::vector<HostSegmentInfo> getSegments() {
    return {};
  }

 protected:
  std::shared_ptr<c10::GatheredContext> maybeGatherContext(RecordContext) {
    return nullptr;
  }
  void trace(typename TraceEntry::Action, void*, std::size_t, std::shared_ptr<c10::GatheredContext>) {}
#endif
};

#if PINBUDDY_HAS_REGISTRY
// Upstream's interface; it tells the implementation before the history is recorded.
template <typename T, c10::DeleterFnPtr deleter>
struct UpstreamInterface : at::CachingHostAllocatorInterface<T, deleter> {
  using at::CachingHostAllocatorInterface<T, deleter>::CachingHostAllocatorInterface;

#if PINBUDDY_HAS_HISTORY
  void record_history(
      bool enabled,
      c10::CachingDeviceAllocator::CreateContextFn context_recorder,
      std::size_t max_entries,
      c10::CachingDeviceAllocator::RecordContext when,
      bool clear_history) override {
    if (enabled) {
      this->impl_->before_recording();
    }
    at::CachingHostAllocatorInterface<T, deleter>::record_history(
        enabled, std::move(context_recorder), max_entries, when, clear_history);
  }
#endif
};

// Registers an allocator ahead of the built-in one, which has the lowest priority and may register later.
inline void register_host_allocator(at::HostAllocator* allocator) {
  at::setHostAllocator(c10::DeviceType::CUDA, allocator, /*priority=*/1);
}
#else
// The interface that our series for sources adds.
template <typename T, c10::DeleterFnPtr deleter>
struct UpstreamInterface final : at::cuda::HostAllocator {
  explicit UpstreamInterface(std::unique_ptr<T> impl) : impl_(std::move(impl)) {}

  at::DataPtr allocate(std::size_t size) override {
    const auto made = impl_->allocate(size);
    return {made.first, made.second, deleter, c10::DeviceType::CPU};
  }
  void free(void* context) {
    impl_->free(context);
  }
  bool record_event(void* ptr, void* context, c10::cuda::CUDAStream stream) override {
    return impl_->record_event(ptr, context, stream);
  }
  void empty_cache() override {
    impl_->empty_cache();
  }
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    impl_->copy_data(dest, src, count);
  }

  std::unique_ptr<T> impl_;
};

inline void register_host_allocator(at::cuda::HostAllocator* allocator) {
  // Null in a libtorch_cuda without our series.
  if (at::cuda::setCachingHostAllocator != nullptr) {
    at::cuda::setCachingHostAllocator(allocator);
  }
}
#endif

} // namespace pinbuddy
