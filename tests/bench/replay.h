// A trace's requests on a real allocator: what it pins for them, and how long they take.
#pragma once

#include "trace.h"

#include <ATen/core/CachingHostAllocator.h>

#include <vector>

namespace bench {

// By iteration, what ends one being its `iteration` event; what follows the last one counts as one
// more where there is something.
struct Iteration {
  double nanoseconds = 0; // within the allocator
  double pins = 0; // calls to the driver
};

struct Sample {
  double microseconds = 0; // of the trace's clock
  double live = 0; // bytes requested and not freed
  double pinned = 0;
};

struct Replayed {
  std::vector<Iteration> iterations;
  std::vector<Sample> samples;
  double peak_live = 0;
  double peak_pinned = 0;
  // At the trace's last `clear`; both 0 without one.
  double live_at_clear = 0;
  double pinned_after_clear = 0;
};

// All on this thread, in order. With `paced`, no event comes before its time: what the program did
// between its requests is waited for. Otherwise what goes on beside it is over at the next request:
// what streams were given, and a warm-up; so what is pinned does not depend on how fast a machine
// is. Times are of requests alone.
Replayed replay(at::HostAllocator* allocator, const Trace& trace, bool paced);

} // namespace bench
