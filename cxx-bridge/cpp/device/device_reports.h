// Planned device memory in PyTorch's reports: blocks of a plan count as blocks, and a region as reserved memory, once.
//
// To the allocator below a region is one block in use. Here that block is replaced with what lies in it. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stream_memory.h"

namespace pinbuddy {

// In the order of src/device/tally.rs.
using Planned = std::array<Counter, 10>;

// The index of all memory, and of the pool for large requests.
constexpr std::size_t kAllAndLarge[] = {
    static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE),
    static_cast<std::size_t>(c10::CachingAllocator::StatType::LARGE_POOL)};

// Of what the allocator below counts, `regions` are the plan's: `blocks` come in their place. At its peak, which is since these
// regions came (peaks.h), there were so many or so long `blocks_then`.
inline void replace(Stat& stat, const Counter& regions, const Counter& blocks, std::int64_t blocks_then) {
  stat.current += blocks.current - regions.current;
  stat.peak = std::max(stat.current, stat.peak - regions.current + blocks_then);
  stat.allocated += blocks.allocated - regions.allocated;
  stat.freed += blocks.freed - regions.freed;
}

inline void replace_all(
    c10::CachingAllocator::StatArray& stats, const Counter& regions, const Counter& blocks, std::int64_t blocks_then) {
  for (const std::size_t type : kAllAndLarge) {
    replace(stats[type], regions, blocks, blocks_then);
  }
}

// What is idle in regions: it comes with a region and when nobody uses a block any more.
inline void add_idle(c10::CachingAllocator::StatArray& stats, const Counter& regions, const Counter& active) {
  for (const std::size_t type : kAllAndLarge) {
    auto& stat = stats[type];
    stat.current += regions.current - active.current;
    stat.peak = std::max(stat.peak, stat.current);
    stat.allocated += regions.allocated + active.freed;
    stat.freed += regions.freed + active.allocated;
  }
}

// The statistics of the allocator below, with the blocks of a device's streams in place of their regions. Peaks of counts are upper
// bounds: what the allocator below and each stream had at most may not have been at the same time. Peaks of bytes are those since
// the peaks were kept (src/device/tally.rs).
inline void add_planned(c10::cuda::CUDACachingAllocator::DeviceStats& stats, const Planned& planned) {
  const auto& [count, bytes, requested, active, active_bytes, regions, region_bytes, region_requested, oversize, oversize_regions] =
      planned;
  // How many: the most of both, perhaps not at the same time.
  replace_all(stats.allocation, regions, count, count.peak);
  replace_all(stats.active, regions, active, active.peak);
  // How long: where a new peak was possible, the peaks were kept before planned bytes changed (src/device/tally.rs).
  replace_all(stats.allocated_bytes, region_bytes, bytes, bytes.current);
  replace_all(stats.active_bytes, region_bytes, active_bytes, active_bytes.current);
  replace_all(stats.requested_bytes, region_requested, requested, requested.current);
  replace(stats.oversize_allocations, oversize_regions, oversize, oversize.peak);
  add_idle(stats.inactive_split_bytes, region_bytes, active_bytes);
}

// The same as `add_planned` for a snapshot's list of blocks, with what the history knows of who asked for them.
inline void show_planned(
    c10::cuda::CUDACachingAllocator::SnapshotInfo& info,
    StreamMemory& memory,
    DeviceHistory& history) {
  const auto parts = memory.plan().shown();
  for (auto& segment : info.segments) {
    std::vector<c10::CachingDeviceAllocator::BlockInfo> blocks;
    std::size_t address = segment.address;
    for (auto& block : segment.blocks) {
      const std::size_t begin = address;
      address += block.size;
      if (memory.region_of(reinterpret_cast<void*>(begin)) != reinterpret_cast<void*>(begin)) {
        blocks.push_back(std::move(block));
        continue;
      }
      segment.allocated_size -= block.size;
      segment.active_size -= block.size;
      segment.requested_size -= block.requested_size;
      std::size_t end = begin;
      const auto push = [&](std::size_t until, std::size_t requested, bool live, bool active) {
        if (until > end) {
          auto& shown = blocks.emplace_back();
          shown.size = until - end;
          shown.requested_size = requested;
          shown.allocated = live;
          shown.active = active;
          segment.allocated_size += live ? shown.size : 0;
          segment.active_size += shown.active ? shown.size : 0;
          segment.requested_size += shown.requested_size;
          end = until;
        }
      };
      for (const StreamPart& part : parts) {
        if (part.address >= begin && part.address < address) {
          push(part.address, 0, false, false);
          push(part.address + part.bytes, part.requested, part.live, /*active=*/true);
          blocks.back().context_when_allocated = history.context_of(part.address);
        }
      }
      push(address, 0, false, false);
    }
    segment.blocks = std::move(blocks);
  }
}

} // namespace pinbuddy
