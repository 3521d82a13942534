// The regions of a stream's planned memory: taken from the allocator below, and given back (stream_memory.h).
//
// They are taken with the first request, and again after they were given back: at once where the program emptied its cache, an
// iteration later where memory was short. Knows no blocks.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "asking.h"
#include "profiling.h"
#include "region_length.h"
#include "round_up.h"

namespace pinbuddy {
namespace {

// Where memory was short, regions are left for an iteration, and for twice as many each time, up to 2^kDoublings. An
// iteration has at least so many requests.
constexpr std::uint64_t kDoublings = 3;
constexpr std::size_t kFewest = 64;

} // namespace

// Whether it is too early to take regions again that were given back.
bool StreamMemory::waits() {
  return counts_down(wait_);
}

std::size_t StreamMemory::requests_of_an_iteration() const {
  return std::max(plan_->turn(), kFewest);
}

// Takes the regions from the allocator below, so that its limits hold for them.
void StreamMemory::reserve(bool releases) {
  if (state_.load(std::memory_order_acquire) != State::kCold) {
    return;
  }
  assert_no_lock_held("reserving a region");
  const c10::DeviceIndex device = stream_.device_index();
  // These may throw, and then nobody is reserving.
  c10::cuda::CUDAGuard device_guard(device);
  read_peaks();
  {
    Lock guard(mutex_);
    if (state_.load(std::memory_order_relaxed) != State::kCold) {
      return;
    }
    state_.store(State::kReserving);
    moves_.begin();
  }
  const auto moved = c10::make_scope_exit([this, device] {
    // Those of the allocator below have the regions in them from now on.
    below_.resetPeakStats(device);
    moves_.end();
  });
  // By the time they are given back, caching may be switched off, and the allocator below would give them to CUDA.
  delete_below_.store(below_.raw_deleter(), std::memory_order_relaxed);
  const AskingFor region(Asking::kRegion);
  try {
    for (std::size_t index = 0; index < regions_.size(); ++index) {
      // Some may still be there since the cache was emptied.
      if (regions_[index].base.load(std::memory_order_relaxed) == 0) {
        take_region(index);
      }
    }
  } catch (const c10::OutOfMemoryError& error) {
    {
      Lock guard(mutex_);
      counted_.refused += Failures::counted(releases);
      state_.store(State::kDropped);
    }
    device_refused(device, error.what_without_backtrace());
    give_back(GiveBack::kForGood);
    return;
  } catch (...) {
    // The program's, of a call before: CUDA tells of it with the next one. The next request tries again.
    {
      Lock guard(mutex_);
      state_.store(drop_ ? State::kDropped : State::kCold);
    }
    give_back(GiveBack::kCleared);
    throw;
  }
  bool dropped = false;
  {
    Lock guard(mutex_);
    dropped = drop_;
    state_.store(dropped ? State::kDropped : State::kReady, std::memory_order_release);
  }
  if (dropped) {
    give_back(GiveBack::kForGood);
  }
}

// Nobody asks for any of it yet, but a request that finds no other memory.
void StreamMemory::take_region(std::size_t index) {
  Region& region = regions_[index];
  auto since = c10::getApproximateTime();
  void* address = below_.raw_alloc_with_stream(region.bytes, handle_);
  const auto base = reinterpret_cast<std::size_t>(address);
  history_.asked_for_region(since, base, region.bytes);
  since = c10::getApproximateTime();
  const std::size_t held = region_length(below_, address, region.bytes);
  history_.asked_for_region(since, 0, 0);
  tell_of_region(address, -static_cast<std::int64_t>(held));
  Lock guard(mutex_);
  region.held.store(held, std::memory_order_relaxed);
  plan_->reserved(index, base);
  span_.widen(base, region.bytes);
  region.base.store(base, std::memory_order_release);
  counted_.region_came(held, region.bytes);
}

void* StreamMemory::region_of(const void* address) const {
  for (const Region& region : regions_) {
    const auto base = region.base.load(std::memory_order_acquire);
    if (base != 0 && reinterpret_cast<std::size_t>(address) - base < region.bytes) {
      return reinterpret_cast<void*>(base);
    }
  }
  return nullptr;
}

std::vector<StreamMemory::Idle> StreamMemory::take_idle() {
  std::vector<Idle> idle;
  const auto indexes = plan_->take_idle();
  if (!indexes.empty()) {
    moves_.begin();
  }
  for (const std::size_t index : indexes) {
    const auto base = regions_[index].base.exchange(0);
    const auto held = regions_[index].held.load(std::memory_order_relaxed);
    idle.push_back({reinterpret_cast<void*>(base), regions_[index].bytes, held});
  }
  return idle;
}

bool StreamMemory::give_back(GiveBack why) {
  std::vector<Idle> idle;
  {
    Lock guard(mutex_);
    const State state = state_.load(std::memory_order_relaxed);
    if (state == State::kReserving) {
      // Nothing lies in them yet, but they may be on their way: who takes them looks.
      drop_ = drop_ || why == GiveBack::kForGood;
      return false;
    }
    if (why == GiveBack::kCleared) {
      borrows_.store(0, std::memory_order_relaxed);
    }
    idle = take_idle();
    if (why == GiveBack::kShort && !idle.empty()) {
      const auto iterations = std::size_t{1} << std::min(given_back_, kDoublings);
      wait_.store(requests_of_an_iteration() * iterations, std::memory_order_relaxed);
      ++given_back_;
    }
    if (why == GiveBack::kForGood) {
      state_.store(State::kDropped);
    } else if (state == State::kReady && !idle.empty()) {
      state_.store(State::kCold);
    }
  }
  give_back(idle);
  return !idle.empty();
}

void StreamMemory::give_back(const std::vector<Idle>& regions) {
  if (regions.empty()) {
    return;
  }
  // The allocator below has memory again.
  borrows_.store(0, std::memory_order_relaxed);
  const auto moved = c10::make_scope_exit([this] { moves_.end(); });
  // As they are with the regions; from then on without them.
  const c10::DeviceIndex device = stream_.device_index();
  read_peaks();
  {
    Lock guard(mutex_);
    for (const auto& [base, bytes, held] : regions) {
      counted_.region_went(held, bytes);
    }
  }
  for (const auto& [base, bytes, held] : regions) {
    assert_no_lock_held("giving a region back");
    tell_of_region(base, static_cast<std::int64_t>(held));
    const auto since = c10::getApproximateTime();
    delete_below_.load(std::memory_order_relaxed)(base);
    history_.asked_for_region(since, reinterpret_cast<std::size_t>(base), bytes);
  }
  below_.resetPeakStats(device);
}

// A region is no memory of the program's: what the allocator below says of it to a profiler or a tracer is made good.
void StreamMemory::tell_of_region(void* base, std::int64_t bytes) {
  tell_tracer(base, bytes > 0);
  tell_profiler(whole_, base, bytes, stream_.device_index());
}

std::size_t StreamMemory::reserved() const {
  std::size_t bytes = 0;
  for (const Region& region : regions_) {
    bytes += region.base.load(std::memory_order_relaxed) == 0
        ? 0
        : region.held.load(std::memory_order_relaxed);
  }
  return bytes;
}

} // namespace pinbuddy

#endif
