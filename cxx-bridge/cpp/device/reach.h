// What plans can be about at all: asked of every request and every free, before anything else.
//
// Most requests of a program are none of a plan's, and most blocks lie in no region. Invariants: a request that is turned away here
// would get no place; an address that was handed out of a region is within the span.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace pinbuddy {

// From the lowest region that there ever was to the highest. Grows only, so that its ends need not be read together.
class Span {
 public:
  // Before anything of the region is handed out.
  void widen(std::size_t begin, std::size_t bytes) {
    std::size_t low = low_.load(std::memory_order_relaxed);
    while (begin < low && !low_.compare_exchange_weak(low, begin)) {
    }
    std::size_t high = high_.load(std::memory_order_relaxed);
    while (begin + bytes > high && !high_.compare_exchange_weak(high, begin + bytes)) {
    }
  }

  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::size_t>(address);
    return at >= low_.load(std::memory_order_relaxed) && at < high_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> low_{std::numeric_limits<std::size_t>::max()};
  std::atomic<std::size_t> high_{0};
};

// How long a request is that a plan may serve: `least` at least, and not longer than all regions. The second holds only once all
// streams that have a plan are known, since streams are numbered by the requests that are asked about.
class Lengths {
 public:
  // Nothing is, where no plan is used.
  Lengths(bool planned, std::size_t least, std::size_t longest)
      : least_(planned ? least : longest_of_all), longest_(longest) {}

  bool may_be_planned(std::size_t bytes) const {
    return bytes >= least_ && bytes <= most_.load(std::memory_order_relaxed);
  }

  // All streams are known.
  void limit() {
    most_.store(std::max(longest_, least_), std::memory_order_relaxed);
  }

  bool is_limited() const {
    return most_.load(std::memory_order_relaxed) != longest_of_all;
  }

 private:
  static constexpr std::size_t longest_of_all = std::numeric_limits<std::size_t>::max();

  const std::size_t least_;
  const std::size_t longest_;
  std::atomic<std::size_t> most_{longest_of_all};
};

} // namespace pinbuddy
