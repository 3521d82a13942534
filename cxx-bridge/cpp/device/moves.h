// Regions that come and go, of all devices: whether a thread is at it, and how often one was.
//
// A region lies in no plan for a moment before it is the allocator's below again. A request of another thread that fails in that
// moment, or failed just before it, lacks what is there now: it is tried again, as it would have waited for PyTorch's lock and
// found it. Knows no region. Invariant: who has counted a move as begun counts it as done.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace pinbuddy {

class Moves {
 public:
  // Before the first region of several is taken out of its plan, or asked for.
  void begin() {
    under_way_.fetch_add(1);
  }

  // They are where they belong.
  void end() {
    done_.fetch_add(1);
    under_way_.fetch_sub(1);
  }

  // How often regions have come or gone.
  std::uint64_t done() const {
    return done_.load(std::memory_order_relaxed);
  }

  // Whether any have since so many had. Waits for those under way, but not for long: who moves them may need Python's lock,
  // which this thread may have.
  bool since(std::uint64_t before) const {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (under_way_.load() > 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kPause);
    }
    return done_.load() != before;
  }

 private:
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr std::chrono::microseconds kPause{100};

  std::atomic<int> under_way_{0};
  std::atomic<std::uint64_t> done_{0};
};

} // namespace pinbuddy
