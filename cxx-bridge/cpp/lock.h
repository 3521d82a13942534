// Locks that count, in a debug build, how many of them their thread holds.
//
// So invariant I5 (no driver call, map, unmap or wait under a lock) is asserted where such calls are made.
// In a release build `Lock` is std::lock_guard and nothing more. Upstream's own locks are not counted. The
// Rust counterpart is src/lock.rs.
#pragma once

#include <atomic>
#include <chrono>
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

 private:
  std::lock_guard<std::mutex> guard_;
};

// Ends the program if this thread holds a lock of ours. Called from destructors, so it may not throw.
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

// A spin lock, held for a few instructions at a time, at half the cost of a mutex. Never held across a call
// that could wait.
class SpinLock {
 public:
  void lock() {
    if (locked_.exchange(true, std::memory_order_acquire)) {
      wait();
    }
    count_held(1);
  }

  void unlock() {
    count_held(-1);
    locked_.store(false, std::memory_order_release);
  }

 private:
  static constexpr int kLooks = 100;
  static constexpr int kYields = 10;

  // Tells the processor that this thread spins: its other thread, perhaps the holder, gets more of the core.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  [[gnu::noinline]] void wait() {
    int turns = 0;
    do {
      // Long enough for a holder that is running.
      for (int looks = 0; locked_.load(std::memory_order_relaxed) && looks < kLooks; ++looks) {
        relax();
      }
      if (turns < kYields) {
        std::this_thread::yield();
      } else {
        // The holder has lost its processor, perhaps to this thread if it has real-time priority.
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      ++turns;
    } while (locked_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> locked_{false};
};

// Holds a spin lock.
using SpinLocked = std::lock_guard<SpinLock>;

} // namespace pinbuddy
