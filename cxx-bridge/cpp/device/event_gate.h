// Whether events may be recorded and asked for: not while anything is captured.
//
// In a capture in CUDA's global mode such a call of any thread fails, and so does the capture. To look once beforehand is not
// enough, since another thread may begin one meanwhile. So who calls holds the gate, which a capture waits for before it begins.
// That is no `Lock`, under which CUDA is called nowhere: only those who begin or end a capture wait for it, as they wait for
// PyTorch's allocator, which waits for events under its own lock.
// A release that tells of a capture only once CUDA's has begun leaves a moment open, to PyTorch's own allocator as well.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace pinbuddy {

class EventGate {
 public:
  // So many captures more. Once it returns, nobody is at an event any more that may not be.
  void hold(int more) {
    const std::unique_lock guard(mutex_);
    held_.fetch_add(more, std::memory_order_relaxed);
  }

  // While it lives no capture begins; false if one is under way.
  class Pass {
   public:
    explicit Pass(EventGate& gate) : guard_(gate.mutex_), given_(gate.held_.load(std::memory_order_relaxed) <= 0) {}
    explicit operator bool() const {
      return given_;
    }

   private:
    const std::shared_lock<std::shared_mutex> guard_;
    const bool given_;
  };

 private:
  std::shared_mutex mutex_;
  std::atomic<int> held_{0};
};

} // namespace pinbuddy
