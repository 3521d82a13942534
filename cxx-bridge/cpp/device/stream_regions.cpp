// The regions of a stream's planned memory: taken from the allocator below, and given back (stream_memory.h).
//
// Rust says when (src/device/stream/regions.rs). Knows no blocks.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include "failures.h"
#include "profiling.h"
#include "round_up.h"

namespace pinbuddy {
namespace {

// How long the block of the allocator below is that begins at `base`; `asked` if there is none. Its settings may have rounded
// it up, and what is left of what it had cached stays with the block where that is little. Not under a lock.
std::size_t region_length(c10::cuda::CUDACachingAllocator::CUDAAllocator& below, std::size_t base, std::size_t asked) {
  for (const auto& segment : below.snapshot({0, 0}, /*include_traces=*/false).segments) {
    std::size_t address = segment.address;
    for (const auto& block : segment.blocks) {
      if (address == base) {
        return block.size;
      }
      address += block.size;
    }
  }
  return asked;
}

} // namespace

// Takes the regions that are wanted from the allocator below, so that its limits hold for them.
void StreamMemory::reserve(bool releases) {
  assert_no_lock_held("reserving a region");
  const c10::DeviceIndex device = stream_.device_index();
  // These may throw, and then nobody is reserving.
  c10::cuda::CUDAGuard device_guard(device);
  read_peaks();
  if (!plan_.begin_reserve()) {
    return;
  }
  const auto moved = c10::make_scope_exit([this, device] {
    // Those of the allocator below have the regions in them from now on.
    around_.below.resetPeakStats(device);
    device_moved();
  });
  // By the time they are given back, caching may be switched off, and the allocator below would give them to CUDA.
  delete_below_.store(around_.below.raw_deleter(), std::memory_order_relaxed);
  const Setting region(asking, Asking::kRegion);
  try {
    for (std::size_t index = 0; index < regions_.size(); ++index) {
      if (plan_.lacks(index)) {
        take_region(index);
      }
    }
  } catch (const c10::OutOfMemoryError& error) {
    tally_.forgive(Failures::counted(releases));
    plan_.region_refused(device, error.what_without_backtrace());
    give_back(plan_.end_reserve(/*all=*/false));
    return;
  } catch (...) {
    // The program's, of a call before: CUDA tells of it with the next one. The next request tries again.
    give_back(plan_.end_reserve(/*all=*/false));
    throw;
  }
  give_back(plan_.end_reserve(/*all=*/true));
}

void StreamMemory::take_region(std::size_t index) {
  Region& region = regions_[index];
  auto since = c10::getApproximateTime();
  void* address = around_.below.raw_alloc_with_stream(region.bytes, handle_);
  const auto base = reinterpret_cast<std::size_t>(address);
  around_.history.asked_for_region(since, base, region.bytes);
  since = c10::getApproximateTime();
  const std::size_t held = region_length(around_.below, base, region.bytes);
  around_.history.asked_for_region(since, 0, 0);
  // A region is no memory of the program's: what the allocator below says of it to a profiler or a tracer is made good.
  tell_of(around_.whole, address, -static_cast<std::int64_t>(held), stream_.device_index());
  around_.span.widen(base, region.bytes);
  region.base.store(base, std::memory_order_release);
  plan_.reserved(index, base, held, held >= oversize_from());
}

bool StreamMemory::give_back(GiveBack why) {
  const auto idle = plan_.give_back(why);
  give_back(idle);
  return !idle.empty();
}

void StreamMemory::give_back(const rust::Vec<IdleRegion>& regions) {
  if (regions.empty()) {
    return;
  }
  const auto moved = c10::make_scope_exit([] { device_moved(); });
  // As they are with the regions; from then on without them.
  const c10::DeviceIndex device = stream_.device_index();
  read_peaks();
  for (const IdleRegion& it : regions) {
    // Another thread may have taken it again, elsewhere.
    std::size_t base = it.base;
    regions_[it.region].base.compare_exchange_strong(base, 0);
    plan_.gone(it.held);
  }
  for (const IdleRegion& it : regions) {
    assert_no_lock_held("giving a region back");
    auto* const base = reinterpret_cast<void*>(it.base);
    tell_of(around_.whole, base, static_cast<std::int64_t>(it.held.bytes), device);
    const auto since = c10::getApproximateTime();
    delete_below_.load(std::memory_order_relaxed)(base);
    around_.history.asked_for_region(since, it.base, it.held.requested);
  }
  around_.below.resetPeakStats(device);
}

} // namespace pinbuddy

#endif
