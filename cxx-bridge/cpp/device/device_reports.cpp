// What device_reports.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "device_reports.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "profiling.h"

namespace pinbuddy {
namespace {

using device_memory_stat = c10::CachingAllocator::StatArray;

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
constexpr auto kLarge = static_cast<std::size_t>(c10::CachingAllocator::StatType::LARGE_POOL);

// Of what the allocator below counts, `regions` are the plan's: `blocks` come in their place. At its peak, which is since these
// regions came (peaks.h), there were so many or so long `blocks_then`.
void replace(Stat& stat, const Counter& regions, const Counter& blocks, std::int64_t blocks_then) {
  stat.current += blocks.current - regions.current;
  stat.peak = std::max(stat.current, stat.peak - regions.current + blocks_then);
  stat.allocated += blocks.allocated - regions.allocated;
  stat.freed += blocks.freed - regions.freed;
}

// How many: the most of both, perhaps not at the same time.
void replace_count(device_memory_stat& stats, const Counter& regions, const Counter& blocks) {
  for (const std::size_t type : {kAll, kLarge}) {
    replace(stats[type], regions, blocks, blocks.peak);
  }
}

// How long: where a new peak was possible, the peaks were kept before planned bytes changed (src/device/tally.rs).
void replace_bytes(device_memory_stat& stats, const Counter& regions, const Counter& blocks) {
  for (const std::size_t type : {kAll, kLarge}) {
    replace(stats[type], regions, blocks, blocks.current);
  }
}

// What is idle in regions: it comes with a region and when nobody uses a block any more.
void add_idle(device_memory_stat& stats, const Counter& regions, const Counter& active) {
  for (const std::size_t type : {kAll, kLarge}) {
    auto& stat = stats[type];
    stat.current += regions.current - active.current;
    stat.peak = std::max(stat.peak, stat.current);
    stat.allocated += regions.allocated + active.freed;
    stat.freed += regions.freed + active.allocated;
  }
}

template <class Stats>
void forgive_rejections(Stats& stats, std::int64_t count) {
  if constexpr (requires { stats.num_oom_rejections; }) {
    stats.num_oom_rejections -= count;
  }
}

} // namespace

void add_planned(c10::cuda::CUDACachingAllocator::DeviceStats& stats, const Planned& planned) {
  const auto& [count, bytes, requested, active, active_bytes, regions, region_bytes, region_requested, oversize, oversize_regions] =
      planned;
  replace_count(stats.allocation, regions, count);
  replace_count(stats.active, regions, active);
  replace_bytes(stats.allocated_bytes, region_bytes, bytes);
  replace_bytes(stats.active_bytes, region_bytes, active_bytes);
  replace_bytes(stats.requested_bytes, region_requested, requested);
  replace(stats.oversize_allocations, oversize_regions, oversize, oversize.peak);
  add_idle(stats.inactive_split_bytes, region_bytes, active_bytes);
}

void forgive(c10::cuda::CUDACachingAllocator::DeviceStats& stats, const Tries& tries) {
  const auto& [failures, retries, rejections] = tries;
  stats.num_ooms -= static_cast<std::int64_t>(failures);
  stats.num_alloc_retries -= static_cast<std::int64_t>(retries);
  forgive_rejections(stats, static_cast<std::int64_t>(rejections));
}

void show_planned(
    c10::cuda::CUDACachingAllocator::SnapshotInfo& info,
    StreamMemory& memory,
    DeviceHistory& history) {
  const auto parts = memory.plan().parts();
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

void report_planned(
    c10::cuda::CUDACachingAllocator::CUDAAllocator& whole,
    void* address,
    std::size_t bytes,
    c10::DeviceIndex device) {
  tell_tracer(address, /*came=*/true);
  tell_profiler(whole, address, static_cast<std::int64_t>(bytes), device);
}

} // namespace pinbuddy

#endif
