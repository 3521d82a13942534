// The freed blocks that one thread keeps, by size: each under its latch.
//
// The block that came last stands in front: a program that frees and asks for the same size again
// finds it with one comparison, and nothing is counted, since what was in use is as before.
//
// Behind it, however many sizes and blocks there are, a block is found in constant time: blocks of one
// size are a stack, and the stacks of sizes that share a bin are linked by their tops. Invariants:
// nothing but links and counts is changed here; a block on the shelf has no user and no event
// outstanding; a bin's bit is set while it has blocks; the block in front came after all others of its
// size. Knows no other shelf, and not who decides what is kept.
#pragma once

#include <algorithm>
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

// How many blocks users have, or how many bytes, against when that was last asked; and the most that
// it was since.
struct Rise {
  std::ptrdiff_t now = 0;
  std::ptrdiff_t most = 0;

  void up(std::size_t amount) {
    now += static_cast<std::ptrdiff_t>(amount);
    most = std::max(most, now);
  }
  void down(std::size_t amount) {
    now -= static_cast<std::ptrdiff_t>(amount);
  }
};

// Apart by two cache lines: processors fetch them in pairs.
class alignas(128) Shelf {
 public:
  // Whoever calls anything below holds it, unless that says otherwise.
  Latch latch;

  // Whether a block of this size may be here: without the latch. First the front: what goes from there
  // to a bin is in the bin before it is no longer in front.
  bool may_have(std::size_t bytes) const {
    if (front_size_.load(std::memory_order_acquire) == bytes) {
      return true;
    }
    const std::size_t bin = bin_of(bytes);
    return (filled_[bin / 64].load(std::memory_order_acquire) & bit(bin)) != 0;
  }

  // Whether any block is here: without the latch.
  bool any() const {
    return blocks() != 0;
  }
  std::size_t blocks() const {
    const std::size_t behind = blocks_.load(std::memory_order_acquire);
    return behind + (front_size_.load(std::memory_order_acquire) == kNone ? 0 : 1);
  }

  // The block of exactly `wanted` bytes that came last; null where there is none.
  Block* take(std::size_t wanted) {
    if (C10_UNLIKELY(front_size_.load(std::memory_order_relaxed) != wanted)) {
      return take_behind(wanted);
    }
    front_size_.store(kNone, std::memory_order_release);
    if (C10_UNLIKELY(front_counted_)) {
      rise(wanted);
    }
    count_reused(wanted);
    return front_;
  }

  // A user has freed a block of so many bytes that was taken for this thread.
  void freed(std::size_t bytes) {
    rise_blocks_.down(1);
    rise_bytes_.down(bytes);
  }

  // A user has freed a block that was taken for this thread: it is counted once anything else happens.
  // If its next user comes first, as much is in use as was.
  void put(Block* block) {
    if (front_size_.load(std::memory_order_relaxed) != kNone) {
      stow();
    }
    front_ = block;
    front_counted_ = false;
    front_size_.store(block->size_, std::memory_order_release);
  }

  // Notes that `size` was asked for; whether it was before. For many sizes that is sometimes wrong.
  bool ask(std::size_t size) {
    return asked_.insert(size);
  }
  void forget() {
    asked_.clear();
  }

  // Adds what is here, and what happened since this was last called.
  void count(Kept& sum) {
    if (const std::size_t size = front_size_.load(std::memory_order_relaxed); size != kNone) {
      count_front(size);
      ++sum.blocks;
      sum.bytes += size;
    }
    sum.blocks += blocks_.load(std::memory_order_relaxed);
    sum.bytes += bytes_;
    sum.rise_blocks += static_cast<std::size_t>(rise_blocks_.most);
    sum.rise_bytes += static_cast<std::size_t>(rise_bytes_.most);
    sum.reused_blocks += std::exchange(reused_blocks_, 0);
    sum.reused_bytes += std::exchange(reused_bytes_, 0);
    rise_blocks_ = rise_bytes_ = Rise{};
  }

  static constexpr std::size_t kBinsLog = 9;
  static constexpr std::size_t kBins = std::size_t{1} << kBinsLog;
  using Bins = std::array<Block*, kBins>;

  // Takes all, of each bin that has any: `each(tops)`. Who holds the latch does not look at the blocks.
  template <typename Each>
  void clear(Each each) {
    if (!any()) {
      return;
    }
    if (front_size_.load(std::memory_order_relaxed) != kNone) {
      stow();
      front_size_.store(kNone, std::memory_order_release);
    }
    for (std::size_t word = 0; word < filled_.size(); ++word) {
      std::uint64_t bits = filled_[word].load(std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        const auto bin = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        each(std::exchange(bins_[bin], nullptr));
      }
      filled_[word].store(0, std::memory_order_release);
    }
    blocks_.store(0, std::memory_order_release);
    bytes_ = 0;
  }

 private:
  // No block has this size.
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  static std::size_t bin_of(std::size_t bytes) {
    return hash_of_size(bytes) >> (64 - kBinsLog);
  }
  static std::uint64_t bit(std::size_t bin) {
    return std::uint64_t{1} << (bin % 64);
  }

  // The block in front to the others.
  [[gnu::noinline]] void stow() {
    const std::size_t size = front_size_.load(std::memory_order_relaxed);
    count_front(size);
    push(front_, size);
  }

  void count_front(std::size_t size) {
    if (!std::exchange(front_counted_, true)) {
      freed(size);
    }
  }

  void rise(std::size_t bytes) {
    rise_blocks_.up(1);
    rise_bytes_.up(bytes);
  }
  void count_reused(std::size_t bytes) {
    ++reused_blocks_;
    reused_bytes_ += bytes;
  }

  [[gnu::noinline]] Block* take_behind(std::size_t wanted) {
    const std::size_t bin = bin_of(wanted);
    Block** link = stack_of(bin, wanted);
    Block* block = *link;
    if (block == nullptr) {
      return nullptr;
    }
    if (Block* below = block->next_kept; below != nullptr) {
      below->next_size = block->next_size;
      *link = below;
    } else {
      *link = block->next_size;
      if (bins_[bin] == nullptr) {
        mark(bin, false);
      }
    }
    count_blocks(-1);
    bytes_ -= wanted;
    // Before more is in use: what is in front was freed.
    if (const std::size_t size = front_size_.load(std::memory_order_relaxed); size != kNone) {
      count_front(size);
    }
    rise(wanted);
    count_reused(wanted);
    return block;
  }

  void push(Block* block, std::size_t size) {
    const std::size_t bin = bin_of(size);
    Block** link = stack_of(bin, size);
    if (Block* top = *link; top != nullptr) {
      block->next_size = top->next_size;
      block->next_kept = top;
    } else {
      block->next_size = nullptr;
      block->next_kept = nullptr;
      mark(bin, true);
    }
    *link = block;
    count_blocks(1);
    bytes_ += size;
  }

  // What points to the top of the stack of this size, or would.
  Block** stack_of(std::size_t bin, std::size_t size) {
    Block** link = &bins_[bin];
    while (*link != nullptr && (*link)->size_ != size) {
      link = &(*link)->next_size;
    }
    return link;
  }

  // Changed under the latch only, so that loads and stores need not be one.
  void mark(std::size_t bin, bool has) {
    auto& word = filled_[bin / 64];
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~bit(bin);
    word.store(has ? others | bit(bin) : others, std::memory_order_release);
  }
  void count_blocks(int more) {
    const std::size_t now = blocks_.load(std::memory_order_relaxed);
    blocks_.store(now + static_cast<std::size_t>(more), std::memory_order_release);
  }

  // Where its size is not `kNone`; and whether it was counted as freed. With the latch and the next two
  // on one cache line: all that most requests and frees look at.
  std::atomic<std::size_t> front_size_{kNone};
  Block* front_ = nullptr;
  bool front_counted_ = false;

  // Since they were last counted.
  std::size_t reused_blocks_ = 0;
  std::size_t reused_bytes_ = 0;
  Rise rise_blocks_;
  Rise rise_bytes_;

  // Behind the front.
  std::atomic<std::size_t> blocks_{0};
  std::size_t bytes_ = 0;
  std::array<std::atomic<std::uint64_t>, kBins / 64> filled_{};
  Bins bins_{};

  Sizes asked_;
};

} // namespace pinbuddy
