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

// `BYTES`; `event` and `small-event` (8 MiB and 64 KiB, used on a stream); `mixed` (4 KiB to 64 MiB, eight live at a time);
// `miss` (4 to 64 MiB) and `small-miss` (4 KiB to 4 MiB), no size twice within a thousand, so that
// no list of freed blocks of the same size can serve them. `never-again`, 4 to 32 MiB, is as `miss` with sixteen
// live; `large-mixed` has 96 sizes of
// 2 to 49 MiB, again and again, and eight live; `50-random` has fifty sizes of 5 to 63 MiB in no order, and fifty live. In batches: `COUNTxBYTES`; `50-sizes` (4 to 64 MiB); `400-sizes`, of 9 to 15 MiB. The same for every program.
Requests requests(const std::string& pattern);

// Runs a pattern on an allocator; continues where the last call ended.
class Loop {
 public:
  Loop(at::HostAllocator* allocator, Requests requests);

  // Runs `pairs` pairs of free and allocate; of batches only whole ones, at most `pairs` pairs.
  void run(long pairs);
  // The nanoseconds of each. Not for batches.
  std::vector<double> run_timed(long pairs);

 private:
  void pair();
  void batch();

  at::HostAllocator* const allocator_;
  const Requests requests_;
  std::vector<at::DataPtr> live_;
  std::size_t next_ = 0;
};

} // namespace bench
