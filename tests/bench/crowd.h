// Many blocks and as many holes between them, for requests that must not be slower for it.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <cstddef>
#include <vector>

namespace bench {

class Crowd {
 public:
  explicit Crowd(at::HostAllocator* allocator) : allocator_(allocator) {}

  // Until so many blocks of 4 KiB are live, each with a free one beside it as far as the allocator
  // puts them side by side; the blocks that are there stay. False where that takes longer than
  // `seconds`: then it was left half done.
  bool grow(std::size_t count, double seconds);

 private:
  at::HostAllocator* const allocator_;
  std::vector<at::DataPtr> live_;
};

} // namespace bench
