// The freed blocks of one thread's cache, by size, under a spin lock.
//
// The block cached last is in front: a program that frees a block and asks for its size again finds it with
// one comparison.
//
// The others are found in constant time, however many sizes and blocks there are: blocks of one size are a
// stack, and the stacks of sizes that share a bin are linked by their tops. Invariants: only links and
// counts are changed here; a cached block has no user and no event outstanding; a bin's bit is set while it
// has blocks; the block in front is newer than all others of its size. Knows no other thread's cache, and
// not what decides whether a block is cached.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "block.h"
#include "lock.h"
#include "sizes.h"

namespace pinbuddy {

// A number of blocks, and their bytes.
struct Amount {
  std::size_t blocks = 0;
  std::size_t bytes = 0;

  void operator+=(const Amount& more) {
    blocks += more.blocks;
    bytes += more.bytes;
  }
};

// Two cache lines apart, since processors fetch lines in pairs.
class alignas(128) ThreadCache {
 public:
  // Held by callers of every function below, unless it says otherwise.
  SpinLock lock;

  // Whether a block of this size may be here; without the lock. Reads the front first, since a block moves
  // into its bin before it leaves the front.
  bool may_have(std::size_t bytes) const {
    if (front_size_.load(std::memory_order_acquire) == bytes) {
      return true;
    }
    const std::size_t bin = bin_of(bytes);
    return (filled_[bin / 64].load(std::memory_order_acquire) & bit(bin)) != 0;
  }

  // What is cached here, in bytes and in blocks; without the lock, if the numbers need not be consistent.
  std::size_t bytes() const {
    const std::size_t behind = bytes_.load(std::memory_order_acquire);
    const std::size_t size = front_size_.load(std::memory_order_acquire);
    return size == kNone ? behind : behind + size;
  }
  std::size_t blocks() const {
    std::size_t blocks = front_size_.load(std::memory_order_acquire) == kNone ? 0 : 1;
    for (const auto& count : of_power_) {
      blocks += count.load(std::memory_order_relaxed);
    }
    return blocks;
  }

  // The blocks whose sizes have the power of two of `bytes`; without the lock, as above.
  std::size_t alike(std::size_t bytes) const {
    const std::size_t power = power_of(bytes);
    const std::size_t size = front_size_.load(std::memory_order_acquire);
    const bool front = size != kNone && power_of(size) == power;
    return of_power_[power].load(std::memory_order_relaxed) + (front ? 1 : 0);
  }

  // The newest block of exactly `wanted` bytes; null if there is none.
  Block* take(std::size_t wanted) {
    if (C10_UNLIKELY(front_size_.load(std::memory_order_relaxed) != wanted)) {
      return take_behind(wanted);
    }
    front_size_.store(kNone, std::memory_order_release);
    reused_ += {1, wanted};
    return front_;
  }

  void put(Block* block) {
    if (front_size_.load(std::memory_order_relaxed) != kNone) {
      push_front();
    }
    front_ = block;
    front_size_.store(block->size_, std::memory_order_release);
  }

  // Notes that `size` was asked for; returns whether it was before. With many sizes sometimes wrong.
  bool ask(std::size_t size) {
    return asked_.insert(size);
  }
  void forget() {
    asked_.clear();
  }

  // The requests served since the last call of `take_reused`.
  const Amount& reused() const {
    return reused_;
  }
  // The requests served since the last call.
  Amount take_reused() {
    return std::exchange(reused_, {});
  }

  static constexpr std::size_t kBinsLog = 9;
  static constexpr std::size_t kBins = std::size_t{1} << kBinsLog;
  using Bins = std::array<Block*, kBins>;

  // Takes all blocks: calls `each(top)` for each bin that has any. Does not touch the blocks under the lock.
  template <typename Each>
  void clear(Each each) {
    if (front_size_.load(std::memory_order_relaxed) != kNone) {
      push_front();
      front_size_.store(kNone, std::memory_order_release);
    }
    if (bytes_.load(std::memory_order_relaxed) == 0) {
      return;
    }
    for (std::size_t word = 0; word < filled_.size(); ++word) {
      std::uint64_t bits = filled_[word].load(std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        const auto bin = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        each(std::exchange(bins_[bin], nullptr));
      }
      filled_[word].store(0, std::memory_order_release);
    }
    for (auto& count : of_power_) {
      count.store(0, std::memory_order_relaxed);
    }
    bytes_.store(0, std::memory_order_release);
  }

 private:
  // No block has this size.
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  static std::size_t bin_of(std::size_t bytes) {
    return hash_of_size(bytes) >> (64 - kBinsLog);
  }
  // The power of two that holds `bytes`, which is at least 1.
  static std::size_t power_of(std::size_t bytes) {
    return static_cast<std::size_t>(std::bit_width(bytes - 1));
  }
  static std::uint64_t bit(std::size_t bin) {
    return std::uint64_t{1} << (bin % 64);
  }

  [[gnu::noinline]] Block* take_behind(std::size_t wanted) {
    const std::size_t bin = bin_of(wanted);
    Block** link = stack_of(bin, wanted);
    Block* block = *link;
    if (block == nullptr) {
      return nullptr;
    }
    if (Block* below = block->next_cached; below != nullptr) {
      below->next_size = block->next_size;
      *link = below;
    } else {
      *link = block->next_size;
      if (bins_[bin] == nullptr) {
        mark(bin, false);
      }
    }
    count(-1, wanted);
    reused_ += {1, wanted};
    return block;
  }

  // Moves the block in front to the others.
  [[gnu::noinline]] void push_front() {
    Block* const block = front_;
    const std::size_t size = front_size_.load(std::memory_order_relaxed);
    const std::size_t bin = bin_of(size);
    Block** link = stack_of(bin, size);
    if (Block* top = *link; top != nullptr) {
      block->next_size = top->next_size;
      block->next_cached = top;
    } else {
      block->next_size = nullptr;
      block->next_cached = nullptr;
      mark(bin, true);
    }
    *link = block;
    count(1, size);
  }

  // The link to the top of the stack of this size, or the link where it would be.
  Block** stack_of(std::size_t bin, std::size_t size) {
    Block** link = &bins_[bin];
    while (*link != nullptr && (*link)->size_ != size) {
      link = &(*link)->next_size;
    }
    return link;
  }

  // Written under the lock only, so a separate load and store suffice.
  void mark(std::size_t bin, bool has) {
    auto& word = filled_[bin / 64];
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~bit(bin);
    word.store(has ? others | bit(bin) : others, std::memory_order_release);
  }
  void count(int more, std::size_t size) {
    const auto by = static_cast<std::size_t>(more);
    auto& alike = of_power_[power_of(size)];
    alike.store(alike.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    bytes_.store(bytes_.load(std::memory_order_relaxed) + by * size, std::memory_order_release);
  }

  // The block in front, unless its size is `kNone`. On one cache line with the lock and the served requests:
  // most requests and frees touch nothing else.
  std::atomic<std::size_t> front_size_{kNone};
  Block* front_ = nullptr;
  Amount reused_{};

  // Behind the front.
  std::atomic<std::size_t> bytes_{0};
  // Blocks by the power of two that holds their size.
  std::array<std::atomic<std::size_t>, std::numeric_limits<std::size_t>::digits + 1> of_power_{};
  std::array<std::atomic<std::uint64_t>, kBins / 64> filled_{};
  Bins bins_{};

  Sizes asked_;
};

} // namespace pinbuddy
