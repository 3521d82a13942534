// Locks that know, in a debug build, how many of them their thread holds.
//
// So that invariant I5 (no driver call, map, unmap or wait under a lock) is asserted where such
// calls are made. In a release build `Lock` is std::lock_guard and nothing more. Upstream's own locks
// are not seen; the Rust side has its counterpart, src/lock.rs.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#ifdef PINBUDDY_DEBUG
#include <cstdio>
#include <cstdlib>
#endif

namespace pinbuddy {

#ifdef PINBUDDY_DEBUG

inline thread_local int locks_held = 0;

inline void count_held(int more) {
  locks_held += more;
}

class Lock {
 public:
  explicit Lock(std::mutex& mutex) : guard_(mutex) {
    count_held(1);
  }
  ~Lock() {
    count_held(-1);
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

inline void count_held(int) {}

using Lock = std::lock_guard<std::mutex>;

inline void assert_no_lock_held(const char*) {}

#endif

// A lock for a few instructions at a time, at half the cost of a mutex. Nobody sleeps on it: whoever
// has something else to do gives up.
class Latch {
 public:
  enum Patience { Briefly, UntilOpen };

  bool close(Patience patience) {
    for (int tries = 0; closed_.exchange(true, std::memory_order_acquire); ++tries) {
      // As long as a holder that runs takes.
      for (int looks = 0; closed_.load(std::memory_order_relaxed) && looks < kLooks; ++looks) {
      }
      if (patience == Briefly && tries == kTries) {
        return false;
      }
      if (patience == UntilOpen) {
        // The holder may have lost its processor.
        std::this_thread::yield();
      }
    }
    count_held(1);
    return true;
  }

  void open() {
    count_held(-1);
    closed_.store(false, std::memory_order_release);
  }

 private:
  static constexpr int kLooks = 100;
  static constexpr int kTries = 2;

  std::atomic<bool> closed_{false};
};

// Holds a latch, if it could be had.
class Latched {
 public:
  Latched(Latch& latch, Latch::Patience patience) : latch_(latch), held_(latch.close(patience)) {}
  ~Latched() {
    if (held_) {
      latch_.open();
    }
  }
  Latched(const Latched&) = delete;
  Latched& operator=(const Latched&) = delete;

  explicit operator bool() const {
    return held_;
  }

 private:
  Latch& latch_;
  const bool held_;
};

} // namespace pinbuddy
