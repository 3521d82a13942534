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
// outstanding; a shelf holds so many blocks and so many bytes at most; nothing but links and counts
// is changed under a shelf's latch. Knows neither the engine nor upstream's lists.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

#include "block.h"
#include "lock.h"

namespace pinbuddy {

class KeptBlocks {
 public:
  // No shelf keeps more than `most_bytes`.
  explicit KeptBlocks(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // A kept block of exactly `bytes` bytes, from this thread's shelf or else from any other; null
  // where there is none.
  Block* take(std::size_t bytes);

  // As `take`; where it finds none, whether this thread has asked before for `bytes` bytes that
  // nothing kept was there for: then it will again, and keeping is worth while. Remembers it; for many
  // sizes that is sometimes wrong. A size that is new to this thread is looked for on its own shelf
  // only.
  Block* take_or_note(std::size_t bytes, bool& again);

  // A block that was not kept before is to be kept for this thread.
  static void shelve_here(Block* block);

  // Its user has freed a block: keeps it; false where its shelf is full.
  [[nodiscard]] bool keep(Block* block);

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

  // As `take`, under a `Shut`: closes every latch, so that none is overlooked.
  Block* take_last(std::size_t bytes);

  // The same in two steps, for a block that has to wait for events in between.
  void count_freed(Block* block);
  [[nodiscard]] bool keep_counted(Block* block);

  // Whether this thread's shelf turned a block away since it was last swept: what fills it may be
  // sizes that nobody asks for any more, so that a request that finds nothing there should sweep.
  bool full_here();

  // Whether anything is kept: without closing a latch.
  bool any();

  // What is kept now, and what happened since the last call of this or of `sweep`.
  Kept count();

  // Takes all of it, linked by `next_kept`, of each size the oldest first; counts as `count` does.
  [[nodiscard]] Block* sweep(Kept& kept);

  // Nothing is kept from now on; what is kept already stays until it is taken.
  void close();

  // Forgets what was asked for: another program may come.
  void forget();

  // So that a child of a fork finds every latch open, and itself alone.
  void before_fork();
  void after_fork(bool in_child);

 private:
  static constexpr std::size_t kShelves = 16;
  // A prime of which 2 is a primitive root: no two powers of two below 2^36 share a bin, so that
  // where all sizes are such, what is kept is found. Other sizes spread.
  static constexpr std::size_t kBins = 37;
  static constexpr std::size_t kMostBlocks = 128;
  // How far a bin is searched: other sizes that share a bin must not make each other slow.
  static constexpr int kSteps = 8;
  // A set of sizes as bits; above so many sizes one in 16 would be taken for another.
  static constexpr std::size_t kSizeBits = 4096;
  static constexpr std::size_t kMostSizes = 256;

  // How many blocks users have, against when that was last asked, and the most that it was since.
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
  struct alignas(128) Shelf {
    Latch latch;
    // A bit for each bin that has blocks. Changed under the latch only: who sees none there need
    // not close it.
    std::atomic<std::uint64_t> filled{0};
    std::atomic<bool> full{false};
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    // Since it was last counted.
    Rise rise_blocks;
    Rise rise_bytes;
    std::size_t reused_blocks = 0;
    std::size_t reused_bytes = 0;
    // Last in, first out; a size has one bin, and a bin may have several.
    std::array<Block*, kBins> bins{};
    std::bitset<kSizeBits> asked;
    std::size_t sizes = 0;

    static std::uint64_t bit(std::size_t size) {
      return std::uint64_t{1} << (size % kBins);
    }
    Block* take(std::size_t wanted);
    bool ask(std::size_t size);
    void put(Block* block);
    void freed(Block* block);
    Block* clear(Block* chain);
    void count(Kept& sum);
  };

  bool put(Shelf& shelf, Block* block);
  static std::size_t own();
  std::span<Shelf> in_use();
  Block* take_elsewhere(std::size_t bytes, std::size_t mine);

  std::atomic<std::size_t> most_bytes_;
  std::atomic<int> shut_{0};
  std::array<Shelf, kShelves> shelves_;
};

} // namespace pinbuddy
