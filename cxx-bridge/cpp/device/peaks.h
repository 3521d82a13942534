// The peaks of a device's statistics, kept whenever those of the allocator below begin anew.
//
// What the allocator below had at most has the regions of that time in it. So before one comes or goes, and before planned blocks
// change where that may hide a peak (src/device/tally.rs), the peaks are kept as they are shown then; those shown later are never less.
// Then the allocator below begins anew, and so all its peaks are kept, of what a plan has nothing to do with as well, such as
// private pools. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "../lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

class Peaks {
 public:
  using Stats = c10::cuda::CUDACachingAllocator::DeviceStats;

  // As they are shown, when so much had passed to the allocator below.
  void keep(Stats stats, std::int64_t passed, const Tally& tally) {
    Lock guard(mutex_);
    raise(stats, kept_);
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    tally.had(stats.requested_bytes[all].peak, stats.reserved_bytes[all].peak);
    tally.read(passed, {slack(stats.allocated_bytes), slack(stats.active_bytes), slack(stats.requested_bytes)});
    kept_ = std::move(stats);
  }

  // None of those that are to be shown is less.
  void add_to(Stats& stats) {
    Lock guard(mutex_);
    raise(stats, kept_);
  }

  void reset() {
    Lock guard(mutex_);
    kept_ = {};
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

  static void raise_each(c10::CachingAllocator::StatArray& to, const c10::CachingAllocator::StatArray& from) {
    for (std::size_t type = 0; type < to.size(); ++type) {
      to[type].peak = std::max(to[type].peak, from[type].peak);
    }
  }

  template <class Counted>
  static void raise(Counted& to, const Counted& from) {
    for (const auto counted :
         {&Counted::allocation,
          &Counted::segment,
          &Counted::active,
          &Counted::inactive_split,
          &Counted::allocated_bytes,
          &Counted::reserved_bytes,
          &Counted::active_bytes,
          &Counted::inactive_split_bytes,
          &Counted::requested_bytes}) {
      raise_each(to.*counted, from.*counted);
    }
    for (const auto counted : {&Counted::oversize_allocations, &Counted::oversize_segments}) {
      (to.*counted).peak = std::max((to.*counted).peak, (from.*counted).peak);
    }
    // Only some releases count private pools.
    if constexpr (requires { to.reserved_bytes_by_private_pools; }) {
      for (const auto& [pool, counted] : from.reserved_bytes_by_private_pools) {
        raise_each(to.reserved_bytes_by_private_pools[pool], counted);
      }
    }
  }

  std::mutex mutex_;
  Stats kept_{};
};

} // namespace pinbuddy
