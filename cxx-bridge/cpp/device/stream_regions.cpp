// The regions of a stream's planned memory: taken from the allocator below, and given back (stream_memory.h).
//
// They are taken with the first request, and again after they were given back: at once where the program emptied its cache, an
// iteration later where memory was short. Regions that cannot be had go back to CUDA, so that nothing of the program's gets stuck in
// them. Knows no blocks.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

void StreamMemory::wait_after(std::uint64_t times) {
  wait_.store(requests_of_an_iteration() << std::min(times, kDoublings), std::memory_order_relaxed);
}

// Takes the regions from the allocator below, so that its limits hold for them.
void StreamMemory::reserve(bool releases) {
  const auto may_reserve = [](State state) { return state == State::kCold || state == State::kAside; };
  if (!may_reserve(state_.load(std::memory_order_acquire))) {
    return;
  }
  assert_no_lock_held("reserving a region");
  const c10::DeviceIndex device = stream_.device_index();
  // These may throw, and then nobody is reserving.
  c10::cuda::CUDAGuard device_guard(device);
  read_peaks();
  {
    Lock guard(mutex_);
    if (!may_reserve(state_.load(std::memory_order_relaxed))) {
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
    if (const std::string lack = lacking(); !lack.empty()) {
      refused(lack, {}, /*releases=*/false);
      return;
    }
    for (std::size_t index = 0; index < regions_.size(); ++index) {
      // Some may still be there since the cache was emptied.
      if (regions_[index].base.load(std::memory_order_relaxed) == 0) {
        take_region(index);
      }
    }
  } catch (const c10::OutOfMemoryError& error) {
    refused(error.what_without_backtrace(), Failures::counted(releases), releases);
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

// Why this process cannot have as much memory as is reserved with the plans of the device; empty if it can. With less, what they
// leave to the allocator below would fail.
std::string StreamMemory::lacking() {
  if (needed_ == 0) {
    return {};
  }
  const c10::DeviceIndex device = stream_.device_index();
  const auto [free, total] = below_.getMemoryInfo(device);
  const auto reserved = static_cast<double>(below_.getDeviceStats(device).reserved_bytes[0].current);
  const double most = static_cast<double>(total) * below_.getMemoryFraction(device);
  const double had = std::min(static_cast<double>(free) + reserved, most);
  if (static_cast<double>(needed_) <= had) {
    return {};
  }
  const auto mib = [](double bytes) { return std::to_string(static_cast<std::uint64_t>(bytes) >> 20) + " MiB"; };
  return mib(static_cast<double>(needed_)) + " are reserved with it, and this process can have " + mib(had) + " now";
}

// The regions cannot be had: they are left for good, or for a while if the plan has served before.
void StreamMemory::refused(const std::string& why, const Tries& tries, bool releases) {
  bool comes_back = false;
  {
    Lock guard(mutex_);
    counted_.refused += tries;
    comes_back = set_aside_ > 0 && !drop_;
    state_.store(comes_back ? State::kCold : State::kDropped);
  }
  if (!comes_back) {
    device_refused(stream_.device_index(), why);
  }
  give_back(comes_back ? GiveBack::kAside : GiveBack::kForGood);
  if (releases) {
    below_.emptyCache({0, 0});
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
  bool done = false;
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
    done = !idle.empty();
    if (why == GiveBack::kShort && done) {
      wait_after(given_back_++);
    }
    if (why == GiveBack::kForGood) {
      state_.store(State::kDropped);
    } else if (why == GiveBack::kAside) {
      done = state < State::kAside;
      if (done) {
        wait_after(set_aside_++);
        state_.store(State::kAside);
      }
    } else if (state == State::kAside && why == GiveBack::kCleared) {
      // Who catches an OutOfMemoryError frees what it can: the plan's memory may be there again.
      wait_.store(0, std::memory_order_relaxed);
      state_.store(State::kCold);
    } else if (state == State::kReady && done) {
      state_.store(State::kCold);
    }
  }
  give_back(idle);
  return done;
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
