// Requests for which PyTorch's reserved segment (pinned_reserve_segment_size_mb), and its lists, have nothing: they are
// remembered by their power of two, so that later ones do not ask in vain.
//
// Knows neither the segment nor the lists. Invariant: after a block of a power of two was freed, the next request of
// that power asks again.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// Thrown where upstream would pin memory for a request that the engine serves as well.
struct NothingReserved {};

class Reserved {
 public:
  // How often blocks were freed before a request asked.
  using Frees = std::uint32_t;

  // Whether there may be something for a request of so many bytes.
  bool may_have(std::size_t bytes) const {
    return (nothing_.load(std::memory_order_relaxed) & power_of(bytes)) == 0;
  }

  Frees frees() const {
    return frees_.load(std::memory_order_acquire);
  }

  // There was nothing for a request of so many bytes, which asked after so many frees.
  void has_nothing(std::size_t bytes, Frees before) {
    nothing_.fetch_or(power_of(bytes));
    if (frees_.load() != before) {
      nothing_.fetch_and(~power_of(bytes));
    }
  }

  // A block of so many bytes is in upstream's lists, or soon will be.
  void freed(std::size_t bytes) {
    if (asked_.load(std::memory_order_relaxed)) [[unlikely]] {
      frees_.fetch_add(1);
      nothing_.fetch_and(~power_of(bytes));
    }
  }

  // From now on frees count: called before the first request asks.
  void begin() {
    if (!asked_.load(std::memory_order_relaxed)) [[unlikely]] {
      asked_.store(true);
    }
  }

 private:
  static std::uint64_t power_of(std::size_t bytes) {
    return std::uint64_t{1} << (std::bit_width(bytes - 1) & 63);
  }

  std::atomic<std::uint64_t> nothing_{0};
  std::atomic<Frees> frees_{0};
  std::atomic<bool> asked_{false};
};

} // namespace pinbuddy
