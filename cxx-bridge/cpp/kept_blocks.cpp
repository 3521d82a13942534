#include "kept_blocks.h"

#include <algorithm>
#include <utility>

namespace pinbuddy {
namespace {

// Threads that have a shelf: the first ones have one each.
std::atomic<std::size_t> threads{0};

} // namespace

std::size_t KeptBlocks::number_thread() {
  number = threads.fetch_add(1, std::memory_order_relaxed) % kShelves + 1;
  return number - 1;
}

std::span<Shelf> KeptBlocks::in_use() {
  // Who comes later than this is as if it came after the whole call.
  // Blocks that no thread took for itself are on the first one.
  const std::size_t numbered = threads.load(std::memory_order_relaxed);
  return {shelves_.data(), std::clamp(numbered, std::size_t{1}, kShelves)};
}

void KeptBlocks::shelve_here(Block* block, bool keep) {
  block->shelf = own();
  block->keepable = keep;
}

Block* KeptBlocks::take_elsewhere(std::size_t bytes, std::size_t mine) {
  for (Shelf& shelf : in_use()) {
    if (&shelf == &shelves_[mine] || !shelf.may_have(bytes)) {
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

bool KeptBlocks::any() {
  const auto shelves = in_use();
  return std::any_of(
      shelves.begin(), shelves.end(), [](const Shelf& shelf) { return shelf.any(); });
}

bool KeptBlocks::any_left() {
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    if (shelf.any()) {
      return true;
    }
  }
  return false;
}

bool KeptBlocks::is_worth_a_sweep() {
  const std::size_t news = news_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::size_t blocks = 0;
  for (const Shelf& shelf : in_use()) {
    blocks += shelf.blocks();
  }
  return blocks != 0 && news >= kNewsABlock * blocks;
}

Kept KeptBlocks::count() {
  Kept sum{};
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    shelf.count(sum);
  }
  return sum;
}

KeptBlocks::Sweep::Sweep(KeptBlocks& kept) : kept_(kept), alone_(kept.begin_sweep()) {
  Shelf::Bins tops;
  for (Shelf& shelf : kept_.in_use()) {
    std::size_t count = 0;
    {
      Latched latched(shelf.latch);
      shelf.count(counted_);
      shelf.clear([&](Block* top) { tops[count++] = top; });
    }
    // The last in of each stack to the front first, and so behind the others.
    for (Block* top : std::span(tops.data(), count)) {
      while (top != nullptr) {
        Block* block = top;
        top = top->next_size;
        while (block != nullptr) {
          Block* below = block->next_kept;
          block->next_kept = chain_;
          chain_ = block;
          block = below;
        }
      }
    }
  }
}

KeptBlocks::Sweep::~Sweep() {
  kept_.end_sweep(alone_);
}

Block* KeptBlocks::Sweep::next() {
  return chain_ == nullptr ? nullptr : std::exchange(chain_, chain_->next_kept);
}

bool KeptBlocks::begin_sweep() {
  const bool alone = sweeping_.try_lock() || sweeping_.try_lock_for(kPatience);
  // Before any shelf is cleared, and so seen by all who find one empty.
  sweeps_.fetch_add(1, std::memory_order_relaxed);
  news_.store(0, std::memory_order_relaxed);
  count_held(1);
  return alone;
}

void KeptBlocks::end_sweep(bool alone) {
  count_held(-1);
  sweeps_.fetch_sub(1, std::memory_order_release);
  if (alone) {
    sweeping_.unlock();
  }
}

void KeptBlocks::wait_for_sweeps() {
  if (C10_LIKELY(sweeps_.load(std::memory_order_acquire) == 0)) {
    return;
  }
  if (sweeping_.try_lock_for(kPatience)) {
    sweeping_.unlock();
  }
}

void KeptBlocks::close() {
  if (!closed_.exchange(true)) {
    shut_.fetch_add(1, std::memory_order_relaxed);
  }
}

void KeptBlocks::forget() {
  for (Shelf& shelf : in_use()) {
    Latched latched(shelf.latch);
    shelf.forget();
  }
}

void KeptBlocks::before_fork() {
  fork_alone_ = begin_sweep();
  for (Shelf& shelf : shelves_) {
    shelf.latch.close();
  }
}

void KeptBlocks::after_fork(bool in_child) {
  if (in_child) {
    // Whoever shut them, or swept, is not here.
    shut_.store(closed_.load() ? 1 : 0, std::memory_order_relaxed);
    sweeps_.store(1, std::memory_order_relaxed);
  }
  for (Shelf& shelf : shelves_) {
    shelf.latch.open();
  }
  end_sweep(fork_alone_);
}

} // namespace pinbuddy
