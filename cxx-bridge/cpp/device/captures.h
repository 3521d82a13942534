// The captures and private pools under way, and which requests are theirs.
//
// The allocator below routes a request to a pool if the pool's filter takes its stream or its thread. The same filters are
// asked here, so that a plan serves what is for none of them. Invariant: a filter is only called while its capture lasts,
// since it may look into the graph.
//
// A pool may be open with nothing captured. Releases that are told of captures apart from pools (2.15) record and query events
// then; earlier ones do neither while any pool is open.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "event_gate.h"

namespace pinbuddy {

// Whether a release tells its allocator of captures.
template <class Upstream>
inline constexpr bool kSaysCaptures = requires(Upstream* it, c10::DeviceIndex device) { it->markCaptureBegin(device); };

class Captures {
 public:
  using Filter = std::function<bool(cudaStream_t)>;

  void begin(c10::DeviceIndex device, c10::MempoolId_t pool, Filter filter) {
    const std::lock_guard guard(mutex_);
    all_.push_back({device, pool, std::move(filter)});
    count_.store(all_.size(), std::memory_order_relaxed);
    if constexpr (!kMarked) {
      events_.hold(1);
    }
  }

  void end(c10::DeviceIndex device, c10::MempoolId_t pool) {
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Capture& it) {
      return it.device == device && it.pool == pool;
    });
    if (found != all_.end()) {
      all_.erase(found);
      if constexpr (!kMarked) {
        events_.hold(-1);
      }
    }
    count_.store(all_.size(), std::memory_order_relaxed);
  }

  // A capture begins, or ends, where releases say so.
  void mark(int change) {
    events_.hold(change);
  }

  // Whether one is under way on any device. Takes no lock.
  bool any() const {
    return count_.load(std::memory_order_relaxed) > 0;
  }

  // Whether events may be recorded and queried.
  EventGate& events() {
    return events_;
  }

  // Whether the allocator below gives back what it has cached: where releases are told of captures, it does so beside one.
  bool releases() const {
    return kMarked || !any();
  }

  // Whether a request of this thread on this stream of the device is for one of them.
  bool takes(c10::DeviceIndex device, cudaStream_t stream) {
    // Not a `Lock`, which has CUDA called under none: filters ask CUDA whether the stream is captured, which waits for nobody.
    // The allocator below calls them under its lock, too.
    const std::lock_guard guard(mutex_);
    return std::any_of(all_.begin(), all_.end(), [&](const Capture& it) {
      return it.device == device && it.filter(stream);
    });
  }

 private:
  using Upstream = c10::cuda::CUDACachingAllocator::CUDAAllocator;
  static constexpr bool kMarked = kSaysCaptures<Upstream>;

  struct Capture {
    c10::DeviceIndex device;
    c10::MempoolId_t pool;
    Filter filter;
  };

  std::atomic<std::size_t> count_{0};
  EventGate events_;
  std::mutex mutex_;
  std::vector<Capture> all_;
};

} // namespace pinbuddy
