// Tells the recording how long this thread waits for the driver in the call of the program's that is under way.
//
// For who pins or unpins memory in such a call, in Rust or here; a hit never comes by. Knows neither. Invariant: waits
// within each other count once.
#pragma once

#include <chrono>
#include <cstdint>

#include "recording.h"

namespace pinbuddy::driver_wait {

namespace detail {
inline constinit thread_local unsigned depth = 0;
inline constinit thread_local bool in_request = false;
inline constinit thread_local std::chrono::steady_clock::time_point since{};
} // namespace detail

// `in_request`: memory is pinned for a request; else it is given back, unless a request waits for that.
inline void begins(bool in_request) {
  if (detail::depth++ == 0) {
    detail::in_request = in_request;
    recording::will_wait();
    detail::since = std::chrono::steady_clock::now();
  }
}

inline void ends() {
  if (--detail::depth == 0) {
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - detail::since;
    recording::waited(static_cast<std::uint64_t>(took.count()), detail::in_request);
  }
}

// A wait, as long as it lives.
class Wait {
 public:
  explicit Wait(bool in_request) {
    begins(in_request);
  }
  ~Wait() {
    ends();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

} // namespace pinbuddy::driver_wait
