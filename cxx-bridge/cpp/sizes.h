// An approximate set of sizes: a bit for each hash, so that a size is sometimes found though it is not in it.
//
// Invariant: at most one bit in 16 is set, then the set is cleared. So at worst one in sixteen sizes that
// are not in it is found. Knows no block.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// Fibonacci hashing, which spreads multiples of large powers of two. The upper bits are the good ones.
inline std::uint64_t hash_of_size(std::size_t bytes) {
  return bytes * 0x9E3779B97F4A7C15ull;
}

class Sizes {
 public:
  // Inserts `size`; returns whether it was in the set.
  bool insert(std::size_t size) {
    const std::size_t index = hash_of_size(size) >> (64 - kBitsLog);
    if (bits_[index]) {
      return true;
    }
    if (count_ == kMost) {
      clear();
    }
    bits_[index] = true;
    ++count_;
    return false;
  }

  void clear() {
    bits_.reset();
    count_ = 0;
  }

 private:
  static constexpr std::size_t kBitsLog = 15;
  static constexpr std::size_t kMost = (std::size_t{1} << kBitsLog) / 16;

  std::size_t count_ = 0;
  std::bitset<(std::size_t{1} << kBitsLog)> bits_;
};

} // namespace pinbuddy
