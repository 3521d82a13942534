#include "kept_blocks.h"

namespace pinbuddy {

std::size_t KeptBlocks::own_shelf() {
  static std::atomic<std::size_t> threads{0};
  // One more than the shelf, so that no thread has to run a constructor.
  static thread_local std::size_t number = 0;
  if (C10_UNLIKELY(number == 0)) {
    number = threads.fetch_add(1, std::memory_order_relaxed) % kShelves + 1;
  }
  return number - 1;
}

std::size_t KeptBlocks::bin_of(std::size_t bytes) {
  // Fibonacci hashing: sizes are often multiples of large powers of two.
  return (bytes * 0x9E3779B97F4A7C15ull) >> 59;
}

void KeptBlocks::shelve_here(Block* block) {
  block->shelf = own_shelf();
}

Block* KeptBlocks::take(std::size_t bytes) {
  static_assert(kBins == 32, "bin_of gives five bits");
  Shelf& shelf = shelves_[own_shelf()];
  Latched latched(shelf.latch, Latch::Briefly);
  if (!latched) {
    return nullptr;
  }
  Block** link = &shelf.bins[bin_of(bytes)];
  for (int step = 0; *link != nullptr && step < kSteps; ++step) {
    Block* block = *link;
    if (block->grant.bytes == bytes) {
      *link = block->next_kept;
      shelf.count(-1, -bytes);
      ++shelf.reuse.blocks;
      shelf.reuse.bytes += bytes;
      return block;
    }
    link = &block->next_kept;
  }
  return nullptr;
}

bool KeptBlocks::keep(Block* block) {
  const std::size_t bytes = block->grant.bytes;
  Shelf& shelf = shelves_[block->shelf];
  Latched latched(shelf.latch, Latch::Briefly);
  // A shelf that is full of sizes that nobody asks for is emptied by the next request that it
  // cannot serve.
  if (!latched || shelf.blocks.load(std::memory_order_relaxed) == kMostBlocks ||
      shelf.bytes + bytes > most_bytes_.load(std::memory_order_relaxed)) {
    return false;
  }
  Block*& bin = shelf.bins[bin_of(bytes)];
  block->next_kept = bin;
  bin = block;
  shelf.count(1, bytes);
  return true;
}

Block* KeptBlocks::take_all() {
  Block* taken = nullptr;
  for (Shelf& shelf : shelves_) {
    if (shelf.blocks.load(std::memory_order_relaxed) == 0) {
      continue;
    }
    Latched latched(shelf.latch, Latch::UntilOpen);
    for (Block*& bin : shelf.bins) {
      while (bin != nullptr) {
        Block* block = bin;
        bin = block->next_kept;
        block->next_kept = taken;
        taken = block;
      }
    }
    shelf.count(-shelf.blocks.load(std::memory_order_relaxed), -shelf.bytes);
  }
  return taken;
}

Reuse KeptBlocks::count_reuse() {
  Reuse sum;
  for (Shelf& shelf : shelves_) {
    Latched latched(shelf.latch, Latch::UntilOpen);
    sum.blocks += shelf.reuse.blocks;
    sum.bytes += shelf.reuse.bytes;
    shelf.reuse = Reuse{};
  }
  return sum;
}

} // namespace pinbuddy
