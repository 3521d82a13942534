// A small model of the allocator that pytorch/pytorch#181094 proposes, for comparison.
//
// Power-of-two buddies over `count` segments of `segment_bytes`, all of them pinned by the first
// request; one mutex; a deque of free blocks for each size, searched from its front for the buddy of
// a block that comes back. Where the proposal's code is wrong the model is right: buddies are found
// by their offset in a segment, and only whole segments are unpinned.
//
// Knows nothing of PyTorch, streams or thresholds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace bench {

class Buddy181094 {
 public:
  using Pin = void* (*)(std::size_t);
  using Unpin = void (*)(void*);

  struct Block {
    char* start;
    std::size_t bytes;
  };

  Buddy181094(std::size_t segment_bytes, std::size_t count, Pin pin, Unpin unpin);

  // A block of the next power of two, at least 4 KiB; its start is null if nothing fits.
  Block allocate(std::size_t bytes);
  void free(Block block);
  // Unpins the segments that are wholly free. They are not pinned again.
  void empty_cache();

  bool owns(const void* memory) const;
  // Free blocks of all sizes, and pinned bytes.
  std::size_t free_blocks();
  std::size_t pinned_bytes();

 private:
  static constexpr std::size_t kSmallest = 4096;

  void warm_up();
  void merge(Block block);
  char* segment_of(const char* start) const;

  const std::size_t segment_bytes_;
  const std::size_t count_;
  const Pin pin_;
  const Unpin unpin_;
  std::mutex mutex_;
  bool warm_ = false;
  // Null if a segment was refused or unpinned.
  std::vector<char*> segments_;
  // By log2 of the size.
  std::array<std::deque<char*>, 64> free_;
};

} // namespace bench
