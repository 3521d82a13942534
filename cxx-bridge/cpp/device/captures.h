// The captures and private pools under way, and which requests are theirs.
//
// The allocator below routes a request to a pool if the pool's filter takes its stream or its thread. The same filters are
// asked here, so that a plan serves what is for none of them. Invariant: a filter is only called while its capture lasts,
// since it may look into the graph.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace pinbuddy {

// Whether events may be recorded and asked for: not while anything is captured.
//
// In a capture in CUDA's global mode such a call of any thread fails, and so does the capture. To look once beforehand is not
// enough, since another thread may begin one meanwhile. So who calls holds the gate, which a capture waits for before it begins.
// That is no `Lock`, under which CUDA is called nowhere: only those who begin or end a capture wait for it, as they wait for
// PyTorch's allocator, which waits for events under its own lock.
// A release that tells of a capture only once CUDA's has begun leaves a moment open, to PyTorch's own allocator as well.
class EventGate {
 public:
  // So many captures more. Once it returns, nobody is at an event any more that may not be.
  void hold(int more) {
    const std::unique_lock guard(mutex_);
    held_ += more;
  }

  // While it lives no capture begins; false if one is under way.
  class Pass {
   public:
    explicit Pass(EventGate& gate) : guard_(gate.mutex_), given_(gate.held_ <= 0) {}
    explicit operator bool() const {
      return given_;
    }

   private:
    const std::shared_lock<std::shared_mutex> guard_;
    const bool given_;
  };

 private:
  std::shared_mutex mutex_;
  int held_ = 0;
};

// Whether a release tells its allocator of captures.
template <class Upstream>
inline constexpr bool kSaysCaptures = requires(Upstream* it, c10::DeviceIndex device) { it->markCaptureBegin(device); };

class Captures {
 public:
  using Filter = std::function<bool(cudaStream_t)>;

  void begin(c10::DeviceIndex device, c10::MempoolId_t pool, Filter filter) {
    const std::lock_guard guard(mutex_);
    all_.push_back({device, pool, std::move(filter)});
    changed(1);
  }

  void end(c10::DeviceIndex device, c10::MempoolId_t pool) {
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const Capture& it) {
      return it.device == device && it.pool == pool;
    });
    if (found != all_.end()) {
      all_.erase(found);
      changed(-1);
    }
  }

  // Whether one is under way on any device. Takes no lock.
  bool any() const {
    return count_.load(std::memory_order_relaxed) > 0;
  }

  // Whether events may be recorded and queried. Where releases say so, it is told when a capture begins or ends.
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
  static constexpr bool kMarked = kSaysCaptures<c10::cuda::CUDACachingAllocator::CUDAAllocator>;

  struct Capture {
    c10::DeviceIndex device;
    c10::MempoolId_t pool;
    Filter filter;
  };

  // A pool may be open with nothing captured. Releases that are told of captures apart from pools (2.15) record and query events
  // then; earlier ones do neither while any pool is open.
  void changed(int more) {
    count_.store(all_.size(), std::memory_order_relaxed);
    if constexpr (!kMarked) {
      events_.hold(more);
    }
  }

  std::atomic<std::size_t> count_{0};
  EventGate events_;
  std::mutex mutex_;
  std::vector<Capture> all_;
};

} // namespace pinbuddy
