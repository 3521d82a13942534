// Threads that allocate and free at the same time.
#pragma once

#include "requests.h"

#include <barrier>
#include <thread>
#include <vector>

namespace bench {

// Started once, so that turns do not include starting them.
class Threads {
 public:
  Threads(at::HostAllocator* allocator, const Requests& requests, int count);
  ~Threads();

  // Wall-clock nanoseconds until each has done `pairs` pairs.
  double run(long pairs);

 private:
  std::barrier<> barrier_; // before and behind the pairs of a turn
  long pairs_ = 0;
  std::vector<std::jthread> threads_;
};

// Threads that allocate and free one block of this size at a time for `seconds`, while another reads the
// allocator's statistics.
void beside_statistics(at::HostAllocator* allocator, std::size_t bytes, int count, double seconds);

} // namespace bench
