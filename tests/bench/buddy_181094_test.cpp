// Tests the model of #181094: no two blocks overlap, and freed blocks merge.
//
// Exits with 0, or prints what failed on standard error.
#include "buddy_181094.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kSegment = 64 * kMiB;
int pins = 0;
int unpins = 0;

void* reserve(std::size_t bytes) {
  ++pins;
  return std::aligned_alloc(4096, bytes); // never touched
}

void release(void* memory) {
  ++unpins;
  std::free(memory);
}

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::exit(1);
  }
}

} // namespace

int main() {
  bench::Buddy181094 buddy(kSegment, 2, reserve, release);
  std::map<char*, bench::Buddy181094::Block> live;
  std::mt19937_64 random(181094);
  const auto take = [&](std::size_t bytes) {
    const auto block = buddy.allocate(bytes);
    if (!block.start) {
      return;
    }
    require(pins == 2, "the first request pins all segments, and no other pins any");
    require(block.bytes == std::bit_ceil(std::max<std::size_t>(bytes, 4096)), "the next power of two");
    require(buddy.owns(block.start) && buddy.owns(block.start + block.bytes - 1), "in a segment");
    const auto after = live.upper_bound(block.start);
    require(after == live.end() || block.start + block.bytes <= after->first, "no overlap above");
    if (after != live.begin()) {
      const auto& before = std::prev(after)->second;
      require(before.start + before.bytes <= block.start, "no overlap below");
    }
    live.emplace(block.start, block);
  };
  const auto drop = [&](std::size_t which) {
    const auto it = std::next(live.begin(), static_cast<long>(which));
    buddy.free(it->second);
    live.erase(it);
  };

  for (int step = 0; step < 20000; ++step) {
    if (live.empty() || random() % 2) {
      take(1 + random() % (8 * kMiB));
    } else {
      drop(random() % live.size());
    }
  }
  require(!live.empty(), "something is live");
  require(!buddy.allocate(kSegment + 1).start, "nothing above a segment");
  buddy.empty_cache();
  require(unpins < 2, "a segment with live blocks stays");
  while (!live.empty()) {
    drop(random() % live.size());
  }
  require(buddy.free_blocks() == static_cast<std::size_t>(2 - unpins), "one free block a segment");
  buddy.empty_cache();
  require(unpins == 2 && buddy.pinned_bytes() == 0, "whole segments are unpinned");
  require(!buddy.allocate(1).start, "and not pinned again");
  return 0;
}
