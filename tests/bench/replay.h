// Replays a trace on a real allocator: memory pinned, and time of the requests.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <string>
#include <vector>

namespace bench {

// By iteration, each of which ends with its `iteration` event; the rest counts as one more, if there is any.
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
  // At the trace's last `clear`; both 0 if there is none.
  double live_at_clear = 0;
  double pinned_after_clear = 0;
};

enum class Pace {
  // Streams and a warm-up are finished before each request, so that the memory pinned does not depend on the machine's
  // speed.
  kFree,
  // The same, but a warm-up is asked for only in the first iteration and where the cache was emptied. Asking takes many times as
  // long as a request, and leaves the processor's caches with other things.
  kTimed,
  // Each event waits for its time in the trace.
  kPaced,
};

// Runs all events of a file on this thread, in order. Only requests are timed.
Replayed replay(at::HostAllocator* allocator, const std::string& path, Pace pace);

} // namespace bench
