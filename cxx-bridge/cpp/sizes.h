// Size classes, and an approximate set of sizes.
//
// The set has a bit for each hash, so that a size is sometimes found though it is not in it. Invariant: at
// most one bit in 16 is set, then the set is cleared. So at worst one in sixteen sizes that are not in it
// is found. Knows no block.
#pragma once

#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// What requests are rounded up to. Beside a plan of amounts, small ones to a few sizes in each doubling, so
// that a cached block serves another request than its last (rust-core/plan/src/classes.rs rounds in the same
// way); all others to whole granules.
class SizeClasses {
 public:
  // So many classes, a power of two, in each doubling; 0 for none.
  explicit SizeClasses(std::uint32_t classes)
      : exact_(classes == 0 ? kMost : classes * kGranule),
        shift_(classes == 0 ? 0 : static_cast<unsigned>(std::countr_zero(classes)) + 1) {}

  // Overflows for a size near the largest.
  std::size_t round(std::size_t size) const {
    const std::size_t bytes = (size + kGranule - 1) & ~(kGranule - 1);
    if (bytes <= exact_ || bytes >= kMost) {
      return bytes;
    }
    // Half the next power of two, in as many steps as there are classes.
    const std::size_t step = std::bit_ceil(bytes) >> shift_;
    return (bytes + step - 1) & ~(step - 1);
  }

 private:
  // The unit in which the engine grants memory.
  static constexpr std::size_t kGranule = 4096;
  // Larger requests are not rounded up further.
  static constexpr std::size_t kMost = std::size_t{4} << 20;

  // Up to here each size is a class of its own.
  std::size_t exact_;
  unsigned shift_;
};

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
