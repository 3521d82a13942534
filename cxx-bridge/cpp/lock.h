// A lock that knows, in a debug build, how many of them its thread holds.
//
// So that invariant I5 (no driver call, map, unmap or wait under a lock) is asserted where such
// calls are made. In a release build it is std::lock_guard and nothing more. Upstream's own locks
// are not seen; the Rust side has its counterpart, src/lock.rs.
#pragma once

#include <mutex>

#ifdef PINBUDDY_DEBUG
#include <cstdio>
#include <cstdlib>
#endif

namespace pinbuddy {

#ifdef PINBUDDY_DEBUG

inline thread_local int locks_held = 0;

class Lock {
 public:
  explicit Lock(std::mutex& mutex) : guard_(mutex) {
    ++locks_held;
  }
  ~Lock() {
    --locks_held;
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  std::lock_guard<std::mutex> guard_;
};

// Ends the program where this thread holds a lock of ours: destructors lead here, so that nothing
// may be thrown.
inline void assert_no_lock_held(const char* doing) {
  if (locks_held != 0) {
    std::fprintf(stderr, "pinbuddy: I5: %s under a lock\n", doing);
    std::abort();
  }
}

#else

using Lock = std::lock_guard<std::mutex>;

inline void assert_no_lock_held(const char*) {}

#endif

} // namespace pinbuddy
