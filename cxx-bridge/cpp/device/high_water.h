// When the peaks of a device have to be read: before its planned blocks change, if there may be a new peak until then.
//
// PyTorch's allocator knows the peak of its own memory, and the plan the bytes of its blocks. The sum of two peaks is no peak of the
// sum. So where planned bytes are about to change, the peak of PyTorch's allocator is read together with the planned bytes of that
// time, and begins anew. That takes longer than a request does, and is left out where the sum cannot exceed the known peak: what
// PyTorch's allocator had when it was read last, and what passed to it since, is the most that it can have. Knows no allocator.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// An upper bound of all that was ever asked of PyTorch's allocator, on all devices. Grows only.
class Passed {
 public:
  void add(std::size_t bytes) {
    const std::int64_t most = bytes < kSplit ? 2 * static_cast<std::int64_t>(bytes + kLeast) : kAny;
    bytes_.fetch_add(most, std::memory_order_relaxed);
  }

  // Nobody knows how much.
  void add_any() {
    bytes_.fetch_add(kAny, std::memory_order_relaxed);
  }

  std::int64_t bytes() const {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  // A block is at most twice as long as its request. Long ones may get a rest that PyTorch does not split off.
  static constexpr std::size_t kSplit = std::size_t{1} << 20;
  static constexpr std::size_t kLeast = 512;
  static constexpr std::int64_t kAny = std::int64_t{1} << 32;

  std::atomic<std::int64_t> bytes_{0};
};

class HighWater {
 public:
  // Bytes of blocks: allocated, active, requested.
  using Bytes = std::array<std::int64_t, 3>;

  // Planned blocks have so many bytes more; fewer if negative.
  void add(const Bytes& more) {
    for (std::size_t kind = 0; kind < more.size(); ++kind) {
      if (more[kind] != 0) {
        planned_[kind].fetch_add(more[kind], std::memory_order_relaxed);
      }
    }
  }

  // Whether the peaks have to be read before planned blocks have up to `more` bytes more, or fewer; `passed`: Passed::bytes.
  bool is_due(std::int64_t passed, std::size_t more) const {
    bool is_due = false;
    for (std::size_t kind = 0; kind < planned_.size(); ++kind) {
      const std::int64_t planned = planned_[kind].load(std::memory_order_relaxed) + static_cast<std::int64_t>(more);
      is_due |= planned + passed > most_[kind].load(std::memory_order_relaxed);
    }
    return is_due;
  }

  // The peaks were read, when so much had passed. `slack`: by how much what there is of a kind is below its peak.
  void read(std::int64_t passed, const Bytes& slack) {
    for (std::size_t kind = 0; kind < slack.size(); ++kind) {
      most_[kind].store(planned_[kind].load(std::memory_order_relaxed) + passed + slack[kind], std::memory_order_relaxed);
    }
  }

  // The peaks begin anew: nothing is known of them.
  void forget() {
    for (auto& most : most_) {
      most.store(kUnknown, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::int64_t kUnknown = -1;

  std::array<std::atomic<std::int64_t>, 3> planned_{};
  // Planned bytes and passed bytes that are in sum no more than this make no new peak.
  std::array<std::atomic<std::int64_t>, 3> most_{kUnknown, kUnknown, kUnknown};
};

} // namespace pinbuddy
