// Remembers requests that the engine refused because nothing more may be pinned.
//
// Asking the engine again costs a microsecond: every cache is flushed, and a pin attempted. Events that
// could change the answer are seen here: a block that was in use at the refusal was freed, and not taken
// again whole; a region was pinned or unpinned; the cache was cleared. For changes that are not seen, such
// as memory that other processes free, one request in sixty-four asks anyway. Knows neither the engine nor
// caches.
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
  // Requests longer than a segment find room elsewhere than others.
  explicit Refusals(std::size_t segment_bytes) : segment_bytes_(segment_bytes) {}

  // Whether the engine would still refuse so many bytes.
  bool stand(std::size_t bytes) {
    if (C10_LIKELY(bytes < least(bytes).load(std::memory_order_relaxed))) {
      return false;
    }
    return freed(state_.load(std::memory_order_acquire)) == 0 &&
        spared_.fetch_add(1, std::memory_order_relaxed) % kSpared != kSpared - 1;
  }

  // Exists while the engine is asked. Blocks that are released meanwhile are counted; counting all of them would be
  // a good part of a planned pair. Who releases one does so under the lock under which the engine refuses, and looks
  // afterwards whether anybody asks: so the engine saw the block free, or the release is counted.
  class Asking {
   public:
    explicit Asking(Refusals& refusals) : refusals_(refusals) {
      refusals_.asking_.fetch_add(1);
      changes_ = refusals_.changes_.load(std::memory_order_acquire);
    }
    ~Asking() {
      refusals_.asking_.fetch_sub(1);
    }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

    // The engine has refused so many bytes, while nothing was cached.
    void note(std::size_t bytes) {
      refusals_.note(bytes, changes_);
    }

   private:
    Refusals& refusals_;
    std::uint64_t changes_;
  };

  // The engine may have room again: `forget` after a region was pinned or unpinned, `released` after a block
  // was released.
  void forget() {
    SpinLocked locked(lock_);
    changes_.fetch_add(1, std::memory_order_release);
    drop();
  }
  void released() {
    if (C10_UNLIKELY(asking_.load(std::memory_order_acquire) != 0)) {
      changes_.fetch_add(1, std::memory_order_release);
    }
  }

  // A user gets a block cut from idle memory.
  void granted(Block& block) {
    block.freed_since = false;
    block.refusal = number(state_.load(std::memory_order_relaxed));
  }
  // A user gets a cached block; a user and all streams are done with a block.
  void taken(Block& block) {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    if (C10_UNLIKELY(block.freed_since)) {
      block.freed_since = false;
      while (number(state) == block.refusal) {
        if (state_.compare_exchange_weak(state, state - 1)) {
          // In use again, as at the refusal.
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
  // The smallest refused request, up to the size of a segment and above it.
  std::array<std::atomic<std::size_t>, 2> least_{kNever, kNever};

  // Guards that a noted refusal belongs to one state of the engine.
  SpinLock lock_;
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<std::uint32_t> asking_{0};
  std::atomic<std::uint32_t> spared_{0};
};

} // namespace pinbuddy
