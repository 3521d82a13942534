// Clocks: a thread's processor time, the wall's, and the processor's own ticks for single calls.
#pragma once

#include <cstdint>

namespace bench {

// Nothing here waits, so this excludes other programs.
double thread_nanoseconds();
double wall_nanoseconds();

// The time stamp counter, read in order with what is before and after it.
using Ticks = std::uint64_t;
Ticks ticks_now();
// Without what a reading costs. The first call takes longer: it measures that, and how long a tick is.
double nanoseconds_since(Ticks start);
// Reads the counter so many times, out of order.
void read_counter(long times);

} // namespace bench
