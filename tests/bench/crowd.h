// Many blocks with as many holes between them, which must not slow requests down.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <cstddef>
#include <vector>

namespace bench {

class Crowd {
 public:
  explicit Crowd(at::HostAllocator* allocator) : allocator_(allocator) {}

  // Allocates until `count` blocks of 4 KiB are live, each with a free one beside it if the allocator places them
  // side by side. Existing blocks stay. False if it stopped after `seconds`.
  bool grow(std::size_t count, double seconds);

 private:
  at::HostAllocator* const allocator_;
  std::vector<at::DataPtr> live_;
};

} // namespace bench
