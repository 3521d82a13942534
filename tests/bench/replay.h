// Replays a trace on a real allocator: memory pinned, and time of the requests.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <map>
#include <string>
#include <vector>

namespace bench {

// Numbers by name, as the harness answers.
using Numbers = std::map<std::string, std::vector<double>>;

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
//
// `iteration_ns`, `iteration_pins`: time within the allocator and calls to the driver, by iteration, each of which ends with its
// `iteration` event; the rest counts as one more, if there is any. `sample_us`, `sample_live`, `sample_pinned`: the trace's clock,
// bytes requested and not freed, and bytes pinned, at some hundred events. `peak_live`, `peak_pinned`. `live_at_clear` and
// `pinned_after_clear`: at the trace's last `clear`; both 0 if there is none.
Numbers replay(at::HostAllocator* allocator, const std::string& path, Pace pace);

} // namespace bench
