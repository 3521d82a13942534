// The peaks of a device's statistics, kept whenever those of the allocator below begin anew.
//
// What the allocator below had at most has the regions of that time in it. So before one comes or goes, and before planned blocks
// change where that may hide a peak (src/device/tally.rs), the peaks are kept as they are shown then; those shown later are never less.
// Then the allocator below begins anew, and so all its peaks are kept, of what a plan has nothing to do with as well, such as
// private pools. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "../lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

class Peaks {
 public:
  using Stats = c10::cuda::CUDACachingAllocator::DeviceStats;

  // As they are shown, when so much had passed to the allocator below.
  void keep(Stats stats, std::int64_t passed, const Tally& tally) {
    Lock guard(mutex_);
    each(stats, [](auto& stat, std::int64_t& peak) { peak = stat.peak = std::max(peak, stat.peak); });
    each_pool(stats, [this](const auto& pools) {
      for (const auto& [pool, all] : pools) {
        for (std::size_t type = 0; type < kTypes; ++type) {
          pools_[pool][type] = std::max(pools_[pool][type], all[type].peak);
        }
      }
    });
    tally.read(passed, {slack(stats.allocated_bytes), slack(stats.active_bytes), slack(stats.requested_bytes)});
  }

  // None of those that are to be shown is less.
  void add_to(Stats& stats) {
    Lock guard(mutex_);
    each(stats, [](auto& stat, const std::int64_t& peak) { stat.peak = std::max(stat.peak, peak); });
    each_pool(stats, [this](auto& pools) {
      for (const auto& [pool, peaks] : pools_) {
        for (std::size_t type = 0; type < kTypes; ++type) {
          pools[pool][type].peak = std::max(pools[pool][type].peak, peaks[type]);
        }
      }
    });
  }

  void reset(const Tally& tally) {
    Lock guard(mutex_);
    peaks_ = {};
    pools_.clear();
    tally.forget();
  }

 private:
  // Planned blocks count with all, and with the large pool.
  static std::int64_t slack(const c10::CachingAllocator::StatArray& stats) {
    const auto of = [&](c10::CachingAllocator::StatType type) {
      const auto& stat = stats[static_cast<std::size_t>(type)];
      return stat.peak - stat.current;
    };
    return std::min(of(c10::CachingAllocator::StatType::AGGREGATE), of(c10::CachingAllocator::StatType::LARGE_POOL));
  }

  // Only some releases count private pools.
  template <class Counted, class Act>
  static void each_pool(Counted& stats, Act act) {
    if constexpr (requires { stats.reserved_bytes_by_private_pools; }) {
      act(stats.reserved_bytes_by_private_pools);
    }
  }

  template <class Act>
  void each(Stats& stats, Act act) {
    std::size_t number = 0;
    for (auto* all :
         {&stats.allocation,
          &stats.segment,
          &stats.active,
          &stats.inactive_split,
          &stats.allocated_bytes,
          &stats.reserved_bytes,
          &stats.active_bytes,
          &stats.inactive_split_bytes,
          &stats.requested_bytes}) {
      for (auto& stat : *all) {
        act(stat, peaks_[number++]);
      }
    }
    for (auto* stat : {&stats.oversize_allocations, &stats.oversize_segments}) {
      act(*stat, peaks_[number++]);
    }
  }

  static constexpr std::size_t kTypes = std::tuple_size_v<c10::CachingAllocator::StatArray>;

  std::mutex mutex_;
  std::array<std::int64_t, 9 * kTypes + 2> peaks_{};
  std::map<c10::MempoolId_t, std::array<std::int64_t, kTypes>> pools_;
};

} // namespace pinbuddy
