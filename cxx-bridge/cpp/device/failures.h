// Observers of failures, told only of those that are the program's.
//
// The allocator below calls them before it throws. A request for which a plan gives way is tried again, twice at most, and a
// region that cannot be had is only not planned: neither is out of memory yet. Calls for the first are kept back until it is
// known.
//
// Observers of rejections (`throw_on_cudamalloc_oom`) are the program's alone: they are called in threads of their own, which
// nothing here is known of.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "../setting.h"

namespace pinbuddy {

// What this thread asks the allocator below for: a trace tells them apart, too.
enum class Asking : std::uint8_t {
  kOrdinary,
  // Memory for a stream that need not be the current one, which no plan serves.
  kBeside,
  // A plan's region, which is no request of the program's.
  kRegion,
};

inline constinit thread_local Asking asking = Asking::kOrdinary;

// What the allocator below counts of failed tries: failures; those of them for which it gave back its own cache, retries; those that
// it turned away before it asked CUDA, rejections.
using Tries = std::array<std::uint64_t, 3>;

class Failures {
 public:
  using Observer = c10::cuda::CUDACachingAllocator::OutOfMemoryObserver;

  // Called as an observer is: by the allocator below in the thread that asked, where it counts a failure.
  static void count(int64_t, std::size_t, std::size_t, std::size_t) {
    counted_ = true;
  }

  // What was counted of this thread's try, which has just failed. `releases`: the allocator below had given back its cache for it.
  // Not of a request that is too long for any device, of which nothing is counted.
  static Tries counted(bool releases) {
    return std::exchange(counted_, false) ? Tries{1, releases ? 1u : 0, 0} : Tries{0, 0, 1};
  }

  // What the allocator below is given in the observer's place. Whether a request is tried again is known only once it has failed.
  static Observer watched(Observer observer) {
    return [observer = std::move(observer)](int64_t device, std::size_t bytes, std::size_t total, std::size_t free) {
      if (asking == Asking::kRegion) {
        return;
      }
      if (is_last) {
        observer(device, bytes, total, free);
      } else {
        kept_.push_back([=] { observer(device, bytes, total, free); });
      }
    };
  }

  // The failure is the program's: calls that were kept back are made.
  static void tell() {
    counted_ = false;
    for (const auto& call : std::exchange(kept_, {})) {
      call();
    }
  }

  // This thread's request is tried again: what was kept of the try before is forgotten.
  static void forget() {
    kept_.clear();
  }

  // Takes off what was counted of failed tries that are not the program's.
  template <class Stats>
  static void forgive(Stats& stats, const Tries& tries) {
    stats.num_ooms -= static_cast<std::int64_t>(tries[0]);
    stats.num_alloc_retries -= static_cast<std::int64_t>(tries[1]);
    // Only some releases count them.
    if constexpr (requires { stats.num_oom_rejections; }) {
      stats.num_oom_rejections -= static_cast<std::int64_t>(tries[2]);
    }
  }

  // Nothing gives way to this thread's request any more: a failure is the program's.
  static inline constinit thread_local bool is_last = false;

 private:
  static inline constinit thread_local bool counted_ = false;
  static inline thread_local std::vector<std::function<void()>> kept_;
};

} // namespace pinbuddy
