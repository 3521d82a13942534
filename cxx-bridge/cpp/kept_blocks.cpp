#include "kept_blocks.h"

namespace pinbuddy {
namespace {

// Threads that have a shelf: the first ones have one each.
std::atomic<std::size_t> threads{0};

// Into 12 bits, by Fibonacci hashing, so that sizes which are multiples of large powers of two spread.
std::size_t hash(std::size_t bytes) {
  return (bytes * 0x9E3779B97F4A7C15ull) >> (64 - 12);
}

} // namespace

std::size_t KeptBlocks::own() {
  // One more than the shelf, so that no thread has to run a constructor.
  static thread_local std::size_t number = 0;
  if (C10_UNLIKELY(number == 0)) {
    number = threads.fetch_add(1, std::memory_order_relaxed) % kShelves + 1;
  }
  return number - 1;
}

std::span<KeptBlocks::Shelf> KeptBlocks::in_use() {
  // Who comes later than this is as if it came after the whole call.
  // Blocks that no thread took for itself are on the first one.
  const std::size_t numbered = threads.load(std::memory_order_relaxed);
  return {shelves_.data(), std::clamp(numbered, std::size_t{1}, kShelves)};
}

void KeptBlocks::shelve_here(Block* block) {
  block->shelf = own();
}

Block* KeptBlocks::take(std::size_t bytes) {
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

Block* KeptBlocks::take_or_note(std::size_t bytes, bool& again) {
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

Block* KeptBlocks::take_elsewhere(std::size_t bytes, std::size_t mine) {
  for (Shelf& shelf : in_use()) {
    const std::uint64_t filled = shelf.filled.load(std::memory_order_relaxed);
    if (&shelf == &shelves_[mine] || (filled & Shelf::bit(bytes)) == 0) {
      continue;
    }
    Latched latched(shelf.latch);
    if (Block* block = shelf.take(bytes)) {
      block->shelf = mine;
      return block;
    }
  }
  return nullptr;
}

bool KeptBlocks::keep(Block* block) {
  Shelf& shelf = shelves_[block->shelf];
  Latched latched(shelf.latch);
  shelf.freed(block);
  return put(shelf, block);
}

void KeptBlocks::count_freed(Block* block) {
  Shelf& shelf = shelves_[block->shelf];
  Latched latched(shelf.latch);
  shelf.freed(block);
}

bool KeptBlocks::keep_counted(Block* block) {
  Shelf& shelf = shelves_[block->shelf];
  Latched latched(shelf.latch);
  return put(shelf, block);
}

Block* KeptBlocks::take_last(std::size_t bytes) {
  const std::size_t mine = own();
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    if (Block* block = shelf.take(bytes)) {
      block->shelf = mine;
      return block;
    }
  }
  return nullptr;
}

bool KeptBlocks::put(Shelf& shelf, Block* block) {
  // Ordered by the latch: who swept this shelf before us shut first.
  if (C10_UNLIKELY(shut_.load(std::memory_order_relaxed) != 0)) {
    return false;
  }
  if (shelf.blocks == kMostBlocks ||
      shelf.bytes + block->size_ > most_bytes_.load(std::memory_order_relaxed)) {
    shelf.full.store(true, std::memory_order_relaxed);
    return false;
  }
  shelf.put(block);
  return true;
}

bool KeptBlocks::full_here() {
  return shelves_[own()].full.load(std::memory_order_relaxed);
}

bool KeptBlocks::any() {
  const auto shelves = in_use();
  return std::any_of(shelves.begin(), shelves.end(), [](const Shelf& shelf) {
    return shelf.filled.load(std::memory_order_relaxed) != 0;
  });
}

Kept KeptBlocks::count() {
  Kept sum{};
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    shelf.count(sum);
  }
  return sum;
}

Block* KeptBlocks::sweep(Kept& kept) {
  kept = Kept{};
  Block* chain = nullptr;
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    shelf.count(kept);
    chain = shelf.clear(chain);
  }
  return chain;
}

void KeptBlocks::close() {
  most_bytes_.store(0, std::memory_order_relaxed);
}

void KeptBlocks::forget() {
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    shelf.asked.reset();
    shelf.sizes = 0;
  }
}

void KeptBlocks::before_fork() {
  for (Shelf& shelf : shelves_) {
    shelf.latch.close();
  }
}

void KeptBlocks::after_fork(bool in_child) {
  if (in_child) {
    // Whoever shut them is not here.
    shut_.store(0, std::memory_order_relaxed);
  }
  for (Shelf& shelf : shelves_) {
    shelf.latch.open();
  }
}

Block* KeptBlocks::Shelf::take(std::size_t wanted) {
  Block** link = &bins[wanted % kBins];
  for (int step = 0; *link != nullptr && step < kSteps; ++step) {
    Block* block = *link;
    if (block->size_ == wanted) {
      *link = block->next_kept;
      if (bins[wanted % kBins] == nullptr) {
        filled.store(
            filled.load(std::memory_order_relaxed) & ~bit(wanted), std::memory_order_relaxed);
      }
      --blocks;
      bytes -= wanted;
      rise_blocks.up(1);
      rise_bytes.up(wanted);
      ++reused_blocks;
      reused_bytes += wanted;
      return block;
    }
    link = &block->next_kept;
  }
  return nullptr;
}

bool KeptBlocks::Shelf::ask(std::size_t size) {
  const std::size_t index = hash(size);
  static_assert(kSizeBits == 1 << 12);
  if (asked[index]) {
    return true;
  }
  if (sizes == kMostSizes) {
    asked.reset();
    sizes = 0;
  }
  asked[index] = true;
  ++sizes;
  return false;
}

void KeptBlocks::Shelf::put(Block* block) {
  Block*& bin = bins[block->size_ % kBins];
  block->next_kept = bin;
  bin = block;
  filled.store(
      filled.load(std::memory_order_relaxed) | bit(block->size_), std::memory_order_relaxed);
  ++blocks;
  bytes += block->size_;
}

void KeptBlocks::Shelf::freed(Block* block) {
  rise_blocks.down(1);
  rise_bytes.down(block->size_);
}

Block* KeptBlocks::Shelf::clear(Block* chain) {
  full.store(false, std::memory_order_relaxed);
  if (bytes == 0) {
    return chain;
  }
  for (Block*& bin : bins) {
    while (bin != nullptr) {
      Block* block = bin;
      bin = block->next_kept;
      block->next_kept = chain;
      chain = block;
    }
  }
  filled.store(0, std::memory_order_relaxed);
  blocks = 0;
  bytes = 0;
  return chain;
}

void KeptBlocks::Shelf::count(Kept& sum) {
  sum.blocks += blocks;
  sum.bytes += bytes;
  sum.rise_blocks += static_cast<std::size_t>(rise_blocks.most);
  sum.rise_bytes += static_cast<std::size_t>(rise_bytes.most);
  sum.reused_blocks += reused_blocks;
  sum.reused_bytes += reused_bytes;
  rise_blocks = rise_bytes = Rise{};
  reused_blocks = reused_bytes = 0;
}

} // namespace pinbuddy
