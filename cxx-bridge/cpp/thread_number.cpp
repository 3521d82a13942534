#include "thread_number.h"

#include <array>
#include <atomic>
#include <bit>

namespace pinbuddy {
namespace {

// Which numbers are taken. Without a lock, since a child may be made at any time.
class Numbers {
 public:
  // The smallest number that no thread has; `ThreadNumber::kMost` if there is none.
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
    return ThreadNumber::kMost;
  }

  void give_back(std::uint32_t number) {
    words_[number / 64].fetch_and(~(std::uint64_t{1} << number % 64), std::memory_order_release);
  }

 private:
  std::array<std::atomic<std::uint64_t>, ThreadNumber::kMost / 64> words_{};
};

constinit Numbers numbers;

} // namespace

struct ThreadNumber::Owner {
  ~Owner() {
    if (own < kMost) {
      numbers.give_back(own);
    }
    // Other destructors of this thread may ask again.
    number_ = kMost + 1;
  }

  std::uint32_t own = kMost;
};

std::uint32_t ThreadNumber::take() {
  static thread_local Owner owner;
  owner.own = numbers.take();
  number_ = owner.own + 1;
  return owner.own;
}

} // namespace pinbuddy
