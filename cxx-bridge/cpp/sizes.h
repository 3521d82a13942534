// A set of sizes, of which a few are sometimes taken for others: a bit each, found by their hash.
//
// Invariant: of the bits one in 16 is set at most, then it begins anew; so of sixteen sizes that are not
// in it one is taken for another at worst. Knows no block.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// Fibonacci's, so that sizes which are multiples of large powers of two spread. The upper bits are the
// good ones.
inline std::uint64_t hash_of_size(std::size_t bytes) {
  return bytes * 0x9E3779B97F4A7C15ull;
}

class Sizes {
 public:
  // Puts it in; whether it was in before.
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
