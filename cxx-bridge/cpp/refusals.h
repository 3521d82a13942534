// Requests that the engine refused since nothing more may be pinned, and whether it would again.
//
// Asking costs a microsecond: every cache is flushed, and a pin attempted. What could change the
// answer is seen from here: a block that was in use at the refusal and has been freed since, and not
// taken again whole; a region that came or went; a clear. What is not seen, such as memory that other
// processes give back, is found out by a request in sixty-four, which asks all the same. Knows neither
// the engine nor caches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "block.h"
#include "lock.h"

namespace pinbuddy {

class Refusals {
 public:
  // Longer requests than a segment find room elsewhere than others.
  explicit Refusals(std::size_t segment_bytes) : segment_bytes_(segment_bytes) {}

  // Whether the engine would refuse so many bytes as it did before.
  bool stand(std::size_t bytes) {
    if (C10_LIKELY(bytes < least(bytes).load(std::memory_order_relaxed))) {
      return false;
    }
    return freed(state_.load(std::memory_order_acquire)) == 0 &&
        spared_.fetch_add(1, std::memory_order_relaxed) % kSpared != kSpared - 1;
  }

  // To be had before the engine is asked, and handed to `note` if it refuses.
  std::uint64_t changes() const {
    return changes_.load(std::memory_order_acquire);
  }

  // The engine has refused so many bytes, while nothing was cached.
  void note(std::size_t bytes, std::uint64_t changes) {
    SpinLocked locked(lock_);
    if (changes != changes_.load(std::memory_order_relaxed)) {
      return;
    }
    std::uint64_t was = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(was, (was / kNumber + 1) * kNumber)) {
    }
    if (freed(was) != 0) {
      drop();
    }
    auto& limit = least(bytes);
    limit.store(std::min(limit.load(std::memory_order_relaxed), bytes), std::memory_order_relaxed);
  }

  // The engine may have room that it had not: a region came or went, or a block was given back to it.
  void forget() {
    SpinLocked locked(lock_);
    changes_.fetch_add(1, std::memory_order_release);
    drop();
  }
  void given_back() {
    changes_.fetch_add(1, std::memory_order_release);
  }

  // A block of memory that was idle goes to its user.
  void granted(Block& block) {
    block.freed_since = false;
    block.refusal = number(state_.load(std::memory_order_relaxed));
  }
  // One goes to its user that was cached; one can serve another user from now on.
  void taken(Block& block) {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    if (C10_UNLIKELY(block.freed_since)) {
      block.freed_since = false;
      while (number(state) == block.refusal) {
        if (state_.compare_exchange_weak(state, state - 1)) {
          // In use as it was then.
          block.refusal = number(state) - 1;
          return;
        }
      }
    }
    block.refusal = number(state);
  }
  void freed(Block& block) {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    while (C10_UNLIKELY(block.refusal != number(state))) {
      if (state_.compare_exchange_weak(state, state + 1)) {
        block.refusal = number(state);
        block.freed_since = true;
        return;
      }
    }
  }

 private:
  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint64_t kNumber = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kSpared = 64;

  static std::uint32_t number(std::uint64_t state) {
    return static_cast<std::uint32_t>(state / kNumber);
  }
  static std::uint32_t freed(std::uint64_t state) {
    return static_cast<std::uint32_t>(state);
  }
  std::atomic<std::size_t>& least(std::size_t bytes) {
    return least_[bytes > segment_bytes_ ? 1 : 0];
  }
  void drop() {
    for (auto& limit : least_) {
      limit.store(kNever, std::memory_order_relaxed);
    }
  }

  const std::size_t segment_bytes_;

  // The number of the last refusal, and how many blocks that were in use then are free now.
  std::atomic<std::uint64_t> state_{0};
  // The least that was refused, up to the size of a segment and above it.
  std::array<std::atomic<std::size_t>, 2> least_{kNever, kNever};

  // Guards that what is noted is of one state of the engine.
  SpinLock lock_;
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint32_t> spared_{0};
};

} // namespace pinbuddy
