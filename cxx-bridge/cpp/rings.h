// Rings into which threads write what is recorded: one a thread, which Rust drains.
//
// A ring has one producer and one consumer and takes no lock. A full ring drops what comes, and counts it: memory is
// bounded, and nobody waits. Requests are dropped first, so that the end of a recorded block nearly always finds room.
// A thread that ends leaves its ring, which gets another thread once it is drained, or at once if that has the same number.
// Knows no block; of what an entry says, only whether it is about device memory (recording.h), since what is lost is
// counted apart.
// Invariant: only the owner writes entries and `published_`, only the consumer `taken_`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pinbuddy-bridge/src/lib.rs.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#elif !defined(__aarch64__)
#include <ctime>
#endif

namespace pinbuddy {

// A counter of the processor's, which all cores share and which costs a few nanoseconds. Rust knows how fast it is.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t now;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

// What was dropped, of pinned and of device memory. One thread adds at a time, unless `add` says otherwise.
class Losses {
 public:
  static constexpr unsigned kDeviceShift = 63;

  // Of an entry that says so.
  void count(std::uint64_t what) {
    std::atomic<std::uint64_t>& of = of_[what >> kDeviceShift];
    of.store(of.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // The same, whoever else does.
  void add(std::uint64_t what) {
    of_[what >> kDeviceShift].fetch_add(1, std::memory_order_relaxed);
  }

  Lost total() const {
    return Lost{of_[0].load(std::memory_order_relaxed), of_[1].load(std::memory_order_relaxed)};
  }

 private:
  std::array<std::atomic<std::uint64_t>, 2> of_{};
};

// On cache lines of its own: the first is the owner's, the second the consumer's.
class alignas(64) Ring {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << 15;
  // What requests leave free for the ends of blocks.
  static constexpr std::size_t kReserve = kEntries / 4;
  // So many entries on, a cache line is asked for.
  static constexpr std::size_t kAhead = 8;

  Ring(std::size_t index, std::uint32_t thread) : index_(index), thread_(thread) {}

  // Appends an entry, unless fewer than `spare` others would fit then. Returns whether it did; else counts it as lost.
  bool push(std::uint64_t allocation, std::uint64_t what, std::size_t spare) {
    const std::uint64_t at = published_.load(std::memory_order_relaxed);
    if (at - taken_seen_ >= kEntries - spare) [[unlikely]] {
      taken_seen_ = taken_.load(std::memory_order_acquire);
      if (at - taken_seen_ >= kEntries - spare) {
        lost_.count(what);
        return false;
      }
    }
    // The consumer has read these lines last, so they are in its cache.
    __builtin_prefetch(&entries_[(at + kAhead) % kEntries], 1);
    Raw& entry = entries_[at % kEntries];
    entry.ticks = ticks();
    entry.allocation = allocation;
    entry.what = what;
    published_.store(at + 1, std::memory_order_release);
    return true;
  }

  // The owner has waited for the driver so many nanoseconds, and an entry will say so.
  void wait(std::uint64_t nanoseconds) {
    waited_ += nanoseconds;
  }
  // Whether there is such a wait, and how long it was, for that entry.
  bool has_waited() const {
    return waited_ != 0;
  }
  std::uint64_t take_waited() {
    return std::exchange(waited_, 0);
  }

  // A number that no other allocation has, below 2^48.
  std::uint64_t number() {
    return index_ << 40 | (++allocations_ & ((std::uint64_t{1} << 40) - 1));
  }

  // The consumer's: moves entries to `into`, the oldest first.
  Drained drain(rust::Slice<Entry> into);

  // Takes a ring that nobody has, or that a thread of the same number has left; false if it is neither.
  bool claim(std::uint32_t thread);

  // The owner ends.
  void leave() {
    state_.store(state_.load(std::memory_order_relaxed) + kLeft, std::memory_order_release);
  }

 private:
  // In the lower two bits of the state; above them is how often it was claimed, so that nobody takes one owner's end for
  // another's.
  static constexpr std::uint32_t kOwned = 0;
  static constexpr std::uint32_t kLeft = 1;
  static constexpr std::uint32_t kVacant = 2;
  static constexpr std::uint32_t kStates = 3;
  // Without the initialisers of `Entry`, which would touch all memory at once.
  struct Raw {
    std::uint64_t ticks;
    std::uint64_t allocation;
    std::uint64_t what;
  };

  std::atomic<std::uint64_t> published_{0};
  std::uint64_t taken_seen_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t waited_ = 0;
  const std::uint64_t index_;
  Losses lost_;
  std::atomic<std::uint32_t> thread_;

  alignas(64) std::atomic<std::uint64_t> taken_{0};
  Lost lost_told_{};
  std::atomic<std::uint32_t> state_{kOwned};

  alignas(64) std::array<Raw, kEntries> entries_;
};

class Rings {
 public:
  // An allocation's number has so many bits for its ring's (`Ring::number`).
  static constexpr std::size_t kMost = 256;

  // This thread's ring; null if there are too many threads, or no memory.
  static Ring* own() {
    if (own_ != nullptr) [[likely]] {
      return own_;
    }
    return claim();
  }

  // An entry that found no ring is lost.
  static void lose(std::uint64_t what) {
    lost_.add(what);
  }

  // The consumer's.
  static std::size_t count() {
    return count_.load(std::memory_order_acquire);
  }
  static Drained drain(std::size_t index, rust::Slice<Entry> into) {
    return rings_[index].load(std::memory_order_acquire)->drain(into);
  }
  static Lost take_lost();

 private:
  struct Owner;

  static Ring* claim();
  static Ring* claim_any();

  static constinit inline thread_local Ring* own_ = nullptr;
  static inline std::array<std::atomic<Ring*>, kMost> rings_{};
  static inline std::atomic<std::size_t> count_{0};
  static inline Losses lost_;
  static inline Lost lost_told_{};
};

} // namespace pinbuddy
