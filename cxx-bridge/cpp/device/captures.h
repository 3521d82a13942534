// The captures and private pools under way on a device, and which requests are theirs.
//
// The allocator below routes a request to a pool if the pool's filter takes its stream or its thread. The same filters are
// asked here, so that a plan serves what is for none of them. Invariant: a filter is only called while its capture lasts,
// since it may look into the graph.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace pinbuddy {

class Captures {
 public:
  using Filter = std::function<bool(cudaStream_t)>;

  void begin(c10::MempoolId_t pool, Filter filter) {
    const std::lock_guard guard(mutex_);
    all_.emplace_back(pool, std::move(filter));
    count_.store(all_.size(), std::memory_order_relaxed);
  }

  // False if the pool is not open.
  bool end(c10::MempoolId_t pool) {
    const std::lock_guard guard(mutex_);
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const auto& it) { return it.first == pool; });
    if (found == all_.end()) {
      return false;
    }
    all_.erase(found);
    count_.store(all_.size(), std::memory_order_relaxed);
    return true;
  }

  // None is under way, as nearly always. Takes no lock.
  bool none() const {
    return count_.load(std::memory_order_relaxed) == 0;
  }

  // Whether a request of this thread on this stream is for one of them.
  bool takes(cudaStream_t stream) {
    // Not a `Lock`, which has CUDA called under none: filters ask CUDA whether the stream is captured, which waits for nobody.
    // The allocator below calls them under its lock, too.
    const std::lock_guard guard(mutex_);
    return std::any_of(all_.begin(), all_.end(), [&](const auto& it) { return it.second(stream); });
  }

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<std::pair<c10::MempoolId_t, Filter>> all_;
};

} // namespace pinbuddy
