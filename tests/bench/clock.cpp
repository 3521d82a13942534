#include "clock.h"

#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace bench {
namespace {

double nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Nanoseconds per tick, calibrated by twenty milliseconds of the wall clock.
double calibrate() {
  const double start = wall_nanoseconds();
  const Ticks first = ticks_now();
  double now = start;
  while (now - start < 20e6) {
    now = wall_nanoseconds();
  }
  return (now - start) / static_cast<double>(ticks_now() - first);
}

// The cost of a reading: the median difference of consecutive ones.
Ticks ticks_of_asking() {
  std::array<Ticks, 1001> seen{};
  for (Ticks& it : seen) {
    const Ticks start = ticks_now();
    it = ticks_now() - start;
  }
  std::nth_element(seen.begin(), seen.begin() + seen.size() / 2, seen.end());
  return seen[seen.size() / 2];
}

} // namespace

double thread_nanoseconds() {
  return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

double wall_nanoseconds() {
  return nanoseconds(CLOCK_MONOTONIC);
}

Ticks ticks_now() {
  unsigned processor = 0;
  const Ticks ticks = __rdtscp(&processor);
  _mm_lfence();
  return ticks;
}

void read_counter(long times) {
  [[maybe_unused]] volatile Ticks read = 0;
  for (long i = 0; i < times; ++i) {
    read = __rdtsc();
  }
}

double nanoseconds_since(Ticks start) {
  const Ticks took = ticks_now() - start;
  static const Ticks cost = ticks_of_asking();
  static const double each = calibrate();
  return took > cost ? static_cast<double>(took - cost) * each : 0;
}

} // namespace bench
