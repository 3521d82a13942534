// How long this thread has waited for the driver in the call of the program's that is under way.
//
// Written where a call waits for memory to be pinned or unpinned, in Rust or here, and read by who records the call.
// Knows neither, and a hit comes by here only while it is recorded. Invariant: waits within each other count once.
#pragma once

#include <chrono>
#include <cstdint>

namespace pinbuddy::driver_wait {

inline constinit thread_local std::uint64_t nanoseconds = 0;

namespace detail {
inline constinit thread_local unsigned depth = 0;
inline constinit thread_local std::chrono::steady_clock::time_point since{};
} // namespace detail

inline void begins() {
  if (detail::depth++ == 0) {
    detail::since = std::chrono::steady_clock::now();
  }
}

inline void ends() {
  if (--detail::depth == 0) {
    const auto took = std::chrono::steady_clock::now() - detail::since;
    nanoseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
  }
}

// A wait, as long as it lives.
class Wait {
 public:
  Wait() {
    begins();
  }
  ~Wait() {
    ends();
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

} // namespace pinbuddy::driver_wait
