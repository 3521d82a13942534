// The patterns of requests that allocators are timed on.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

// Repeated allocate and free. `sizes` are used cyclically, and `window` blocks are live at a time: with 1, each is
// freed before the next is allocated.
struct Requests {
  std::vector<std::size_t> sizes;
  std::size_t window = 1;
  // Each block is used on a stream before it is freed.
  bool event = false;
  // All `window` blocks are allocated, then freed, the last first.
  bool batches = false;
};

// The requests of `BYTES`, of batches of `COUNTxBYTES`, or of a name in requests.cpp. The same for every program.
Requests requests(const std::string& pattern);

// Runs a pattern on an allocator, of pinned memory if the pattern has events; continues where the last call ended.
class Loop {
 public:
  Loop(c10::Allocator* allocator, Requests requests);

  // Runs `pairs` pairs of free and allocate; of batches only whole ones, at most `pairs` pairs.
  void run(long pairs);
  // The nanoseconds of each. Not for batches.
  std::vector<double> run_timed(long pairs);

 private:
  void pair();
  void batch();

  c10::Allocator* const allocator_;
  const Requests requests_;
  std::vector<at::DataPtr> live_;
  std::size_t next_ = 0;
};

} // namespace bench
