#include "buddy_181094.h"

#include <algorithm>
#include <bit>

namespace bench {
namespace {

std::size_t order_of(std::size_t power) {
  return static_cast<std::size_t>(std::countr_zero(power));
}

} // namespace

Buddy181094::Buddy181094(std::size_t segment_bytes, std::size_t count, Pin pin, Unpin unpin)
    : segment_bytes_(segment_bytes), count_(count), pin_(pin), unpin_(unpin) {}

void Buddy181094::warm_up() {
  warm_ = true;
  segments_.resize(count_);
  for (char*& segment : segments_) {
    segment = static_cast<char*>(pin_(segment_bytes_));
    if (segment) {
      free_[order_of(segment_bytes_)].push_back(segment);
    }
  }
}

Buddy181094::Block Buddy181094::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!warm_) {
    warm_up();
  }
  if (bytes > segment_bytes_) {
    return {nullptr, 0};
  }
  const std::size_t wanted = std::max(std::bit_ceil(bytes), kSmallest);
  std::size_t size = wanted;
  while (size <= segment_bytes_ && free_[order_of(size)].empty()) {
    size *= 2;
  }
  if (size > segment_bytes_) {
    return {nullptr, 0};
  }
  std::deque<char*>& from = free_[order_of(size)];
  char* start = from.front();
  from.pop_front();
  while (size > wanted) {
    size /= 2;
    free_[order_of(size)].push_back(start + size);
  }
  return {start, wanted};
}

void Buddy181094::free(Block block) {
  const std::lock_guard lock(mutex_);
  merge(block);
}

void Buddy181094::merge(Block block) {
  char* const segment = segment_of(block.start);
  while (block.bytes < segment_bytes_) {
    const auto offset = static_cast<std::size_t>(block.start - segment);
    char* const buddy = segment + (offset ^ block.bytes);
    std::deque<char*>& same = free_[order_of(block.bytes)];
    const auto found = std::find(same.begin(), same.end(), buddy);
    if (found == same.end()) {
      break;
    }
    same.erase(found);
    block = {std::min(block.start, buddy), block.bytes * 2};
  }
  free_[order_of(block.bytes)].push_back(block.start);
}

void Buddy181094::empty_cache() {
  const std::lock_guard lock(mutex_);
  std::deque<char*>& whole = free_[order_of(segment_bytes_)];
  for (char* start : whole) {
    *std::find(segments_.begin(), segments_.end(), start) = nullptr;
    unpin_(start);
  }
  whole.clear();
}

char* Buddy181094::segment_of(const char* start) const {
  for (char* segment : segments_) {
    if (segment && start >= segment && start < segment + segment_bytes_) {
      return segment;
    }
  }
  return nullptr;
}

bool Buddy181094::owns(const void* memory) const {
  return segment_of(static_cast<const char*>(memory)) != nullptr;
}

std::size_t Buddy181094::free_blocks() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& list : free_) {
    count += list.size();
  }
  return count;
}

std::size_t Buddy181094::pinned_bytes() {
  const std::lock_guard lock(mutex_);
  const auto there = [](const char* segment) { return segment != nullptr; };
  const auto count = std::count_if(segments_.begin(), segments_.end(), there);
  return static_cast<std::size_t>(count) * segment_bytes_;
}

} // namespace bench
