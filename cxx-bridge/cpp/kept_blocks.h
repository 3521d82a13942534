// Freed blocks that are kept whole for the next request of exactly their size.
//
// Merging a block with its neighbours and cutting the same block again is most of what a request
// costs the engine, and steps of a program ask for the same sizes again and again. So a freed block
// first stays as it is, with its block object; the engine still counts it as handed out. A request
// that no kept block serves, and whoever else asks the engine about what is idle, has all of them
// given back first: `take_all`. So the engine decides as if none were ever kept.
//
// A thread takes from a shelf of its own, and a block goes back to the shelf that it was taken for,
// whichever thread frees it: threads meet only where one frees what another allocates. Invariants: a
// kept block has no user and no event outstanding; a shelf holds so many blocks and so many bytes at
// most; nothing but links and counts is changed under a shelf's latch.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block.h"
#include "lock.h"

namespace pinbuddy {

// Requests that were served by kept blocks: the engine does not know of them.
struct Reuse {
  std::size_t blocks = 0;
  std::size_t bytes = 0;
};

class KeptBlocks {
 public:
  // No shelf keeps more than `most_bytes`.
  explicit KeptBlocks(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // A kept block of exactly `bytes` bytes, whole granules; null where this thread's shelf has none.
  Block* take(std::size_t bytes);

  // Keeps a block; false where its shelf is full or just being used.
  [[nodiscard]] bool keep(Block* block);

  // Every block of every shelf, linked by `next_kept`.
  [[nodiscard]] Block* take_all();

  // How kept blocks served since the last call.
  [[nodiscard]] Reuse count_reuse();

  // Nothing is kept from now on; what is kept already stays until `take_all`.
  void close() {
    most_bytes_.store(0, std::memory_order_relaxed);
  }

  // Once freed, the block is kept for this thread.
  static void shelve_here(Block* block);

 private:
  static constexpr std::size_t kShelves = 16;
  static constexpr std::size_t kBins = 32;
  static constexpr std::size_t kMostBlocks = 128;
  // How far a bin is searched: sizes that share a bin must not make each other slow.
  static constexpr int kSteps = 8;

  // Apart by two cache lines: processors fetch them in pairs.
  struct alignas(128) Shelf {
    Latch latch;
    // Changed under the latch only; whoever sees none need not take it.
    std::atomic<std::size_t> blocks{0};
    std::size_t bytes = 0;
    Reuse reuse;
    // Last in, first out; a size has one bin, and a bin may have several sizes.
    std::array<Block*, kBins> bins{};

    void count(std::size_t more_blocks, std::size_t more_bytes) {
      blocks.store(blocks.load(std::memory_order_relaxed) + more_blocks, std::memory_order_relaxed);
      bytes += more_bytes;
    }
  };

  static std::size_t bin_of(std::size_t bytes);
  static std::size_t own_shelf();

  std::atomic<std::size_t> most_bytes_;
  std::array<Shelf, kShelves> shelves_;
};

} // namespace pinbuddy
