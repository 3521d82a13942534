#include "planned_blocks.h"

#include <array>
#include <bit>

namespace pinbuddy {
namespace {

// The numbers that threads have. A thread that ends gives its number back, the next one takes the smallest: so they
// stay small in a program that makes threads again and again. Without a lock, since a child may be made at any time.
class Numbers {
 public:
  static constexpr std::uint32_t kMost = 1U << 16;

  // The smallest number that no thread has; `kMost` if there is none.
  std::uint32_t take() {
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      std::uint64_t taken = words_[word].load(std::memory_order_relaxed);
      while (taken != ~std::uint64_t{0}) {
        const auto free = static_cast<std::uint32_t>(std::countr_one(taken));
        // Acquires what its last owner has left.
        if (words_[word].compare_exchange_weak(taken, taken | std::uint64_t{1} << free, std::memory_order_acquire)) {
          return word * 64 + free;
        }
      }
    }
    return kMost;
  }

  void give_back(std::uint32_t number) {
    words_[number / 64].fetch_and(~(std::uint64_t{1} << number % 64), std::memory_order_release);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kMost / 64> words_{};
};

constinit Numbers numbers;

} // namespace

// Gives the thread's lane and its number back when the thread ends.
struct PlannedBlocks::Owner {
  ~Owner() {
    if (own < Numbers::kMost) {
      engine_thread_ended(own);
      numbers.give_back(own);
    }
    // What other destructors of this thread ask for has no lane.
    number = Numbers::kMost + 1;
  }

  std::uint32_t own = Numbers::kMost;
};

std::uint32_t PlannedBlocks::number_thread() {
  static thread_local Owner owner;
  owner.own = numbers.take();
  number = owner.own + 1;
  return owner.own;
}

Block* PlannedBlocks::place(const Grant& grant, Block* block) {
  if (block == nullptr) {
    block = table_.make(grant);
    block->planned = true;
    blocks_[grant.offset].store(block, std::memory_order_release);
  } else {
    block->grant = grant;
    block->ptr_ = reinterpret_cast<void*>(grant.address);
  }
  return block;
}

} // namespace pinbuddy
