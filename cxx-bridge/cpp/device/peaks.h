// The most that there was on a device before the regions of plans were others.
//
// What the allocator below had at most has the regions of that time in it. So before one comes or goes, the peaks are kept as
// they are shown then; those shown later are never less. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace pinbuddy {

class Peaks {
 public:
  using Stats = c10::cuda::CUDACachingAllocator::DeviceStats;

  // As they are shown.
  void keep(Stats stats) {
    each(stats, [](const auto& stat, std::atomic<std::int64_t>& peak) {
      std::int64_t before = peak.load(std::memory_order_relaxed);
      while (before < stat.peak && !peak.compare_exchange_weak(before, stat.peak)) {
      }
    });
  }

  // None of those that are to be shown is less.
  void add_to(Stats& stats) {
    each(stats, [](auto& stat, const std::atomic<std::int64_t>& peak) {
      stat.peak = std::max(stat.peak, peak.load(std::memory_order_relaxed));
    });
  }

  void reset() {
    for (auto& peak : peaks_) {
      peak.store(0, std::memory_order_relaxed);
    }
  }

 private:
  // What a plan's blocks are counted in, and its regions are not.
  template <class Act>
  void each(Stats& stats, Act act) {
    std::size_t number = 0;
    for (auto* all : {&stats.allocation, &stats.active, &stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes}) {
      for (auto& stat : *all) {
        act(stat, peaks_[number++]);
      }
    }
    act(stats.oversize_allocations, peaks_[number]);
  }

  static constexpr std::size_t kTypes = std::tuple_size_v<c10::CachingAllocator::StatArray>;

  std::array<std::atomic<std::int64_t>, 5 * kTypes + 1> peaks_{};
};

} // namespace pinbuddy
