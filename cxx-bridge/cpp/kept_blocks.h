// Freed blocks that are kept whole for the next request of exactly their size.
//
// Taking a block out of a list and putting it back is most of what stock's pair costs, and cutting
// and merging most of the engine's; programs ask for the same sizes again and again. So a freed block
// first stays as it is, with its block object, and whoever owns the memory still counts it as handed
// out. Whoever looks at what is idle, or needs it, sweeps all kept blocks up first.
//
// A thread takes from a shelf of its own, and a block goes back to the shelf of the thread that it
// was taken for, whichever thread frees it: so threads meet only where one frees what another
// allocates, or finds nothing on its own shelf. Invariants: a kept block has no user and no event
// outstanding; what a sweep took is with the owner of the memory before the next sweep begins. Knows
// neither the engine nor upstream's lists.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>

#include "block.h"
#include "lock.h"
#include "shelf.h"

namespace pinbuddy {

class KeptBlocks {
 public:
  // A kept block of exactly `bytes` bytes, from this thread's shelf or else from any other; null
  // where there is none.
  Block* take(std::size_t bytes) {
    const std::size_t mine = own();
    Shelf& shelf = shelves_[mine];
    {
      Latched latched(shelf.latch);
      if (Block* block = shelf.take(bytes); C10_LIKELY(block != nullptr)) {
        return block;
      }
    }
    return take_elsewhere(bytes, mine);
  }

  // As `take`; where it finds none, whether this thread has asked before for `bytes` bytes that
  // nothing kept was there for: then it will again, and keeping is worth while. Remembers it; for many
  // sizes that is sometimes wrong. A size that is new to this thread is looked for on its own shelf
  // only.
  Block* take_or_note(std::size_t bytes, bool& again) {
    const std::size_t mine = own();
    Shelf& shelf = shelves_[mine];
    {
      Latched latched(shelf.latch);
      if (Block* block = shelf.take(bytes); C10_LIKELY(block != nullptr)) {
        return block;
      }
      again = shelf.ask(bytes);
    }
    return again ? take_elsewhere(bytes, mine) : nullptr;
  }

  // A block that was not kept before is this thread's, and to be kept once it is freed, or not: a size
  // that nobody asks for again is not worth a place.
  static void shelve_here(Block* block, bool keep);

  // Its user has freed a block, and streams are done with it: keeps it; false where it is not to be
  // kept.
  [[nodiscard]] bool keep(Block* block) {
    Shelf& shelf = shelves_[block->shelf];
    Latched latched(shelf.latch);
    if (C10_UNLIKELY(!may_keep(*block))) {
      shelf.freed(block->size_);
      return false;
    }
    shelf.put(block);
    return true;
  }

  // While one lives nothing is kept, so that what a sweep or `take_last` did not find is with a user
  // or with the owner of the memory.
  class Shut {
   public:
    explicit Shut(KeptBlocks& kept) : kept_(kept) {
      kept_.shut_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Shut() {
      kept_.shut_.fetch_sub(1, std::memory_order_relaxed);
    }
    Shut(const Shut&) = delete;
    Shut& operator=(const Shut&) = delete;

   private:
    KeptBlocks& kept_;
  };

  // All that was kept, in the hand of who gives it back to the owner of the memory: with as many calls
  // of `next` as it takes, and before anything else. One at a time: who has come past another's
  // finds nothing in anybody's hand, and so may conclude that there is no room. No driver call while it
  // lives (I5).
  class Sweep {
   public:
    explicit Sweep(KeptBlocks& kept);
    ~Sweep();
    Sweep(const Sweep&) = delete;
    Sweep& operator=(const Sweep&) = delete;

    // What was kept, and what happened since the last sweep or `count`.
    const Kept& counted() const {
      return counted_;
    }
    // One block after the other, of each size the oldest first; null after the last.
    Block* next();

   private:
    KeptBlocks& kept_;
    bool alone_;
    Kept counted_{};
    Block* chain_ = nullptr;
  };

  // Returns once nothing is in the hand of a sweep that began before.
  void wait_for_sweeps();

  // As `take`, under a `Shut`: closes every latch, so that none is overlooked.
  Block* take_last(std::size_t bytes);

  // Whether anything is kept: without closing a latch.
  bool any();

  // The same, under a `Shut`: closes every latch, so that none is overlooked.
  bool any_left();

  // A size that is new is asked for: whether a sweep is worth while, so that what was kept is one piece
  // with what is idle. Sizes that never come again are placed so most of the time, and those that do
  // are seldom swept away: there were as many new ones since the last sweep as blocks are kept, times
  // four.
  bool is_worth_a_sweep();

  // What is kept now, and what happened since the last call of this or the last sweep.
  Kept count();

  // Nothing is kept from now on; what is kept already stays until it is taken.
  void close();

  // Forgets what was asked for: another program may come.
  void forget();

  // So that a child of a fork finds every latch open, no sweep under way, and itself alone.
  void before_fork();
  void after_fork(bool in_child);

 private:
  static constexpr std::size_t kShelves = 16;
  static constexpr std::size_t kNewsABlock = 4;

  // A sweep takes a fraction of a millisecond, but who gives blocks back may meet Python's lock: rather
  // than wait for ever, a thread that holds that lock goes on.
  static constexpr std::chrono::seconds kPatience{1};

  // Under the latch of its shelf: who swept that before us shut first.
  bool may_keep(const Block& block) const {
    return block.keepable && shut_.load(std::memory_order_relaxed) == 0;
  }

  // The shelf of this thread.
  static std::size_t own() {
    return C10_LIKELY(number != 0) ? number - 1 : number_thread();
  }
  static std::size_t number_thread();

  std::span<Shelf> in_use();
  Block* take_elsewhere(std::size_t bytes, std::size_t mine);
  bool begin_sweep();
  void end_sweep(bool alone);

  // One more than the shelf, so that no thread has to run a constructor.
  static constinit inline thread_local std::size_t number = 0;

  std::atomic<bool> closed_{false};
  std::atomic<int> shut_{0};
  std::atomic<int> sweeps_{0};
  // Sizes that were new, since the last sweep.
  std::atomic<std::size_t> news_{0};
  std::timed_mutex sweeping_;
  bool fork_alone_ = false;
  std::array<Shelf, kShelves> shelves_;
};

} // namespace pinbuddy
